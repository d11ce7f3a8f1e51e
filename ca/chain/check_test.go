package chain_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
)

// What a backend may answer with, forgery by forgery, is in signer/signertest; here is what a checker is asked to let through, and how it does so.

var checkNow = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

// checkCA is an authority of these tests.
type checkCA struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newCheckCA makes an authority after something in it was changed. Without a parent it is a root.
func newCheckCA(t testing.TB, kind, name string, parent *checkCA, change ...func(*x509.Certificate)) *checkCA {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, NotBefore: checkNow.Add(-24 * time.Hour), NotAfter: checkNow.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, MaxPathLen: -1, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte(kind + name),
	}
	for _, apply := range change {
		apply(template)
	}
	key := leafKeys()[kind]
	by := &checkCA{template, key}
	if parent != nil {
		by = parent
	}
	return &checkCA{checkCertificate(t, template, by, key.Public()), key}
}

func checkCertificate(t testing.TB, template *x509.Certificate, by *checkCA, public any) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, public, by.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// approvedLeaf is content of which one test each changes something.
func approvedLeaf(t testing.TB) chain.Leaf {
	t.Helper()
	spki, err := x509.MarshalPKIXPublicKey(leafKeys()["Ed25519"].Public())
	if err != nil {
		t.Fatal(err)
	}
	return chain.Leaf{
		Serial: big.NewInt(1 << 40), SPKI: spki, Names: identity.Names{URIs: []string{"spiffe://example.org/web"}}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   checkNow.Add(-time.Minute), NotAfter: checkNow.Add(time.Hour),
	}
}

