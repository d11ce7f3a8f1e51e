package server

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	istiov1 "github.com/chancery-ca/chancery/api/istio/v1"
	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/ca/profile"
)

const (
	otherIdentity = "spiffe://example.org/ns/shop/sa/till"
	defaultSAN    = "spiffe://example.org/ns/shop/sa/cart"
)

// criticalSAN is the extension with one URI that Istio's agents ask for: always critical.
func criticalSAN(t *testing.T, uri string) pkix.Extension {
	t.Helper()
	value, err := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(uri)}})
	must(t, err)
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: true, Value: value}
}

// sidecarCSR is what pilot-agent sends: an RSA key, a subject with one empty organization, a critical URI.
func sidecarCSR(t *testing.T, uri string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	return pemCSR(t, key, &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{""}}, ExtraExtensions: []pkix.Extension{criticalSAN(t, uri)},
	})
}

// ztunnelCSR is what ztunnel sends: a P-256 key, an empty subject, a critical URI.
func ztunnelCSR(t *testing.T, uri string) string {
	t.Helper()
	return pemCSR(t, newKey(t), &x509.CertificateRequest{ExtraExtensions: []pkix.Extension{criticalSAN(t, uri)}})
}

func pemCSR(t *testing.T, key crypto.Signer, template *x509.CertificateRequest) string {
	t.Helper()
	return string(pem.Encode("CERTIFICATE REQUEST", newCSR(t, key, template)))
}

func (b *bed) create(request *istiov1.IstioCertificateRequest) ([]string, error) {
	b.t.Helper()
	response, err := b.istio().CreateCertificate(b.bearer(goodToken), request)
	return response.GetCertChain(), err
}

// certificates reads an element of the answer.
func certificates(t *testing.T, text string) []*x509.Certificate {
	t.Helper()
	blocks, err := pem.Decode([]byte(text), pem.Rules{Labels: []string{"CERTIFICATE"}})
	must(t, err)
	var out []*x509.Certificate
	for _, block := range blocks {
		certificate, err := x509.ParseCertificate(block.Bytes)
		must(t, err)
		out = append(out, certificate)
	}
	return out
}

// TestIstioAnswer holds the answer against what pilot-agent and ztunnel read.
func TestIstioAnswer(t *testing.T) {
	b := newBed(t)
	for name, csr := range map[string]string{"pilot-agent": sidecarCSR(t, defaultSAN), "ztunnel": ztunnelCSR(t, defaultSAN), "no name asked": ztunnelCSRWithoutName(t)} {
		t.Run(name, func(t *testing.T) {
			elements, err := b.create(&istiov1.IstioCertificateRequest{Csr: csr, Metadata: fields(t, map[string]any{"CertSigner": ""})})
			must(t, err)
			if len(elements) != 3 {
				t.Fatalf("%d elements, want leaf, intermediate and bundle", len(elements))
			}
			for i, element := range elements[:2] {
				if n := len(certificates(t, element)); n != 1 {
					t.Errorf("element %d holds %d certificates, want one", i, n)
				}
			}
			leaf, intermediate, roots := certificates(t, elements[0])[0], certificates(t, elements[1])[0], certificates(t, elements[2])
			if len(roots) != 2 || !roots[0].Equal(b.hierarchy.Root) || !roots[1].Equal(b.other.Root) {
				t.Errorf("the last element holds %d certificates, want both roots", len(roots))
			}
			if !intermediate.Equal(b.hierarchy.Issuer) {
				t.Error("the second element is not the intermediate")
			}
			if len(leaf.URIs) != 1 || leaf.URIs[0].String() != defaultSAN || leaf.Subject.String() != "" {
				t.Errorf("the leaf is for %v, subject %q", leaf.URIs, leaf.Subject)
			}
			pool, between := x509.NewCertPool(), x509.NewCertPool()
			pool.AddCert(roots[0])
			between.AddCert(intermediate)
			_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			must(t, err)
		})
	}
	for _, entry := range b.issued() {
		if entry.Origin.Door != string(ca.DoorIstio) || entry.Profile != ca.DefaultProfile {
			t.Errorf("the ledger says door %s, profile %s", entry.Origin.Door, entry.Profile)
		}
	}
}

func ztunnelCSRWithoutName(t *testing.T) string {
	t.Helper()
	return pemCSR(t, newKey(t), &x509.CertificateRequest{})
}

func fields(t *testing.T, values map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(values)
	must(t, err)
	return s
}

