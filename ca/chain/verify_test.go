package chain

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

func TestVerifyReturnsThePath(t *testing.T) {
	f := newFixture(t)
	path, err := f.verify(t)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, certificate := range path.Certificates {
		names = append(names, certificate.Subject.CommonName)
	}
	if want := []string{"leaf", "Intermediate", "Root"}; !slices.Equal(names, want) {
		t.Errorf("found the path %v, want %v", names, want)
	}
	if !slices.Equal(path.Revocation, []bool{false, false}) {
		t.Errorf("without lists nothing was checked, found %v", path.Revocation)
	}
}

func TestVerifyAccepts(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"the first second":                 func(f *fixture) { f.options.At = f.leaf.NotBefore },
		"a fraction of the last second":    func(f *fixture) { f.options.At = f.leaf.NotAfter.Add(999 * time.Millisecond) },
		"a path length that is not needed": func(f *fixture) { f.intermediate.MaxPathLen = -1; f.intermediate.MaxPathLenZero = false },
		"a host in capitals":               func(f *fixture) { f.options.Host = "LEAF.Example.Test" },
		"a host with a trailing dot":       func(f *fixture) { f.options.Host = "leaf.example.test." },
		"a host below a wildcard":          func(f *fixture) { f.options.Host = "a.wild.example.test" },
		"an address":                       func(f *fixture) { f.options.Host = "192.0.2.7" },
		"no host":                          func(f *fixture) { f.options.Host = "" },
		"a URI":                            func(f *fixture) { f.options.URI = "spiffe://example.test/ns/a/sa/b" },
		"a SPIFFE ID":                      func(f *fixture) { f.options.SPIFFEID = spiffeid.RequireFromString("spiffe://example.test/ns/a/sa/b") },
		"both usages":                      func(f *fixture) { f.options.Usages = append(f.options.Usages, x509.ExtKeyUsageClientAuth) },
		"any usage":                        func(f *fixture) { f.options.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} },
		"no usage wanted": func(f *fixture) {
			f.options.Usages = nil
			f.leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
		},
		"a leaf with any usage":          func(f *fixture) { f.leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} },
		"a leaf without usages":          func(f *fixture) { f.leaf.ExtKeyUsage = nil },
		"an intermediate with the usage": func(f *fixture) { f.intermediate.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} },
		"a leaf that is a CA":            func(f *fixture) { f.leaf.IsCA = true },
		"no key usage on a CA":           func(f *fixture) { f.intermediate.KeyUsage = 0 },
		"a wanted key usage":             func(f *fixture) { f.options.KeyUsage = x509.KeyUsageDigitalSignature },
		"an unknown extension": func(f *fixture) {
			f.leaf.ExtraExtensions = []pkix.Extension{testExtension(testIDPrivate, false, []byte{5, 0})}
		},
		"an intermediate twice": func(f *fixture) {
			f.signed = func(_, i *entity) { f.options.Intermediates = append(f.options.Intermediates, i.certificate) }
		},
		"the root among the intermediates": func(f *fixture) {
			f.signed = func(r, _ *entity) { f.options.Intermediates = append(f.options.Intermediates, r.certificate) }
		},
		"an intermediate as the anchor": func(f *fixture) {
			f.signed = func(_, i *entity) { f.options.Roots = []*x509.Certificate{i.certificate} }
		},
		"a path length of one": func(f *fixture) { f.options.PathLength = new(int); *f.options.PathLength = 1 },
		"an expired root beside the good": func(f *fixture) {
			old := rootTemplate()
			old.NotAfter = testNow.Add(-time.Minute)
			f.options.Roots = append(f.options.Roots, issue(t, old, f.keys[0], nil).certificate)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			change(f)
			if _, err := f.verify(t); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	weak, err := weakKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		position int
		rule     string
		change   func(f *fixture)
	}{
		"an expired leaf":         {1, "§6.1.3 (a)(2)", func(f *fixture) { f.options.At = f.leaf.NotAfter.Add(time.Second) }},
		"a leaf of the future":    {1, "§6.1.3 (a)(2)", func(f *fixture) { f.options.At = f.leaf.NotBefore.Add(-time.Nanosecond) }},
		"an expired intermediate": {2, "§6.1.3 (a)(2)", func(f *fixture) { f.intermediate.NotAfter = testNow.Add(-time.Second) }},
		"an expired root":         {3, "§6.1.3 (a)(2)", func(f *fixture) { f.root.NotAfter = testNow.Add(-time.Second) }},
		"an issuer that is no CA": {2, "§6.1.4 (k)", func(f *fixture) {
			f.intermediate.IsCA, f.intermediate.KeyUsage = false, 0
			f.intermediate.MaxPathLenZero = false
			f.intermediate.MaxPathLen = -1
		}},
		"a CA without keyCertSign":       {2, "§6.1.4 (n)", func(f *fixture) { f.intermediate.KeyUsage = x509.KeyUsageCRLSign }},
		"a root without keyCertSign":     {3, "§6.1.4 (n)", func(f *fixture) { f.root.KeyUsage = x509.KeyUsageCRLSign }},
		"a path length of the root":      {3, "§6.1.4 (l)", func(f *fixture) { f.root.MaxPathLen, f.root.MaxPathLenZero = 0, true }},
		"a path length of the caller":    {2, "§6.1.2 (k)", func(f *fixture) { f.options.PathLength = new(int) }},
		"another host":                   {1, "RFC 9525", func(f *fixture) { f.options.Host = "other.example.test" }},
		"a host that is the common name": {1, "RFC 9525", func(f *fixture) { f.options.Host = "leaf" }},
		"the parent of a wildcard":       {1, "RFC 9525", func(f *fixture) { f.options.Host = "wild.example.test" }},
		"two labels for a wildcard":      {1, "RFC 9525", func(f *fixture) { f.options.Host = "a.b.wild.example.test" }},
		"a wildcard as the host":         {1, "RFC 9525", func(f *fixture) { f.options.Host = "*.wild.example.test" }},
		"a wildcard inside a label":      {1, "§4.2.1.6", func(f *fixture) { f.leaf.DNSNames = []string{"le*.example.test"} }},
		"another address":                {1, "RFC 9525", func(f *fixture) { f.options.Host = "192.0.2.8" }},
		"an address mapped into IPv6":    {1, "RFC 9525", func(f *fixture) { f.options.Host = "::ffff:192.0.2.7" }},
		"another URI":                    {1, "RFC 9525", func(f *fixture) { f.options.URI = "spiffe://example.test/ns/a/sa/B" }},
		"another SPIFFE ID":              {1, "X509-SVID §2", func(f *fixture) { f.options.SPIFFEID = spiffeid.RequireFromString("spiffe://example.test/ns/a/sa/c") }},
		"a SPIFFE ID and a second URI": {1, "X509-SVID §2", func(f *fixture) {
			f.options.SPIFFEID = spiffeid.RequireFromString("spiffe://example.test/ns/a/sa/b")
			f.leaf.URIs = append(f.leaf.URIs, &url.URL{Scheme: "https", Host: "example.test"})
		}},
		"a SPIFFE ID of a CA": {1, "X509-SVID §5.2", func(f *fixture) {
			f.options.SPIFFEID = spiffeid.RequireFromString("spiffe://example.test/ns/a/sa/b")
			f.leaf.IsCA = true
		}},
		"a usage that the leaf lacks":         {1, "§4.2.1.12", func(f *fixture) { f.leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }},
		"one of two usages":                   {1, "§4.2.1.12", func(f *fixture) { f.options.Usages = append(f.options.Usages, x509.ExtKeyUsageCodeSigning) }},
		"a usage that the intermediate lacks": {2, "§4.2.1.12", func(f *fixture) { f.intermediate.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }},
		"a usage that the root lacks":         {3, "§4.2.1.12", func(f *fixture) { f.root.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }},
		"a key usage that the leaf lacks":     {1, "§4.2.1.3", func(f *fixture) { f.options.KeyUsage = x509.KeyUsageKeyAgreement }},
		"a critical extension of the leaf": {1, "§4.2", func(f *fixture) {
			f.leaf.ExtraExtensions = []pkix.Extension{testExtension(testIDPrivate, true, []byte{5, 0})}
		}},
		"a critical extension of the intermediate": {2, "§4.2", func(f *fixture) {
			f.intermediate.ExtraExtensions = []pkix.Extension{testExtension(testIDPrivate, true, []byte{5, 0})}
		}},
		"a critical extension of the root": {3, "§4.2", func(f *fixture) {
			f.root.ExtraExtensions = []pkix.Extension{testExtension(testIDPrivate, true, []byte{5, 0})}
		}},
		"a weak key of the leaf":         {1, "§4.1.2.7", func(f *fixture) { f.keys[2] = weak }},
		"a weak key of the intermediate": {2, "§4.1.2.7", func(f *fixture) { f.keys[1] = weak }},
		"a weak key of the root":         {3, "§4.1.2.7", func(f *fixture) { f.keys[0] = weak }},
		"SHA-1":                          {2, "§4.1.1.2", func(f *fixture) { f.intermediate.SignatureAlgorithm = x509.ECDSAWithSHA1 }},
		"no intermediate":                {1, "§6.1.3 (a)(4)", func(f *fixture) { f.signed = func(_, _ *entity) { f.options.Intermediates = nil } }},
		"another root of the same name": {2, "§6.1.3 (a)(1)", func(f *fixture) {
			f.signed = func(_, _ *entity) {
				f.options.Roots = []*x509.Certificate{issue(t, rootTemplate(), testKey(t, 4), nil).certificate}
			}
		}},
		"another root": {2, "§6.1.3 (a)(4)", func(f *fixture) {
			f.signed = func(_, _ *entity) {
				f.options.Roots = []*x509.Certificate{issue(t, caTemplate("Other", 9), testKey(t, 4), nil).certificate}
			}
		}},
		"an intermediate of another key": {1, "§6.1.3 (a)(1)", func(f *fixture) {
			f.signed = func(root, _ *entity) {
				f.options.Intermediates = []*x509.Certificate{issue(t, intermediateTemplate(), testKey(t, 4), root).certificate}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c.change(f)
			_, err := f.verify(t)
			wantRefusal(t, err, c.position, c.rule)
		})
	}
}