// answer is what a backend would return for a leaf, after something in it was changed.
func (ca *checkCA) answer(t testing.TB, leaf chain.Leaf, above []*x509.Certificate, change ...func(*x509.Certificate)) chain.Chain {
	t.Helper()
	template := standardTemplate(t, leaf)
	for _, apply := range change {
		apply(template)
	}
	signed := checkCertificate(t, template, ca, publicOf(t, leaf.SPKI))
	answer, err := chain.New(append([]*x509.Certificate{signed}, above...)...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func newChecker(t testing.TB, anchors ...*checkCA) *chain.Checker {
	t.Helper()
	var certificates []*x509.Certificate
	for _, anchor := range anchors {
		certificates = append(certificates, anchor.certificate)
	}
	checker, err := chain.NewChecker(certificates)
	if err != nil {
		t.Fatal(err)
	}
	return checker
}

// wantBroken wants a chain.Error of a position and a rule, or none if the rule is empty.
func wantBroken(t testing.TB, err error, position int, rule string) {
	t.Helper()
	if rule == "" {
		if err != nil {
			t.Errorf("got %v, want none", err)
		}
		return
	}
	var broken *chain.Error
	if !errors.As(err, &broken) || broken.Position != position || broken.Rule != rule {
		t.Errorf("got %v, want position %d and rule %s", err, position, rule)
	}
}

func TestNewCheckerNeedsAnchors(t *testing.T) {
	for name, anchors := range map[string][]*x509.Certificate{"none": nil, "a nil one": {nil}} {
		_, err := chain.NewChecker(anchors)
		if err == nil {
			t.Errorf("%s: there is a checker without an anchor", name)
		}
	}
}

// TestCheckedLeaf changes what was approved and what was signed.
func TestCheckedLeaf(t *testing.T) {
	const widened = "a backend cannot widen a certificate"
	set := func(apply func(*chain.Leaf)) func(*chain.Leaf) { return apply }
	as := func(apply func(*x509.Certificate)) func(*x509.Certificate) { return apply }
	points := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 31}, Value: unhex("3016 3014 a012 a010 860e 687474703a2f2f612e6f72672f63")}
	for _, test := range []struct {
		name     string
		approved func(*chain.Leaf)
		signed   func(*x509.Certificate)
		rule     string
	}{
		{"what was approved", nil, nil, ""},
		{"hosts", set(func(l *chain.Leaf) {
			l.Names = identity.Names{DNS: []string{"b.example.org", "A.example.org"}, IPs: []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}
			l.Names = l.Names.Normalize()
		}), nil, ""},
		{"a subject", set(func(l *chain.Leaf) { l.Subject = seq(rdn(oidCommonName, utf8("web"))) }), nil, ""},
		{"usages in another order", nil, as(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		}), ""},
		{"a shorter life", nil, as(func(c *x509.Certificate) { c.NotAfter, c.NotBefore = checkNow.Add(time.Minute), checkNow }), ""},
		{"the last second", nil, as(func(c *x509.Certificate) { c.NotAfter = checkNow }), ""},
		{"where to find revocation lists", nil, as(func(c *x509.Certificate) { c.ExtraExtensions = []pkix.Extension{points} }), ""},
		{"a serial of the backend's choice", set(func(l *chain.Leaf) { l.Serial = nil }), as(func(c *x509.Certificate) { c.SerialNumber = big.NewInt(5) }), ""},
		{"another subject", set(func(l *chain.Leaf) { l.Subject = seq(rdn(oidCommonName, utf8("web"))) }),
			as(func(c *x509.Certificate) { c.RawSubject = seq(rdn(oidCommonName, utf8("admin"))) }), widened},
		{"the subject in another string type", set(func(l *chain.Leaf) { l.Subject = seq(rdn(oidCommonName, utf8("web"))) }),
			as(func(c *x509.Certificate) { c.RawSubject = seq(rdn(oidCommonName, text(0x13, "web"))) }), widened},
		{"a CA certificate of the approved subject", set(func(l *chain.Leaf) {
			l.Subject, l.Names = seq(rdn(oidCommonName, utf8("web"))), identity.Names{DNS: []string{"a.example.org"}}
		}), as(func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, c.KeyUsage|x509.KeyUsageCertSign }), widened},
		{"a usage twice, which hides another", set(func(l *chain.Leaf) {
			l.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageServerAuth}
		}), as(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		}), widened},
		{"an address of the other kind", set(func(l *chain.Leaf) { l.Names = identity.Names{IPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}} }),
			as(func(c *x509.Certificate) {
				c.IPAddresses = nil
				c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: true, Value: unhex("3012 8710 00000000000000000000ffffc0000201")}}
			}), widened},
		{"a name twice", set(func(l *chain.Leaf) { l.Names = identity.Names{DNS: []string{"a.example.org"}} }),
			as(func(c *x509.Certificate) { c.DNSNames = []string{"a.example.org", "a.example.org"} }), widened},
		{"a name in upper case", set(func(l *chain.Leaf) { l.Names = identity.Names{DNS: []string{"a.example.org"}} }),
			as(func(c *x509.Certificate) { c.DNSNames = []string{"A.example.org"} }), widened},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := newCheckCA(t, "P-256", "root", nil)
			leaf := approvedLeaf(t)
			if test.approved != nil {
				test.approved(&leaf)
			}
			signed := leaf
			if signed.Serial == nil {
				signed.Serial = big.NewInt(1)
			}
			var change []func(*x509.Certificate)
			if test.signed != nil {
				change = append(change, test.signed)
			}
			err := newChecker(t, root).Check(root.answer(t, signed, nil, change...), leaf, checkNow)
			wantBroken(t, err, 1, test.rule)
		})
	}
}

