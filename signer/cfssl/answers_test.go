package cfssl_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/cfssl"
	"github.com/chancery-ca/chancery/signer/cfssl/cfssltest"
	"github.com/chancery-ca/chancery/signer/signertest"
)

// TestForgeries: a server that signs something else than ordered gets none of it past the backend and the checker.
func TestForgeries(t *testing.T) {
	b := newBed(t, nil)
	s := b.open(t)
	checker, err := chain.NewChecker(b.config.Roots.Anchors())
	must(t, err)
	refused := 0
	for _, forgery := range signertest.Forgeries() {
		t.Run(forgery.Name, func(t *testing.T) {
			order := order(t, 1)
			answer := forgery.Answer(t, *b.hierarchy, order.Leaf)
			if len(answer.DER()) == 0 {
				t.Skip("no answer is no forgery of this server's")
			}
			// the server hands over a leaf alone: what is wrong elsewhere in the chain does not come through
			pinned, err := chain.New(answer.Leaf(), b.hierarchy.Issuer.Certificate, b.hierarchy.Middle.Certificate)
			must(t, err)
			if checker.Check(pinned, order.Leaf, now) == nil {
				t.Skip("its leaf is right")
			}
			b.server.Answer(func(cfssltest.Order) ([]byte, *cfssltest.Refusal) { return answer.Leaf().Raw, nil })
			err = signAndCheck(t, s, order)
			var broken *chain.Error
			if err == nil || !errors.Is(err, signer.ErrWrong) && !errors.As(err, &broken) {
				t.Errorf("got %v, want it refused", err)
			}
			if errors.Is(err, signer.ErrPermanent) {
				t.Errorf("the requester is blamed: %v", err)
			}
			refused++
		})
	}
	const want = 40
	if refused < want {
		t.Errorf("%d forgeries were tried, want at least %d", refused, want)
	}
}

// TestDrops: what the server drops or chooses without leave is noticed, and the operator is told the setting.
func TestDrops(t *testing.T) {
	profile := func(change func(*cfssltest.Profile)) func(*cfssltest.Config) {
		return func(c *cfssltest.Config) {
			p := c.Profiles["workload"]
			change(&p)
			c.Profiles["workload"] = p
		}
	}
	expiry := func(d time.Duration) func(*cfssltest.Config) {
		return profile(func(p *cfssltest.Profile) { p.Expiry = d + p.Backdate })
	}
	plain := profile(func(p *cfssltest.Profile) { p.Backdate, p.Expiry = 0, time.Hour }) // 5 min early, and ends 5 min early
	for name, test := range map[string]struct {
		server func(*cfssltest.Config)
		allow  func(*cfssl.Config)
		want   string // in the error; empty if it is signed
	}{
		"all as ordered":                       {nil, nil, ""},
		"a longer life":                        {expiry(24 * time.Hour), nil, "accept_longer"},
		"a second longer":                      {expiry(time.Hour + time.Second), nil, "accept_longer"},
		"a longer life, allowed":               {expiry(24 * time.Hour), func(c *cfssl.Config) { c.Choices.Later = 23 * time.Hour }, ""},
		"a longer life than allowed":           {expiry(24 * time.Hour), func(c *cfssl.Config) { c.Choices.Later = 23*time.Hour - time.Second }, "accept_longer"},
		"a shorter life":                       {expiry(50 * time.Minute), nil, "accept_shorter"},
		"a shorter life, allowed":              {expiry(50 * time.Minute), func(c *cfssl.Config) { c.Shorter = 10 * time.Minute }, ""},
		"CFSSL's own backdating":               {plain, nil, "accept_earlier"},
		"CFSSL's own backdating, half allowed": {plain, func(c *cfssl.Config) { c.Choices.Earlier = 5 * time.Minute }, "accept_shorter"},
		"CFSSL's own backdating, allowed": {plain, func(c *cfssl.Config) {
			c.Choices.Earlier, c.Shorter = 5*time.Minute, 5*time.Minute
		}, ""},
		"another serial":          {profile(func(p *cfssltest.Profile) { p.ClientSerials = false }), nil, "ClientProvidesSerialNumbers"},
		"another serial, allowed": {profile(func(p *cfssltest.Profile) { p.ClientSerials = false }), func(c *cfssl.Config) { c.Choices.Serial = true }, ""},
		"our serial, not sent":    {nil, func(c *cfssl.Config) { c.Choices.Serial = true }, "serials: reserved"},
		"an unknown profile": {func(c *cfssltest.Config) { delete(c.Profiles, "workload") }, func(c *cfssl.Config) {
			c.Choices = signer.Choices{Serial: true, Earlier: time.Hour, Later: 9000 * time.Hour}
		}, "extended key usages"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, test.server)
			if test.allow != nil {
				test.allow(&b.config)
			}
			err := signAndCheck(t, b.open(t), order(t, 1))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, signer.ErrPermanent)):
				t.Errorf("got %v, want an error with %q that is not permanent", err, test.want)
			}
		})
	}
}

