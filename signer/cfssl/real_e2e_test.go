//go:build e2e

package cfssl_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/cfssl"
	"github.com/chancery-ca/chancery/signer/cfssl/cfssltest"
	"github.com/chancery-ca/chancery/signer/keystore"
	"github.com/chancery-ca/chancery/signer/signertest"
)

// realModule is what the real server is built from. The test's module does not need it: it would bring databases along.
const realModule = "github.com/cloudflare/cfssl/cmd/cfssl@v1.6.5"

// builtIn is the folder of what was built; empty while nothing was.
var builtIn string

// buildCFSSL returns the real cfssl, built once.
var buildCFSSL = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cfssl-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	install := exec.Command("go", "install", realModule)
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := install.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return filepath.Join(dir, "cfssl"), nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn) // it is in the system's temporary folder
	}
	os.Exit(code) //nolint:forbidigo // this is main
}

// real is a running cfssl serve.
type real struct {
	hierarchy *signertest.Hierarchy
	dir       string
	address   string
	command   *exec.Cmd
	log       *bytes.Buffer
	ca        *x509.Certificate
}

// startReal runs cfssl serve with auth and TLS. Its profiles are those of the suite's orders, whose certificates live an hour; plain has nothing but what
// cfssl's documentation shows.
func startReal(t testing.TB, change func(profiles map[string]any)) *real {
	t.Helper()
	binary, err := buildCFSSL()
	must(t, err)
	r := &real{hierarchy: signertest.NewHierarchy(t, time.Now()), dir: t.TempDir()}
	usages := func(more ...string) []string { return append([]string{"digital signature"}, more...) }
	profiles := map[string]any{
		"workload": profileOf(usages("server auth", "client auth")), "serving": profileOf(usages("server auth")),
	}
	if change != nil {
		change(profiles)
	}
	r.write(t, "config.json", marshal(t, map[string]any{
		"signing": map[string]any{
			"default":  map[string]any{"usages": []string{"digital signature", "client auth"}, "expiry": "8760h", "auth_key": "chancery"},
			"profiles": profiles,
		},
		"auth_keys": map[string]any{"chancery": map[string]any{"type": "standard", "key": secret}},
	}))
	r.write(t, "ca.pem", pem.Encode("CERTIFICATE", r.hierarchy.Issuer.Certificate.Raw))
	key, err := keystore.Encode(r.hierarchy.Issuer.Key)
	must(t, err)
	r.write(t, "ca-key.pem", key)
	// a certificate for the server's own TLS, from a CA of its own
	r.makeTLS(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r.address = free.Addr().String()
	must(t, free.Close())
	r.start(t, binary)
	t.Cleanup(r.stop)
	return r
}

func profileOf(usages []string) map[string]any {
	return map[string]any{"usages": usages, "expiry": "58m", "backdate": "1m", "auth_key": "chancery", "ClientProvidesSerialNumbers": true}
}

func (r *real) write(t testing.TB, name string, text []byte) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(r.dir, name), text, 0o600))
}

func marshal(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	return text
}

// makeTLS takes the certificate of a stand-in, which has one that fits.
func (r *real) makeTLS(t testing.TB) {
	t.Helper()
	material := cfssltest.NewTLS(t, time.Now(), nil)
	r.ca = material.CA
	r.write(t, "tls.pem", pem.Encode("CERTIFICATE", material.Certificate.Certificate[0]))
	signing, ok := material.Certificate.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatal("another kind of key")
	}
	key, err := keystore.Encode(signing)
	must(t, err)
	r.write(t, "tls-key.pem", key)
}