// TestCheckedPaths are hierarchies that a chain may have.
func TestCheckedPaths(t *testing.T) {
	noMore := func(c *x509.Certificate) { c.MaxPathLen, c.MaxPathLenZero = 0, true }
	both := func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	for _, kind := range []string{"P-256", "P-384", "P-521", "Ed25519", "RSA-2048"} {
		root := newCheckCA(t, kind, "root", nil)
		middle := newCheckCA(t, "P-256", "middle", root, func(c *x509.Certificate) { c.MaxPathLen = 1 })
		issuer := newCheckCA(t, kind, "issuer", middle, noMore)
		leaf := approvedLeaf(t)
		above := []*x509.Certificate{issuer.certificate, middle.certificate}
		wantBroken(t, newChecker(t, root).Check(issuer.answer(t, leaf, above), leaf, checkNow), 0, "")
		wantBroken(t, newChecker(t, middle).Check(issuer.answer(t, leaf, above[:1]), leaf, checkNow), 0, "")
		wantBroken(t, newChecker(t, issuer).Check(issuer.answer(t, leaf, nil), leaf, checkNow), 0, "")
	}

	root := newCheckCA(t, "P-256", "root", nil, both)
	issuer := newCheckCA(t, "P-384", "issuer", root, noMore, func(c *x509.Certificate) {
		c.PermittedDNSDomainsCritical, c.PermittedURIDomains = true, []string{"example.org"}
	})
	leaf := approvedLeaf(t)
	checker := newChecker(t, root)
	answer := issuer.answer(t, leaf, []*x509.Certificate{issuer.certificate})
	wantBroken(t, checker.Check(answer, leaf, checkNow), 0, "")
	foreign := leaf
	foreign.Names.URIs = []string{"spiffe://example.net/web"}
	wantBroken(t, checker.Check(issuer.answer(t, foreign, answer.Intermediates()), foreign, checkNow), 1, "RFC 5280 §4.2.1.10")
	useless := leaf
	useless.ExtKeyUsage = nil
	wantBroken(t, checker.Check(issuer.answer(t, useless, answer.Intermediates()), useless, checkNow), 0, "")
}

// TestARenewedAnchor has two anchors of one name and key, as when a root was renewed with its old key: the chain ends at the one that fits.
func TestARenewedAnchor(t *testing.T) {
	expired := newCheckCA(t, "P-256", "root", nil, func(c *x509.Certificate) { c.NotAfter = checkNow.Add(-time.Second) })
	renewed := newCheckCA(t, "P-256", "root", nil)
	impostor := newCheckCA(t, "P-384", "root", nil, func(c *x509.Certificate) { c.SubjectKeyId = []byte("P-256root") })
	leaf := approvedLeaf(t)
	answer := renewed.answer(t, leaf, nil)
	for name, anchors := range map[string][]*checkCA{
		"renewed first": {renewed, expired, impostor}, "expired first": {expired, impostor, renewed}, "impostor first": {impostor, expired, renewed},
	} {
		t.Run(name, func(t *testing.T) { wantBroken(t, newChecker(t, anchors...).Check(answer, leaf, checkNow), 0, "") })
	}
	wantBroken(t, newChecker(t, expired).Check(answer, leaf, checkNow), 2, "RFC 5280 §6.1.3 (a)(2)")
	wantBroken(t, newChecker(t, impostor).Check(answer, leaf, checkNow), 1, "RFC 5280 §6.1.3 (a)(1)")

	path, err := chain.IssuerPath([]*x509.Certificate{newCheckCA(t, "P-384", "issuer", renewed).certificate},
		[]*x509.Certificate{expired.certificate, impostor.certificate, renewed.certificate}, checkNow)
	if err != nil || !path[1].Equal(renewed.certificate) {
		t.Errorf("the issuing path ends elsewhere: %v", err)
	}
}

// TestRememberedPathsStillEnd checks a path that was verified once at later times.
func TestRememberedPathsStillEnd(t *testing.T) {
	root := newCheckCA(t, "P-256", "root", nil)
	issuer := newCheckCA(t, "P-384", "issuer", root, func(c *x509.Certificate) { c.NotAfter = checkNow.Add(2 * time.Hour) })
	checker := newChecker(t, root)
	at := func(now time.Time, position int, rule string) {
		t.Helper()
		leaf := approvedLeaf(t)
		leaf.NotBefore, leaf.NotAfter = now, now
		answer := issuer.answer(t, leaf, []*x509.Certificate{issuer.certificate})
		wantBroken(t, checker.Check(answer, leaf, now), position, rule)
	}
	at(checkNow, 0, "")
	at(issuer.certificate.NotAfter, 0, "")
	at(issuer.certificate.NotAfter.Add(time.Second), 2, "RFC 5280 §6.1.3 (a)(2)")
	at(issuer.certificate.NotBefore.Add(-time.Second), 2, "RFC 5280 §6.1.3 (a)(2)")
	at(checkNow, 0, "")
}