// TestRefusals: which of the server's refusals are the requester's fault.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		code      int
		message   string
		permanent bool
		want      string
	}{
		{9002, "Failed to decode certificate request", true, "code 9002"},
		{9003, "x509: malformed", true, "malformed"},
		{9300, "key mismatch", true, "code 9300"},
		{5500, "Request does not match policy whitelist", true, "whitelist"},
		{400, "invalid token", false, "another authentication key"},
		{400, "no authentication provider", false, "auth_key"},
		{400, "authentication required", false, "authentication required"},
		{1000, "Unknown certificate error", false, "code 1000"},
		{1400, "Missing serial number in request", false, "serials: reserved"},
		{5100, "Invalid policy: no key usage available", false, "policy does not fit"},
		{5200, "Invalid or unknown policy", false, "policy does not fit"},
		{5300, "Policy violation request", false, "policy does not fit"},
		{5400, "Unknown policy profile", false, "policy does not fit"},
		{2500, "Private key is unavailable", false, "code 2500"},
		{11100, "Record could not be inserted", false, "code 11100"},
		{90030, "", false, "code 90030"},
		{-9003, "", false, "code -9003"},
		{0, "", false, "code 0"},
	} {
		t.Run(fmt.Sprint(test.code, test.message), func(t *testing.T) {
			b := newBed(t, nil)
			b.server.Answer(func(cfssltest.Order) ([]byte, *cfssltest.Refusal) {
				return nil, &cfssltest.Refusal{Status: http.StatusBadRequest, Code: test.code, Message: test.message}
			})
			_, err := b.open(t).Sign(t.Context(), order(t, 1))
			if err == nil || errors.Is(err, signer.ErrPermanent) != test.permanent || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want permanent %t with %q", err, test.permanent, test.want)
			}
			if n := b.server.Requests(); n != 1 {
				t.Errorf("the order was sent %d times", n)
			}
		})
	}
	t.Run("another key", func(t *testing.T) {
		b := newBed(t, nil)
		t.Setenv("OTHER", strings.Repeat("ab", 32))
		var err error
		b.config.Key, err = cfssl.LoadKey("env:OTHER")
		must(t, err)
		if err := signAndCheck(t, b.open(t), order(t, 1)); err == nil || errors.Is(err, signer.ErrPermanent) || !strings.Contains(err.Error(), "another authentication key") {
			t.Errorf("got %v", err)
		}
	})
}

// TestOrders: what the server is sent.
func TestOrders(t *testing.T) {
	b := newBed(t, func(c *cfssltest.Config) { c.Profiles["theirs"] = c.Profiles["workload"] })
	b.asksForIssuer(t)
	b.config.Label = "primary"
	b.config.Profiles = map[string]cfssl.Profile{"workload": {Name: "theirs"}, "other": {Name: "theirs", Label: "second"}}
	s := b.open(t)
	var got []string
	b.server.Answer(func(o cfssltest.Order) ([]byte, *cfssltest.Refusal) {
		got = append(got, o.Profile+" "+o.Label+" "+o.Leaf.Names.String())
		return nil, &cfssltest.Refusal{Status: http.StatusBadRequest, Code: 9000}
	})
	for _, name := range []string{"workload", "other", "serving"} {
		o := order(t, 1)
		o.Profile = name
		_, _ = s.Sign(t.Context(), o) // it is refused
	}
	const id = " URI:spiffe://example.org/workload/1"
	if want := []string{"theirs primary" + id, "theirs second" + id, "serving primary" + id}; !slices.Equal(got, want) {
		t.Errorf("asked was\n%q, want\n%q", got, want)
	}
}

