package chain

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile is how long a verification may take that somebody made expensive on purpose; most take some milliseconds.
const hostile = 10 * time.Second

func wantBounded(t *testing.T, err error, start time.Time, rules ...string) {
	t.Helper()
	if taken := time.Since(start); taken > hostile {
		t.Errorf("it took %s", taken)
	}
	var refusal *Error
	if !errors.As(err, &refusal) {
		t.Fatalf("found %v", err)
	}
	for _, rule := range rules {
		if strings.Contains(refusal.Rule, rule) {
			return
		}
	}
	t.Errorf("found %v", err)
}

func newECDSA(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// unconstrained is an intermediate that may have others below it.
func unconstrained(name string, serial int) *x509.Certificate { return caTemplate(name, int64(serial)) }

func TestHostileGraphs(t *testing.T) {
	const count = 100
	root := issue(t, rootTemplate(), testKey(t, 0), nil)
	hundred := func(name func(i int) string, key func(i int) crypto.Signer) (leaf *x509.Certificate, all []*x509.Certificate) {
		above := issue(t, unconstrained(name(0), 100), key(0), nil) // leads nowhere
		all = append(all, above.certificate)
		for i := 1; i < count; i++ {
			above = issue(t, unconstrained(name(i), 100+i), key(i), above)
			all = append(all, above.certificate)
		}
		return issue(t, leafTemplate(), testKey(t, 2), above).certificate, all
	}
	keys := make([]crypto.Signer, count)
	for i := range keys {
		keys[i] = newECDSA(t)
	}
	same := func(int) string { return "CA" }
	distinct := func(i int) string { return fmt.Sprint("CA ", i) }
	oneKey := func(int) crypto.Signer { return keys[0] }
	manyKeys := func(i int) crypto.Signer { return keys[i] }
	for name, c := range map[string]struct {
		name func(i int) string
		key  func(i int) crypto.Signer
	}{"one name, one key": {same, oneKey}, "one name, many keys": {same, manyKeys}, "many names, one key": {distinct, oneKey}, "many names, many keys": {distinct, manyKeys}} {
		t.Run(name, func(t *testing.T) {
			leaf, all := hundred(c.name, c.key)
			start := time.Now()
			_, err := Verify(leaf, VerifyOptions{Roots: []*x509.Certificate{root.certificate}, Intermediates: all, At: testNow})
			wantBounded(t, err, start, "work is bounded", "§6.1.2 (k)", "§6.1.3 (a)(4)")
		})
	}
}

// TestLatticeOfAuthorities: with ten authorities of one key on each of seven levels there are ten million paths, all with good signatures.
func TestLatticeOfAuthorities(t *testing.T) {
	const levels, width = 7, 10
	var keys [levels]crypto.Signer
	for i := range keys {
		keys[i] = newECDSA(t)
	}
	// the root refuses the leaf's name, so that every path is tried
	refusing := rootTemplate()
	refusing.ExcludedDNSDomains = []string{"leaf.example.test"}
	root := issue(t, refusing, testKey(t, 0), nil)
	above := root
	var all []*x509.Certificate
	for level := range levels {
		var next *entity
		for i := range width {
			next = issue(t, unconstrained(fmt.Sprint("Level ", level), 1000+100*level+i), keys[level], above)
			all = append(all, next.certificate)
		}
		above = next
	}
	leaf := issue(t, leafTemplate(), testKey(t, 2), above)
	start := time.Now()
	_, err := Verify(leaf.certificate, VerifyOptions{Roots: []*x509.Certificate{root.certificate}, Intermediates: all, At: testNow})
	wantBounded(t, err, start, "work is bounded")

	t.Run("policies", func(t *testing.T) {
		plain := issue(t, rootTemplate(), testKey(t, 0), nil)
		start := time.Now()
		_, err := Verify(leaf.certificate, VerifyOptions{
			Roots: []*x509.Certificate{plain.certificate}, Intermediates: all, At: testNow, Policies: PolicyOptions{Explicit: true},
		})
		wantBounded(t, err, start, "work is bounded")
	})
}

// TestPathBehindJunk: what a hostile sender adds does not hide a path that key identifiers lead to.
func TestPathBehindJunk(t *testing.T) {
	root := issue(t, rootTemplate(), testKey(t, 0), nil)
	good := issue(t, intermediateTemplate(), testKey(t, 1), root)
	leaf := issue(t, leafTemplate(), testKey(t, 2), good)
	var all []*x509.Certificate
	for i := range 500 {
		junk := intermediateTemplate()
		junk.SerialNumber.SetInt64(int64(1000 + i))
		junk.SubjectKeyId = fmt.Append(nil, i)
		all = append(all, issue(t, junk, testKey(t, 4), root).certificate)
	}
	all = append(all, good.certificate)
	if _, err := Verify(leaf.certificate, VerifyOptions{Roots: []*x509.Certificate{root.certificate}, Intermediates: all, At: testNow}); err != nil {
		t.Error(err)
	}
}

// TestManyNamesAndManyConstraints is the quadratic blow-up of name constraints.
func TestManyNamesAndManyConstraints(t *testing.T) {
	const count = 2000
	f := newFixture(t)
	f.root.PermittedDNSDomainsCritical = true
	for i := range count {
		f.root.PermittedDNSDomains = append(f.root.PermittedDNSDomains, fmt.Sprintf("p%d.test", i))
		f.root.ExcludedDNSDomains = append(f.root.ExcludedDNSDomains, fmt.Sprintf("x%d.test", i))
		f.leaf.DNSNames = append(f.leaf.DNSNames, fmt.Sprintf("p%d.test", i))
	}
	f.root.PermittedDNSDomains = append(f.root.PermittedDNSDomains, "leaf.example.test", "wild.example.test")
	start := time.Now()
	_, err := f.verify(t)
	wantBounded(t, err, start, "work is bounded")
}

// TestManyMappings: the tree of RFC 5280 grows exponentially with mappings of everything to everything.
func TestManyMappings(t *testing.T) {
	const count = 40
	graph := newPolicyGraph()
	facts := noPolicies()
	facts.present = true
	for i := range count {
		facts.policies = append(facts.policies, fmt.Sprint("policy ", i))
		for j := range count {
			facts.mappings = append(facts.mappings, policyMapping{fmt.Sprint("policy ", i), fmt.Sprint("policy ", j)})
		}
	}
	start := time.Now()
	for range maxPath {
		graph.process(facts, true)
		graph.mapPolicies(facts.mappings, false)
	}
	if taken := time.Since(start); taken > hostile {
		t.Errorf("it took %s", taken)
	}
	if found := len(graph.authorities()); found != count {
		t.Errorf("found %d policies, want %d", found, count)
	}
}