// TestAPathIsNotRememberedForItsLeaf has a verified path stand above a leaf that it did not sign.
func TestAPathIsNotRememberedForItsLeaf(t *testing.T) {
	root := newCheckCA(t, "P-256", "root", nil)
	issuer := newCheckCA(t, "P-384", "issuer", root)
	impostor := newCheckCA(t, "P-521", "issuer", root, func(c *x509.Certificate) { c.SubjectKeyId = []byte("P-384issuer") })
	checker, leaf, above := newChecker(t, root), approvedLeaf(t), []*x509.Certificate{issuer.certificate}
	wantBroken(t, checker.Check(issuer.answer(t, leaf, above), leaf, checkNow), 0, "")
	wantBroken(t, checker.Check(impostor.answer(t, leaf, above), leaf, checkNow), 1, "RFC 5280 §6.1.3 (a)(1)")
}

// TestManyPaths has a checker forget and verify again, from many goroutines at once.
func TestManyPaths(t *testing.T) {
	const paths = 150
	root := newCheckCA(t, "P-256", "root", nil)
	checker, leaf := newChecker(t, root), approvedLeaf(t)
	answers := make([]chain.Chain, paths)
	for i := range answers {
		issuer := newCheckCA(t, "P-384", "issuer", root, func(c *x509.Certificate) { c.SerialNumber = big.NewInt(int64(i + 1)) })
		answers[i] = issuer.answer(t, leaf, []*x509.Certificate{issuer.certificate})
	}
	var group sync.WaitGroup
	for caller := range 4 {
		group.Go(func() {
			for i := range answers {
				wantBroken(t, checker.Check(answers[(i*(caller+1))%paths], leaf, checkNow), 0, "")
			}
		})
	}
	group.Wait()
}