// TestSubjects: a subject of the request would come into the certificate. It is never sent unless the operator says that it is dropped there.
func TestSubjects(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	withSubject := func(t *testing.T) signer.Order {
		o := signertest.NewOrder(t, 1, key, now)
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "admin", Organization: []string{"o"}}}, key)
		must(t, err)
		o.Request, err = csr.Parse(der, csr.Rules{})
		must(t, err)
		return o
	}
	t.Run("not sent", func(t *testing.T) {
		b := newBed(t, nil)
		if _, err := b.open(t).Sign(t.Context(), withSubject(t)); !errors.Is(err, signer.ErrPermanent) || !strings.Contains(err.Error(), "csr_subjects") {
			t.Errorf("got %v", err)
		}
		if b.server.Requests() != 0 {
			t.Error("it was sent")
		}
	})
	t.Run("sent and dropped", func(t *testing.T) {
		b := newBed(t, func(c *cfssltest.Config) {
			p := c.Profiles["workload"]
			p.DropsSubject = true
			c.Profiles["workload"] = p
		})
		b.config.SendsSubject = true
		must(t, signAndCheck(t, b.open(t), withSubject(t)))
	})
	t.Run("sent and not dropped", func(t *testing.T) {
		b := newBed(t, nil)
		b.config.SendsSubject = true
		if err := signAndCheck(t, b.open(t), withSubject(t)); err == nil || !strings.Contains(err.Error(), "subject was not approved") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a subject in the certificate", func(t *testing.T) {
		b := newBed(t, nil)
		o := withSubject(t)
		o.Leaf.Subject = o.Request.RawSubject()
		b.config.SendsSubject = true
		if _, err := b.open(t).Sign(t.Context(), o); !errors.Is(err, signer.ErrPermanent) {
			t.Errorf("got %v", err)
		}
	})
}

// TestIssuers: the issuer that the server tells is believed only if it leads to a pinned root, and asked for again when the server has a new one.
func TestIssuers(t *testing.T) {
	t.Run("of another hierarchy", func(t *testing.T) {
		b := newBed(t, nil)
		b.config.Chain = nil // the root is pinned, and the server tells one certificate, which is two steps below it
		if err := signAndCheck(t, b.open(t), order(t, 1)); !errors.Is(err, signer.ErrWrong) || !strings.Contains(err.Error(), "pinned root") {
			t.Errorf("got %v", err)
		}
		if n := b.server.Requests(); n != 1 {
			t.Errorf("%d requests, want the question for the issuer alone: no certificate is worth its signature", n)
		}
	})
	t.Run("asked once", func(t *testing.T) {
		b := newBed(t, nil)
		b.asksForIssuer(t)
		s := b.open(t)
		for n := range 3 {
			must(t, signAndCheck(t, s, order(t, n)))
		}
		if n := b.server.Requests(); n != 4 {
			t.Errorf("%d requests, want 4", n)
		}
	})
	t.Run("replaced", func(t *testing.T) {
		socket := t.TempDir() + "/s"
		b := newBed(t, func(c *cfssltest.Config) { c.Socket = socket })
		b.asksForIssuer(t)
		s := b.open(t)
		must(t, signAndCheck(t, s, order(t, 1)))
		b.server.Stop()
		// the intermediate above signs now, and is pinned itself
		newBed(t, func(c *cfssltest.Config) {
			c.Socket, c.Authority = socket, cfssltest.Authority{Certificate: b.hierarchy.Middle.Certificate, Key: b.hierarchy.Middle.Key}
		})
		must(t, signAndCheck(t, s, order(t, 2)))
	})
	t.Run("not the configured one", func(t *testing.T) {
		b := newBed(t, nil)
		middle := b.hierarchy.Middle.Certificate
		b.config.Chain = []*x509.Certificate{middle}
		s := b.open(t)
		prober, ok := s.(signer.Prober)
		if !ok {
			t.Fatal("it does not probe")
		}
		if err := prober.Probe(t.Context(), now); err == nil || !strings.Contains(err.Error(), "not the configured issuing certificate") {
			t.Errorf("got %v", err)
		}
		if signAndCheck(t, s, order(t, 1)) == nil {
			t.Error("a leaf of another issuer passes")
		}
	})
}