func TestIstioValidity(t *testing.T) {
	b := newBed(t)
	for name, test := range map[string]struct {
		seconds int64
		want    time.Duration // before the jitter; zero if it is refused
	}{
		"zero is the default":                      {0, lifetime},
		"negative is the default":                  {-1, lifetime},
		"the smallest number is the default":       {math.MinInt64, lifetime},
		"what is asked for":                        {7200, 2 * time.Hour},
		"the maximum":                              {86400, maxLife},
		"more than the maximum":                    {86401, maxLife},
		"more than a Duration holds":               {math.MaxInt64/int64(time.Second) + 1, maxLife},
		"the largest number":                       {math.MaxInt64, maxLife},
		"what would be an hour after an overflow":  {overflowing(time.Hour), maxLife},
		"below the minimum":                        {60, 0},
		"what would be a minute after an overflow": {overflowing(time.Minute), maxLife},
	} {
		t.Run(name, func(t *testing.T) {
			elements, err := b.create(&istiov1.IstioCertificateRequest{Csr: ztunnelCSR(t, defaultSAN), ValidityDuration: test.seconds})
			if test.want == 0 {
				wantCode(t, err, codes.InvalidArgument)
				return
			}
			must(t, err)
			leaf := certificates(t, elements[0])[0]
			wantLife(t, leaf, test.want, 0.05)
		})
	}
}

// overflowing is a number of seconds of which the nanoseconds, in 64 bits, are those of d: 10^9 is 2^9 times an odd number, so that 2^55 seconds are a
// multiple of 2^64 nanoseconds.
func overflowing(d time.Duration) int64 { return int64(d/time.Second) + 1<<55 }

// wantLife wants a lifetime of at most want and of at least want less the jitter.
func wantLife(t *testing.T, leaf *x509.Certificate, want time.Duration, jitter float64) time.Duration {
	t.Helper()
	life := leaf.NotAfter.Sub(leaf.NotBefore) - profile.Backdate
	least := time.Duration(float64(want)*(1-jitter)) - time.Second // times are cut to seconds
	if life > want || life < least {
		t.Errorf("the lifetime is %s, want from %s to %s", life, least, want)
	}
	return life
}

// TestIstioJitter: lifetimes are spread downwards, since ztunnel renews at exactly half of them.
func TestIstioJitter(t *testing.T) {
	b := newBed(t)
	csr := ztunnelCSR(t, defaultSAN)
	seen := make(map[time.Duration]bool)
	for range 40 {
		elements, err := b.create(&istiov1.IstioCertificateRequest{Csr: csr})
		must(t, err)
		seen[wantLife(t, certificates(t, elements[0])[0], lifetime, 0.05)] = true
	}
	if len(seen) < 10 { // of 180 seconds
		t.Errorf("40 certificates have only %d different lifetimes", len(seen))
	}
	// our own door has no jitter: callers are told when to renew
	answer, err := b.issue()
	must(t, err)
	leaf, err := x509.ParseCertificate(answer.GetChain()[0])
	must(t, err)
	wantLife(t, leaf, lifetime, 0)
}

func TestIstioRequestsThatAreRefused(t *testing.T) {
	b := newBed(t)
	valid := ztunnelCSR(t, defaultSAN)
	for name, test := range map[string]struct {
		csr      string
		metadata map[string]any
		code     codes.Code
		says     string
	}{
		"empty metadata":                         {csr: valid},
		"keys that nobody knows":                 {csr: valid, metadata: map[string]any{"Else": map[string]any{"a": []any{1.0}}}},
		"an empty signer":                        {csr: valid, metadata: map[string]any{"CertSigner": "", "ImpersonatedIdentity": ""}},
		"nothing as a signer":                    {csr: valid, metadata: map[string]any{"CertSigner": nil, "ImpersonatedIdentity": nil}},
		"its own identity":                       {csr: valid, metadata: map[string]any{"ImpersonatedIdentity": defaultSAN}},
		"a signer":                               {csr: valid, metadata: map[string]any{"CertSigner": "clusterissuers.example.org/x"}, code: codes.InvalidArgument, says: "CertSigner"},
		"a signer that is no text":               {csr: valid, metadata: map[string]any{"CertSigner": 7.0}, code: codes.InvalidArgument, says: "CertSigner"},
		"another identity":                       {csr: ztunnelCSR(t, otherIdentity), metadata: map[string]any{"ImpersonatedIdentity": otherIdentity}, code: codes.PermissionDenied, says: "another identity"},
		"another identity, its own in the CSR":   {csr: valid, metadata: map[string]any{"ImpersonatedIdentity": otherIdentity}, code: codes.InvalidArgument, says: "same names"},
		"another identity, written differently":  {csr: valid, metadata: map[string]any{"ImpersonatedIdentity": defaultSAN + "/"}, code: codes.PermissionDenied, says: "another identity"},
		"identities in a list":                   {csr: valid, metadata: map[string]any{"ImpersonatedIdentity": []any{defaultSAN}}, code: codes.InvalidArgument, says: "ImpersonatedIdentity"},
		"an identity that is no text":            {csr: valid, metadata: map[string]any{"ImpersonatedIdentity": map[string]any{"id": otherIdentity}}, code: codes.InvalidArgument, says: "ImpersonatedIdentity"},
		"a CSR for another identity":             {csr: ztunnelCSR(t, otherIdentity), code: codes.PermissionDenied},
		"a CSR for another trust domain":         {csr: ztunnelCSR(t, "spiffe://example.com/ns/shop/sa/cart"), code: codes.PermissionDenied},
		"a CSR for its own identity and another": {csr: csrFor(t, defaultSAN, otherIdentity), code: codes.InvalidArgument},
		"no CSR":                                 {code: codes.InvalidArgument},
		"a CSR that is none":                     {csr: "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", code: codes.InvalidArgument},
		"two CSRs":                               {csr: valid + valid, code: codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			request := &istiov1.IstioCertificateRequest{Csr: test.csr}
			if test.metadata != nil {
				request.Metadata = fields(t, test.metadata)
			}
			before := len(b.issued())
			elements, err := b.create(request)
			got := wantCode(t, err, test.code)
			if !strings.Contains(got.Message(), test.says) {
				t.Errorf("the caller is told %q, want %q in it", got.Message(), test.says)
			}
			issued := len(b.issued()) - before
			if want := map[bool]int{true: 1, false: 0}[err == nil]; issued != want || len(elements) != 3*want {
				t.Errorf("%d certificates were issued, %d elements came", issued, len(elements))
			}
		})
	}
}