func TestChainErrors(t *testing.T) {
	for want, err := range map[string]*chain.Error{
		"certificate 1 of the chain, leaf: D (R)":               {Position: 1, Rule: "R", Detail: "D"},
		"certificate 1 of the chain, leaf (CN=a): D (R)":        {Position: 1, Subject: "CN=a", Rule: "R", Detail: "D"},
		"certificate 3 of the chain, certificate (CN=a): D (R)": {Position: 3, Subject: "CN=a", Rule: "R", Detail: "D"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// a backend's text does not fill a log
	root := newCheckCA(t, "P-256", "root", nil)
	leaf := approvedLeaf(t)
	for _, octets := range []int{500, 60_000} {
		subject := pkix.Name{CommonName: strings.Repeat("a", octets)}
		answer := root.answer(t, leaf, nil, func(c *x509.Certificate) { c.Subject = subject })
		err := newChecker(t, root).Check(answer, leaf, checkNow)
		if err == nil || len(err.Error()) > 500 {
			t.Errorf("a subject of %d octets makes an error of %d: %v", octets, len(err.Error()), err)
		}
	}
}

func TestIssuerPath(t *testing.T) {
	root := newCheckCA(t, "P-256", "root", nil)
	var long []*x509.Certificate
	parent := root
	for i := range 6 {
		parent = newCheckCA(t, "P-384", strings.Repeat("i", i+1), parent)
		long = append([]*x509.Certificate{parent.certificate}, long...)
	}
	weak := newCheckCA(t, "P-384", "weak", root, func(c *x509.Certificate) { c.MaxPathLen, c.MaxPathLenZero = 0, true })
	under := newCheckCA(t, "P-521", "under", weak)
	loop := newCheckCA(t, "P-256", "loop", nil, func(c *x509.Certificate) { c.AuthorityKeyId = c.SubjectKeyId })
	anchors := []*x509.Certificate{root.certificate, loop.certificate}
	for _, test := range []struct {
		name    string
		issuing []*x509.Certificate
		anchors []*x509.Certificate
		want    string
	}{
		{"the root alone", anchors[:1], anchors, ""},
		{"the longest", long[1:], anchors, ""},
		{"one longer than a chain can be", long, anchors, "at most 6 certificates"},
		{"nothing", nil, anchors, "needs an issuing certificate"},
		{"no anchor", long[5:], nil, "needs a trust anchor"},
		{"a nil certificate", []*x509.Certificate{nil}, anchors, "nil"},
		{"a nil anchor", long[5:], []*x509.Certificate{nil}, "nil"},
		{"no path to an anchor", long[:1], anchors, "does not lead to a trust anchor"},
		{"what stands above the root is left out", []*x509.Certificate{root.certificate, loop.certificate}, anchors, ""},
		{"an issuer twice", []*x509.Certificate{long[5], long[5]}, anchors, "the same as certificate 2"},
		{"a path length that does not fit", []*x509.Certificate{under.certificate, weak.certificate}, anchors, "path length of 0"},
		{"the wrong order", []*x509.Certificate{long[4], long[5], long[3], long[5]}, anchors, "same as certificate"},
		{"a gap", []*x509.Certificate{long[3], long[5]}, anchors, "not the same octets"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path, err := chain.IssuerPath(test.issuing, test.anchors, checkNow)
			wantError(t, err, test.want)
			if err == nil && !path[len(path)-1].Equal(root.certificate) {
				t.Error("the path does not end at the anchor")
			}
		})
	}
}

// TestAnAnchorOnTheWay has an intermediate that is pinned itself: the path ends there, and so does the chain.
func TestAnAnchorOnTheWay(t *testing.T) {
	root := newCheckCA(t, "P-256", "root", nil)
	middle := newCheckCA(t, "P-384", "middle", root)
	issuer := newCheckCA(t, "P-521", "issuer", middle)
	issuing := []*x509.Certificate{issuer.certificate, middle.certificate}
	path, err := chain.IssuerPath(issuing, []*x509.Certificate{root.certificate, middle.certificate}, checkNow)
	if err != nil || len(path) != 2 || !path[1].Equal(middle.certificate) {
		t.Fatalf("the path is %d certificates, %v", len(path), err)
	}
	checker, leaf := newChecker(t, root, middle), approvedLeaf(t)
	wantBroken(t, checker.Check(issuer.answer(t, leaf, issuing[:1]), leaf, checkNow), 0, "")
	wantBroken(t, checker.Check(issuer.answer(t, leaf, issuing), leaf, checkNow), 3, "a chain ends below its trust anchor")
}

func TestWindow(t *testing.T) {
	if _, _, err := chain.Window(nil); err == nil {
		t.Error("no certificates have a window")
	}
	root := newCheckCA(t, "P-256", "root", nil)
	late := newCheckCA(t, "P-256", "late", root, func(c *x509.Certificate) { c.NotBefore = checkNow.Add(-time.Hour) })
	short := newCheckCA(t, "P-256", "short", late, func(c *x509.Certificate) { c.NotAfter = checkNow.Add(time.Hour) })
	begins, ends, err := chain.Window([]*x509.Certificate{short.certificate, late.certificate, root.certificate})
	if err != nil || begins != late.certificate || ends != short.certificate {
		t.Errorf("it begins with %v and ends with %v, %v", begins.Subject, ends.Subject, err)
	}
	begins, ends, _ = chain.Window([]*x509.Certificate{root.certificate})
	if begins != root.certificate || ends != root.certificate {
		t.Error("the window of one certificate is not its own")
	}
}

// TestCheckReadsOctets has the fields of a certificate say what was approved and its octets something else.
func TestCheckReadsOctets(t *testing.T) {
	root := newCheckCA(t, "P-256", "root", nil)
	leaf := approvedLeaf(t)
	honest := root.answer(t, leaf, nil).Leaf()
	wide := root.answer(t, leaf, nil, func(c *x509.Certificate) {
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/admin"}}
	}).Leaf()
	lie := *honest
	lie.Raw = bytes.Clone(wide.Raw)
	answer, err := chain.New(&lie)
	if err != nil {
		t.Fatal(err)
	}
	wantBroken(t, newChecker(t, root).Check(answer, leaf, checkNow), 1, "a backend cannot widen a certificate")
}

func BenchmarkCheck(b *testing.B) {
	root := newCheckCA(b, "P-256", "root", nil)
	issuer := newCheckCA(b, "P-256", "issuer", root)
	checker, leaf := newChecker(b, root), approvedLeaf(b)
	answer := issuer.answer(b, leaf, []*x509.Certificate{issuer.certificate})
	b.ReportAllocs()
	for b.Loop() {
		if err := checker.Check(answer, leaf, checkNow); err != nil {
			b.Fatal(err)
		}
	}
}