func TestAnyKeyWaivesTheKeyPolicy(t *testing.T) {
	weak, err := weakKey()
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.keys[2], f.options.AnyKey = weak, true
	if _, err := f.verify(t); err != nil {
		t.Error(err)
	}
}

func TestRulesForIssuersThatAlwaysBind(t *testing.T) {
	constraints := func(critical bool, base string) func(c *x509.Certificate) {
		return func(c *x509.Certificate) {
			c.ExcludedDNSDomains, c.PermittedDNSDomainsCritical = []string{base}, critical
		}
	}
	extra := func(id asn1.ObjectIdentifier, critical bool, value string) func(c *x509.Certificate) {
		return func(c *x509.Certificate) {
			c.ExtraExtensions = append(c.ExtraExtensions, testExtension(id, critical, []byte(value)))
		}
	}
	policyConstraints, basicConstraints := asn1.ObjectIdentifier{2, 5, 29, 36}, asn1.ObjectIdentifier{2, 5, 29, 19}
	inhibitAny := asn1.ObjectIdentifier{2, 5, 29, 54}
	long := func(c *x509.Certificate) { c.SerialNumber.Lsh(c.SerialNumber, 161) }
	ca := extra(basicConstraints, false, "\x30\x03\x01\x01\xff")
	for name, c := range map[string]struct {
		change func(c *x509.Certificate)
		// refused as a root, an intermediate, a leaf
		root, intermediate, leaf bool
	}{
		"a serial number of 21 octets":                      {change: long, intermediate: true, leaf: true},
		"a key usage for a CA in another certificate":       {change: func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCertSign }, leaf: true},
		"name constraints that are not critical":            {constraints(false, "elsewhere.test"), true, true, true},
		"name constraints with a leading period":            {constraints(true, ".elsewhere.test"), true, true, true},
		"name constraints":                                  {change: constraints(true, "elsewhere.test"), leaf: true},
		"an alternative name with a wildcard inside":        {change: func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "w*w.test") }, intermediate: true, leaf: true},
		"inhibit anyPolicy that is not critical":            {extra(inhibitAny, false, "\x02\x01\x05"), true, true, true},
		"policy constraints, not critical, and no policies": {extra(policyConstraints, false, "\x30\x03\x80\x01\x05"), true, true, true},
		"policy constraints, not critical, and policies": {change: func(c *x509.Certificate) {
			extra(policyConstraints, false, "\x30\x03\x80\x01\x05")(c)
			c.Policies = []x509.OID{anyPolicy(t)}
		}, leaf: true},
		"basic constraints that are not critical": {change: func(c *x509.Certificate) {
			if c.IsCA {
				ca(c)
			}
		}, root: true},
		"no key usage": {change: func(c *x509.Certificate) { c.KeyUsage = 0 }},
	} {
		for i, refused := range []bool{c.leaf, c.intermediate, c.root} {
			t.Run(fmt.Sprintf("%s, certificate %d", name, i+1), func(t *testing.T) {
				f := newFixture(t)
				c.change([]*x509.Certificate{f.leaf, f.intermediate, f.root}[i])
				_, err := f.verify(t)
				if refused {
					wantRefusal(t, err, i+1, "RFC 5280 §4")
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestKeyIdentifiersThatAreMissing(t *testing.T) {
	bare := func(c *x509.Certificate) *x509.Certificate {
		c.SubjectKeyId, c.ExtraExtensions = nil, append(c.ExtraExtensions, testExtension(asn1.ObjectIdentifier{2, 5, 29, 19}, true, []byte("\x30\x03\x01\x01\xff")))
		c.IsCA, c.BasicConstraintsValid, c.MaxPathLen = false, false, 0 // or crypto/x509 adds one
		return c
	}
	root := issue(t, bare(rootTemplate()), testKey(t, 0), nil)
	leaf := issue(t, leafTemplate(), testKey(t, 2), root)
	_, err := Verify(leaf.certificate, VerifyOptions{Roots: []*x509.Certificate{root.certificate}, At: testNow})
	wantRefusal(t, err, 1, "§4.2.1.1")

	// the leaf's issuer has none, so neither has the leaf; the anchor has one
	root = issue(t, rootTemplate(), testKey(t, 0), nil)
	intermediate := issue(t, bare(intermediateTemplate()), testKey(t, 1), root)
	named := *intermediate.certificate
	named.SubjectKeyId = []byte("named")
	leaf = issue(t, leafTemplate(), testKey(t, 2), &entity{intermediate.key, &named})
	options := VerifyOptions{Roots: []*x509.Certificate{root.certificate}, Intermediates: []*x509.Certificate{intermediate.certificate}, At: testNow}
	_, err = Verify(leaf.certificate, options)
	wantRefusal(t, err, 2, "§4.2.1.2")
	options.Roots = options.Intermediates
	if _, err := Verify(leaf.certificate, options); err != nil {
		t.Errorf("as an anchor it is pinned: %v", err)
	}
}

// TestRootsFromBeforeTheRules: an anchor that is signed with SHA-1 is not held to them.
func TestRootsFromBeforeTheRules(t *testing.T) {
	for name, algorithm := range map[string]x509.SignatureAlgorithm{"SHA-1": x509.ECDSAWithSHA1, "SHA-256": x509.ECDSAWithSHA256} {
		f := newFixture(t)
		f.root.SignatureAlgorithm = algorithm
		f.root.ExcludedDNSDomains = []string{".elsewhere.test"}
		_, err := f.verify(t)
		if name == "SHA-1" && err != nil {
			t.Errorf("such roots are in use: %v", err)
		}
		if name == "SHA-256" {
			wantRefusal(t, err, 3, "§4.2.1.10")
		}
		f = newFixture(t)
		f.root.SignatureAlgorithm = algorithm
		f.root.ExcludedDNSDomains = []string{".example.test"}
		if _, err = f.verify(t); err == nil {
			t.Error("its constraints bind all the same")
		}
	}
}

func TestConformingHoldsIssuersToTheOtherRules(t *testing.T) {
	for name, c := range map[string]struct {
		position int
		change   func(f *fixture)
	}{
		"an intermediate without a key usage": {2, func(f *fixture) { f.intermediate.KeyUsage = 0 }},
		"a root without a key usage":          {3, func(f *fixture) { f.root.KeyUsage = 0 }},
		"a root that is older than the rules": {3, func(f *fixture) {
			f.root.SignatureAlgorithm, f.root.ExcludedDNSDomains = x509.ECDSAWithSHA1, []string{"elsewhere.test"}
		}},
		"a country that is none": {1, func(f *fixture) { f.leaf.Subject.Country = []string{"Utopia"} }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c.change(f)
			if _, err := f.verify(t); err != nil {
				t.Fatalf("such certificates are in use: %v", err)
			}
			f = newFixture(t)
			c.change(f)
			f.options.Conforming = true
			_, err := f.verify(t)
			wantRefusal(t, err, c.position, "RFC 5280")
		})
	}
	f := newFixture(t)
	f.options.Conforming = true
	f.root.SerialNumber.SetInt64(0).Lsh(f.root.SerialNumber.SetInt64(1), 161)
	if _, err := f.verify(t); err != nil {
		t.Errorf("a root's serial number is never used: %v", err)
	}
}

func anyPolicy(t *testing.T) x509.OID {
	t.Helper()
	policy, err := x509.ParseOID("2.5.29.32.0")
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func TestKeyIdentifiersThatDoNotFit(t *testing.T) {
	f := newFixture(t)
	f.signed = func(root, _ *entity) {
		renamed := intermediateTemplate()
		renamed.SubjectKeyId = []byte("other")
		f.options.Intermediates = []*x509.Certificate{issue(t, renamed, f.keys[1], root).certificate}
	}
	if _, err := f.verify(t); err != nil {
		t.Errorf("identifiers help to find issuers and decide nothing: %v", err)
	}
	f = newFixture(t)
	f.options.Conforming = true
	f.signed = func(root, _ *entity) {
		renamed := intermediateTemplate()
		renamed.SubjectKeyId = []byte("other")
		f.options.Intermediates = []*x509.Certificate{issue(t, renamed, f.keys[1], root).certificate}
	}
	_, err := f.verify(t)
	wantRefusal(t, err, 1, "§4.2.1.1")
}

// TestAnchorAsLeaf: crypto/x509 accepts a leaf that stands among the roots without looking at anything else.
func TestAnchorAsLeaf(t *testing.T) {
	selfSigned := leafTemplate()
	own := issue(t, selfSigned, testKey(t, 5), nil)
	options := VerifyOptions{Roots: []*x509.Certificate{own.certificate}, At: testNow, Host: "leaf.example.test"}
	_, err := Verify(own.certificate, options)
	wantRefusal(t, err, 1, "§6.1.3 (a)(4)")
	options.AnchorLeaf = true
	path, err := Verify(own.certificate, options)
	if err != nil || len(path.Certificates) != 1 {
		t.Errorf("AnchorLeaf asks for it: %v", err)
	}
	options.Host = "other.example.test"
	if _, err := Verify(own.certificate, options); err == nil {
		t.Error("the names of an anchor count, too")
	}

	// signed by another, though it says that it is signed by itself
	other := *own.certificate
	other.PublicKey = testKey(t, 7).Public()
	forged := issue(t, selfSigned, testKey(t, 5), &entity{testKey(t, 7), &other})
	options = VerifyOptions{Roots: []*x509.Certificate{forged.certificate}, At: testNow, AnchorLeaf: true}
	_, err = Verify(forged.certificate, options)
	wantRefusal(t, err, 1, "§6.1.3 (a)(1)")

	root := issue(t, rootTemplate(), testKey(t, 0), nil)
	issued := issue(t, leafTemplate(), testKey(t, 2), root)
	options = VerifyOptions{Roots: []*x509.Certificate{issued.certificate}, At: testNow, AnchorLeaf: true}
	_, err = Verify(issued.certificate, options)
	wantRefusal(t, err, 1, "§6.1.3 (a)(4)")
}

func TestSelfIssuedCertificatesAreNotCounted(t *testing.T) {
	root := issue(t, rootTemplate(), testKey(t, 0), nil)
	old := issue(t, intermediateTemplate(), testKey(t, 1), root) // path length 0
	rolled := issue(t, intermediateTemplate(), testKey(t, 3), old)
	leaf := issue(t, leafTemplate(), testKey(t, 2), rolled)
	options := VerifyOptions{Roots: []*x509.Certificate{root.certificate}, Intermediates: []*x509.Certificate{rolled.certificate, old.certificate}, At: testNow}
	path, err := Verify(leaf.certificate, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(path.Certificates) != 4 {
		t.Errorf("found a path of %d certificates", len(path.Certificates))
	}
}

func TestAnotherPathIsTakenWhenOneDoesNotHold(t *testing.T) {
	bad, good := issue(t, caTemplate("Bad", 10), testKey(t, 0), nil), issue(t, caTemplate("Good", 11), testKey(t, 4), nil)
	constrained := intermediateTemplate()
	constrained.ExcludedDNSDomains = []string{"example.test"}
	crossed := issue(t, constrained, testKey(t, 1), bad)
	free := issue(t, intermediateTemplate(), testKey(t, 1), good)
	leaf := issue(t, leafTemplate(), testKey(t, 2), free)
	path, err := Verify(leaf.certificate, VerifyOptions{
		Roots: []*x509.Certificate{bad.certificate, good.certificate}, Intermediates: []*x509.Certificate{crossed.certificate, free.certificate}, At: testNow,
	})
	if err != nil {
		t.Fatal(err)
	}
	if anchor := path.Certificates[2]; !anchor.Equal(good.certificate) {
		t.Errorf("the path ends at %s", anchor.Subject)
	}
}

func TestWrongOptions(t *testing.T) {
	root := issue(t, rootTemplate(), testKey(t, 0), nil)
	negative := -1
	for name, change := range map[string]func(o *VerifyOptions){
		"no roots":               func(o *VerifyOptions) { o.Roots = nil },
		"no time":                func(o *VerifyOptions) { o.At = time.Time{} },
		"a negative path length": func(o *VerifyOptions) { o.PathLength = &negative },
		"a list from elsewhere":  func(o *VerifyOptions) { o.CRLs = []*CRL{{}} },
		"a thousand candidates":  func(o *VerifyOptions) { o.Intermediates = make([]*x509.Certificate, maxCandidates+1) },
	} {
		options := VerifyOptions{Roots: []*x509.Certificate{root.certificate}, At: testNow}
		change(&options)
		_, err := Verify(root.certificate, options)
		var refusal *Error
		if err == nil || errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Verify(nil, VerifyOptions{Roots: []*x509.Certificate{root.certificate}, At: testNow}); err == nil {
		t.Error("no leaf was accepted")
	}
}

func TestErrorsStayShort(t *testing.T) {
	f := newFixture(t)
	f.leaf.Subject.CommonName = strings.Repeat("x", 10_000)
	f.options.Host = strings.Repeat("y.", 5_000)
	_, err := f.verify(t)
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("found %d octets of error", len(err.Error()))
	}
}