// nodePods says yes to one ID, for callers on node-a.
type nodePods struct {
	id  string
	err error
}

func (n *nodePods) OnNode(holder *identity.Kubernetes, id spiffeid.ID) error {
	switch {
	case n.err != nil:
		return n.err
	case holder.NodeName != "node-a":
		return errors.New("the caller is on " + holder.NodeName)
	case id.String() != n.id:
		return errors.New("no pod on node-a has " + id.String())
	}
	return nil
}

// proxyBed is a bed with node proxies: the token "proxy" is of one on node-a, "stray" of one on node-b, and the good token of none.
func proxyBed(t *testing.T, pods authorize.Pods) *bed {
	t.Helper()
	b := newBed(t)
	proxies, err := authorize.NodeProxy(authorize.NodeProxies{Cluster: "local", Accounts: []string{"mesh/ztunnel"}, Pods: pods})
	must(t, err)
	config := policy(t, b.signer)
	config.Rule = authorize.First(authorize.Server(ownProfile, ownNames), authorize.Self(), proxies)
	must(t, b.authority.Replace(t.Context(), config))
	b.authenticate(func(_ context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
		node, proxy := map[string]string{"proxy": "node-a", "stray": "node-b"}[credential.Bearer.Reveal()]
		if !proxy {
			return principal(cart), true, nil
		}
		p := principal(spiffeid.RequireFromString("spiffe://example.org/ns/mesh/sa/ztunnel"))
		p.Kubernetes = &identity.Kubernetes{Cluster: "local", Namespace: "mesh", ServiceAccount: "ztunnel", PodName: "ztunnel-" + node, NodeName: node}
		return p, true, nil
	})
	return b
}