func TestClientCertificate(t *testing.T) {
	h := signertest.NewHierarchy(t, now)
	pool := x509.NewCertPool()
	pool.AddCert(h.Root.Certificate)
	b := newBed(t, func(c *cfssltest.Config) { c.ClientCAs = pool })
	if err := signAndCheck(t, b.open(t), order(t, 1)); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without one: %v", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	none := signertest.Forgery{}
	answer := none.Answer(t, *h, signertest.NewOrder(t, 1, key, now).Leaf)
	b.config.Client = &tls.Certificate{Certificate: answer.DER(), PrivateKey: key}
	must(t, signAndCheck(t, b.open(t), order(t, 1)))
}

func TestNewRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*cfssl.Config)
		want   string
	}{
		"no roots":               {func(c *cfssl.Config) { c.Roots = nil }, "trust anchors"},
		"no key":                 {func(c *cfssl.Config) { c.Key = cfssl.Key{} }, "authentication key of at least 32 bytes"},
		"no timeout":             {func(c *cfssl.Config) { c.Timeout = 0 }, "timeout"},
		"no connections":         {func(c *cfssl.Config) { c.Connections = 0 }, "connection"},
		"negative dates":         {func(c *cfssl.Config) { c.Choices.Later = -1 }, "not negative"},
		"no server":              {func(c *cfssl.Config) { c.Server = "" }, "https://HOST"},
		"plain HTTP":             {func(c *cfssl.Config) { c.Server = "http://127.0.0.1:8888" }, "plain http"},
		"no scheme":              {func(c *cfssl.Config) { c.Server = "127.0.0.1:8888" }, "https://HOST"},
		"two servers":            {func(c *cfssl.Config) { c.Server = "https://a.example.org,b.example.org" }, "one server"},
		"a user":                 {func(c *cfssl.Config) { c.Server = "https://user:hunter2@a.example.org" }, "without user"},
		"a path":                 {func(c *cfssl.Config) { c.Server = "https://a.example.org/api" }, "without user, path"},
		"a query":                {func(c *cfssl.Config) { c.Server = "https://a.example.org/?a" }, "without user, path and query"},
		"a relative socket":      {func(c *cfssl.Config) { c.Server = "unix://run/cfssl.sock" }, "unix:///PATH"},
		"a socket with TLS":      {func(c *cfssl.Config) { c.Server = "unix:///run/cfssl.sock" }, "no TLS"},
		"no server certificates": {func(c *cfssl.Config) { c.ServerCAs = nil }, "the machine's are not used"},
		"another chain":          {func(c *cfssl.Config) { c.Chain = c.ServerCAs }, "does not lead to a trust anchor"},
		"two labels, one chain":  {func(c *cfssl.Config) { c.Profiles = map[string]cfssl.Profile{"a": {Name: "a", Label: "b"}} }, "same label"},
		"another trust domain's roots": {func(c *cfssl.Config) {
			roots, err := bundle.New(signertest.TrustDomain, c.ServerCAs)
			must(t, err)
			c.Roots = roots
		}, "does not lead to a trust anchor"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil)
			test.change(&b.config)
			_, err := cfssl.New(b.config)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// TestHosts: a request's own names are not what the server certifies.
func TestHosts(t *testing.T) {
	b := newBed(t, nil)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	o := signertest.NewOrder(t, 1, key, now)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"www.example.org"}}, key)
	must(t, err)
	o.Request, err = csr.Parse(der, csr.Rules{})
	must(t, err)
	signed, err := b.open(t).Sign(t.Context(), o)
	must(t, err)
	if leaf := signed.Leaf(); len(leaf.DNSNames) != 0 || len(leaf.URIs) != 1 || bytes.Contains(leaf.Raw, []byte("www.example.org")) {
		t.Errorf("it names %v and %v", leaf.DNSNames, leaf.URIs)
	}
}