func (r *real) start(t testing.TB, binary string) {
	t.Helper()
	host, port, err := net.SplitHostPort(r.address)
	must(t, err)
	r.log = new(bytes.Buffer)
	r.command = exec.Command(binary, "serve", "-address", host, "-port", port, "-ca", "ca.pem", "-ca-key", "ca-key.pem", "-config", "config.json",
		"-tls-cert", "tls.pem", "-tls-key", "tls-key.pem", "-loglevel", "0")
	r.command.Dir, r.command.Stdout, r.command.Stderr = r.dir, r.log, r.log
	must(t, r.command.Start())
	deadline := time.After(20 * time.Second)
	for {
		connection, err := net.DialTimeout("tcp", r.address, time.Second)
		if err == nil {
			_ = connection.Close()
			return
		}
		select {
		case <-deadline:
			r.stop()
			t.Fatalf("cfssl does not listen: %v\n%s", err, r.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (r *real) stop() {
	_ = r.command.Process.Kill() // it may have ended
	_ = r.command.Wait()
}

func (r *real) config(t testing.TB) cfssl.Config {
	t.Helper()
	t.Setenv("CFSSL_KEY", secret)
	key, err := cfssl.LoadKey("env:CFSSL_KEY")
	must(t, err)
	return cfssl.Config{
		Server: "https://" + r.address, ServerCAs: []*x509.Certificate{r.ca}, Key: key, Roots: r.hierarchy.Bundle(t), Chain: r.hierarchy.Issuers()[:2],
		Choices: signer.Choices{Earlier: 6 * time.Minute}, Shorter: 6 * time.Minute, Timeout: 10 * time.Second, Connections: 8,
	}
}

func (r *real) open(t testing.TB, change func(*cfssl.Config)) signer.Signer {
	t.Helper()
	config := r.config(t)
	if change != nil {
		change(&config)
	}
	s, err := cfssl.New(config)
	must(t, err)
	return s
}

func refusesNames(profiles map[string]any) {
	for _, p := range profiles {
		if profile, ok := p.(map[string]any); ok {
			profile["name_whitelist"] = `^nobody\.example\.org$`
		}
	}
}

// TestRealConformance runs the whole contract against cfssl serve, over TLS with auth.
func TestRealConformance(t *testing.T) {
	for name, change := range map[string]func(testing.TB, *real, *cfssl.Config){
		"issuers configured": func(testing.TB, *real, *cfssl.Config) {},
		"issuer asked for": func(t testing.TB, r *real, c *cfssl.Config) {
			b := &bed{hierarchy: r.hierarchy}
			b.asksForIssuer(t)
			c.Roots, c.Chain = b.config.Roots, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(t testing.TB, profiles func(map[string]any), then func(*real)) signer.Signer {
				r := startReal(t, profiles)
				s := r.open(t, func(c *cfssl.Config) { change(t, r, c) })
				if then != nil {
					then(r)
				}
				return s
			}
			signertest.Run(t, signertest.Backend{
				New:      func(t testing.TB) signer.Signer { return open(t, nil, nil) },
				Refusing: func(t testing.TB) signer.Signer { return open(t, refusesNames, nil) },
				Failing:  func(t testing.TB) signer.Signer { return open(t, nil, func(r *real) { r.stop() }) },
				Hanging: func(t testing.TB) signer.Signer {
					return open(t, nil, func(r *real) { must(t, r.command.Process.Signal(syscall.SIGSTOP)) })
				},
				Secrets: []string{secret},
			})
		})
	}
}

// realSign does with an order what the authority does.
func realSign(t testing.TB, s signer.Signer, o signer.Order) error {
	t.Helper()
	signed, err := s.Sign(t.Context(), o)
	if err != nil {
		return err
	}
	checker, err := chain.NewChecker(s.Roots().Anchors())
	must(t, err)
	chooser, ok := s.(signer.Chooser)
	if !ok {
		t.Fatal("the backend does not tell what its server may choose")
	}
	return checker.Check(signed, chooser.Choices().Accept(o.Leaf), time.Now())
}

func realOrder(t testing.TB, n int) signer.Order {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return signertest.NewOrder(t, n, key, time.Now())
}

// TestRealDrops: what cfssl drops or chooses is noticed.
func TestRealDrops(t *testing.T) {
	set := func(key string, value any) func(map[string]any) {
		return func(profiles map[string]any) {
			if profile, ok := profiles["workload"].(map[string]any); ok {
				profile[key] = value
			}
		}
	}
	for name, test := range map[string]struct {
		server func(map[string]any)
		change func(*cfssl.Config)
		order  func(*signer.Order)
		want   string
	}{
		"as ordered":                {nil, nil, nil, ""},
		"ten minutes asked":         {nil, nil, func(o *signer.Order) { o.Leaf.NotAfter = o.Leaf.NotBefore.Add(11 * time.Minute) }, "accept_longer"},
		"ten minutes asked, longer": {nil, func(c *cfssl.Config) { c.Choices.Later = time.Hour }, func(o *signer.Order) { o.Leaf.NotAfter = o.Leaf.NotBefore.Add(11 * time.Minute) }, ""},
		"a day asked":               {nil, nil, func(o *signer.Order) { o.Leaf.NotAfter = o.Leaf.NotBefore.Add(24 * time.Hour) }, "accept_shorter"},
		"cfssl's own backdating":    {set("backdate", ""), func(c *cfssl.Config) { c.Choices.Earlier = 0 }, nil, "accept_earlier"},
		"its own serial":            {set("ClientProvidesSerialNumbers", false), nil, nil, "ClientProvidesSerialNumbers"},
		"its own serial, allowed":   {set("ClientProvidesSerialNumbers", false), func(c *cfssl.Config) { c.Choices.Serial = true }, nil, ""},
		"our serial, not sent":      {nil, func(c *cfssl.Config) { c.Choices.Serial = true }, nil, "serials: reserved"},
		"an unknown profile":        {nil, nil, func(o *signer.Order) { o.Profile = "nothing" }, "ClientProvidesSerialNumbers"},
		"an unknown profile, all allowed": {nil, func(c *cfssl.Config) {
			c.Choices = signer.Choices{Serial: true, Earlier: time.Hour, Later: 9000 * time.Hour}
		}, func(o *signer.Order) { o.Profile = "nothing" }, "extended key usages"},
		"a wider usage":          {set("usages", []string{"digital signature", "server auth", "client auth", "code signing"}), nil, nil, "extended key usages"},
		"key encipherment":       {set("usages", []string{"signing", "key encipherment", "server auth", "client auth"}), nil, nil, "key usage"},
		"a CA certificate":       {set("ca_constraint", map[string]any{"is_ca": true}), nil, nil, "certificate 1"},
		"a profile without auth": {set("auth_key", ""), nil, nil, "auth_key"},
		"another key": {nil, func(c *cfssl.Config) {
			t.Setenv("OTHER", strings.Repeat("ab", 32))
			var err error
			c.Key, err = cfssl.LoadKey("env:OTHER")
			must(t, err)
		}, nil, "another authentication key"},
		"a request with names of its own": {nil, nil, func(o *signer.Order) {
			o.Request = requestOf(t, o, &x509.CertificateRequest{DNSNames: []string{"www.example.org"}})
		}, ""},
		"a subject": {nil, func(c *cfssl.Config) { c.SendsSubject = true }, func(o *signer.Order) {
			template := &x509.CertificateRequest{}
			template.Subject.CommonName = "admin"
			o.Request = requestOf(t, o, template)
		}, "subject was not approved"},
		"a subject that the server drops": {set("CSRWhitelist", map[string]any{"PublicKey": true, "PublicKeyAlgorithm": true, "SignatureAlgorithm": true}),
			func(c *cfssl.Config) { c.SendsSubject = true }, func(o *signer.Order) {
				template := &x509.CertificateRequest{DNSNames: []string{"www.example.org"}}
				template.Subject.CommonName, template.Subject.Organization = "admin", []string{""} // as Istio's agents
				o.Request = requestOf(t, o, template)
			}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := startReal(t, test.server)
			o := realOrder(t, 1)
			if test.order != nil {
				test.order(&o)
			}
			err := realSign(t, r.open(t, test.change), o)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v\n%s", err, r.log)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error with %q\n%s", err, test.want, r.log)
			case errors.Is(err, signer.ErrPermanent):
				t.Errorf("the requester is blamed: %v", err)
			}
		})
	}
}