func TestImpersonation(t *testing.T) {
	const own, till = "spiffe://example.org/ns/mesh/sa/ztunnel", otherIdentity
	for name, test := range map[string]struct {
		token, wanted, san string
		code               codes.Code
		cause              string // in the audit record, beside what the caller is told
	}{
		"a pod on its node":             {"proxy", till, till, codes.OK, ""},
		"that, with no name in the CSR": {"proxy", till, "", codes.OK, ""},
		"its own identity":              {"proxy", own, own, codes.OK, ""},
		"its own without asking":        {"proxy", "", own, codes.OK, ""},
		"the CSR alone names the pod":   {"proxy", "", till, codes.OK, ""}, // as over chancery.v1
		"a pod on another node":         {"proxy", defaultSAN, defaultSAN, codes.PermissionDenied, "no pod on node-a has " + defaultSAN},
		"another trust domain":          {"proxy", "spiffe://example.com/ns/shop/sa/till", "", codes.PermissionDenied, "is of trust domain example.com"},
		"no SPIFFE ID":                  {"proxy", till + "/", "", codes.PermissionDenied, "is no SPIFFE ID"},
		"a proxy that is elsewhere":     {"stray", till, till, codes.PermissionDenied, "the caller is on node-b"},
		"no proxy":                      {"other", till, till, codes.PermissionDenied, "it may hold its own SPIFFE ID"},
		"another name in the CSR":       {"proxy", till, own, codes.InvalidArgument, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := proxyBed(t, &nodePods{id: till})
			csr := ztunnelCSRWithoutName(t)
			if test.san != "" {
				csr = ztunnelCSR(t, test.san)
			}
			request := &istiov1.IstioCertificateRequest{Csr: csr, Metadata: fields(t, map[string]any{"ImpersonatedIdentity": test.wanted, "CertSigner": ""})}
			response, err := b.istio().CreateCertificate(b.bearer(test.token), request)
			got := wantCode(t, err, test.code)
			if records := strings.Count(b.logs.String(), "msg=audit decision=") - strings.Count(b.logs.String(), "door=server"); records != 1 {
				t.Errorf("there are %d audit records:\n%s", records, b.logs.String())
			}
			switch test.code {
			case codes.OK:
				want := test.wanted
				if want == "" {
					want = test.san
				}
				if leaf := certificates(t, response.GetCertChain()[0])[0]; len(leaf.URIs) != 1 || leaf.URIs[0].String() != want {
					t.Errorf("the leaf is for %v, want %s", leaf.URIs, want)
				}
				entry := b.issued()[0]
				if entry.Identity != own || entry.Names[0] != "URI:"+want || (want == till) != (entry.Rule == "node-proxy") {
					t.Errorf("the ledger says %s got %v by %s", entry.Identity, entry.Names, entry.Rule)
				}
				for _, want := range []string{"spiffe_id=" + own, "names=URI:" + want, "pod=mesh/ztunnel-node-a"} {
					if !strings.Contains(b.logs.String(), want) {
						t.Errorf("the log lacks %q", want)
					}
				}
			case codes.PermissionDenied:
				caller := map[bool]string{true: defaultSAN, false: own}[test.token == "other"]
				same := "metadata ImpersonatedIdentity: " + caller + " may not ask for the certificate of another identity; " +
					"only a node proxy that is configured here may, for the pods on its own node"
				if got.Message() != same {
					t.Errorf("the caller is told %q, want %q", got.Message(), same)
				}
				if details := fmt.Sprint(got.Details()...); strings.Contains(details, "not_allowed") {
					t.Errorf("the details are %s", details)
				}
				if !strings.Contains(b.logs.String(), test.cause) {
					t.Errorf("the log lacks %q:\n%s", test.cause, b.logs.String())
				}
			}
			if issued := len(b.issued()); (issued == 1) != (err == nil) {
				t.Errorf("%d certificates were issued", issued)
			}
		})
	}
	t.Run("the view is behind", func(t *testing.T) {
		b := proxyBed(t, &nodePods{err: errkind.New(errkind.Unavailable, "the view is not up to date; try again").After(time.Second)})
		_, err := b.istio().CreateCertificate(b.bearer("proxy"), &istiov1.IstioCertificateRequest{
			Csr: ztunnelCSR(t, till), Metadata: fields(t, map[string]any{"ImpersonatedIdentity": till}),
		})
		wantUnavailable(t, err)
	})
	t.Run("over our own API", func(t *testing.T) {
		b := proxyBed(t, &nodePods{id: till})
		ask := func(token, uri string) error {
			_, err := b.chancery().IssueCertificate(b.bearer(token), &chanceryv1.IssueCertificateRequest{
				Csr: newCSR(t, newKey(t), nil), Names: &chanceryv1.Names{Uris: []string{uri}},
			})
			return err
		}
		must(t, ask("proxy", till))
		first := wantCode(t, ask("stray", till), codes.PermissionDenied)
		if want := own + " may not hold URI:" + till + ": a node proxy may hold the identities of the pods on its own node"; first.Message() != want {
			t.Errorf("the caller is told %q", first.Message())
		}
		wantCode(t, ask("proxy", defaultSAN), codes.PermissionDenied)
		wantCode(t, ask("other", till), codes.PermissionDenied)
	})
}

func csrFor(t *testing.T, uris ...string) string {
	t.Helper()
	template := &x509.CertificateRequest{}
	for _, text := range uris {
		uri, err := url.Parse(text)
		must(t, err)
		template.URIs = append(template.URIs, uri)
	}
	return pemCSR(t, newKey(t), template)
}

// TestDoors: each listener offers the services of its door, and Istio's only if it is configured.
func TestDoors(t *testing.T) {
	for name, test := range map[string]struct {
		change                   func(*setup)
		offersOurs, offersIstios bool
	}{
		"both":                   {func(*setup) {}, true, true},
		"Istio's alone":          {func(s *setup) { s.door = Door{Istio: true} }, false, true},
		"ours alone":             {func(s *setup) { s.door = Door{Chancery: true} }, true, false},
		"Istio's not configured": {func(s *setup) { s.config.Istio = nil }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, test.change)
			_, err := b.issue()
			wantCode(t, err, map[bool]codes.Code{true: codes.OK, false: codes.Unimplemented}[test.offersOurs])
			_, err = b.create(&istiov1.IstioCertificateRequest{Csr: ztunnelCSR(t, defaultSAN)})
			wantCode(t, err, map[bool]codes.Code{true: codes.OK, false: codes.Unimplemented}[test.offersIstios])
		})
	}
}
