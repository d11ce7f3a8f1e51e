package server

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	istiov1 "github.com/chancery-ca/chancery/api/istio/v1"
	"github.com/chancery-ca/chancery/ca"
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
		"another identity, its own in the CSR":   {csr: valid, metadata: map[string]any{"ImpersonatedIdentity": otherIdentity}, code: codes.PermissionDenied, says: "another identity"},
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