// requestOf makes another request for an order, with another key.
func requestOf(t testing.TB, o *signer.Order, template *x509.CertificateRequest) *csr.Request {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	must(t, err)
	request, err := csr.Parse(der, csr.Rules{})
	must(t, err)
	o.Leaf.SPKI = request.SPKI()
	return request
}

// TestRealCSRs has cfssl read many requests: those whose last byte is white space are among them.
func TestRealCSRs(t *testing.T) {
	r := startReal(t, nil)
	s := r.open(t, nil)
	const orders = 400
	for n := range orders {
		if err := realSign(t, s, realOrder(t, n)); err != nil {
			t.Fatalf("order %d: %v", n, err)
		}
	}
}

// TestRealRestart pulls the plug while callers sign: they get errors in time, and certificates again from the next server on.
func TestRealRestart(t *testing.T) {
	binary, err := buildCFSSL()
	must(t, err)
	r := startReal(t, nil)
	s := r.open(t, func(c *cfssl.Config) { c.Timeout = 2 * time.Second })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	var mu sync.Mutex
	var longest time.Duration
	signed, failed := 0, 0
	signedAgain := make(chan struct{}, 1000)
	for range 8 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				err := realSign(t, s, realOrder(t, n))
				took := time.Since(began)
				mu.Lock()
				longest = max(longest, took)
				if err == nil {
					signed++
				} else {
					failed++
				}
				mu.Unlock()
				if errors.Is(err, signer.ErrPermanent) {
					t.Errorf("a requester is blamed: %v", err)
				}
				if err == nil {
					select {
					case signedAgain <- struct{}{}:
					default:
					}
				} else {
					select { // do not burn the processor that cfssl starts on
					case <-ctx.Done():
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
		})
	}
	await := func(n int) {
		for range n {
			select {
			case <-signedAgain:
			case <-time.After(20 * time.Second):
				t.Fatal("nothing is signed")
			}
		}
	}
	for _, plug := range []func(){
		func() { r.stop(); r.start(t, binary) },
		func() { // it hangs for longer than a call may take
			must(t, r.command.Process.Signal(syscall.SIGSTOP))
			<-time.After(3 * time.Second)
			must(t, r.command.Process.Signal(syscall.SIGCONT))
		},
	} {
		await(20)
		plug()
		for len(signedAgain) > 0 {
			<-signedAgain
		}
		await(20)
	}
	cancel()
	group.Wait()
	t.Logf("%d signed, %d failed, the longest call took %s", signed, failed, longest)
	if longest > 4*time.Second {
		t.Errorf("a call took %s with a limit of 2s", longest)
	}
	if failed == 0 {
		t.Error("no call noticed")
	}
}

// TestRealPlain: cfssl's plain HTTP is no server of ours.
func TestRealPlain(t *testing.T) {
	r := startReal(t, nil)
	s := r.open(t, func(c *cfssl.Config) { c.ServerCAs = r.hierarchy.Issuers() })
	if err := realSign(t, s, realOrder(t, 1)); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("got %v", err)
	}
	answer, err := http.Get("http://" + r.address + "/api/v1/cfssl/info")
	if err == nil {
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Error("it answers without TLS")
		}
	}
	if slices.Contains([]string{"", "0"}, r.address) {
		t.Fatal("no address")
	}
}

func BenchmarkReal(b *testing.B) {
	r := startReal(b, nil)
	s := r.open(b, nil)
	o := realOrder(b, 1)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Sign(b.Context(), o); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
