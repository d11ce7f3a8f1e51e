package ca_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/local"
	"github.com/chancery-ca/chancery/signer/signertest"
)

func TestNewNeedsItsDependencies(t *testing.T) {
	b := newBed(t)
	for name, change := range map[string]func(*ca.Dependencies){
		"a ledger":   func(d *ca.Dependencies) { d.Ledger = nil },
		"a logger":   func(d *ca.Dependencies) { d.Logger = nil },
		"a registry": func(d *ca.Dependencies) { d.Registerer = nil },
		"a clock":    func(d *ca.Dependencies) { d.Now = nil },
	} {
		with := b.with
		with.Registerer = prometheus.NewRegistry()
		change(&with)
		if _, err := ca.New(t.Context(), with, b.config); err == nil {
			t.Errorf("there is an authority without %s", name)
		}
	}
	if _, err := ca.New(t.Context(), b.with, b.config); err == nil || !strings.Contains(err.Error(), "registering the authority's metrics") {
		t.Errorf("two authorities with one registry: %v", err)
	}
}

// badConfigs are configs by which nothing can be issued.
func badConfigs(t testing.TB, b *bed) map[string]ca.Config {
	t.Helper()
	with := func(change func(*ca.Config)) ca.Config {
		c := b.config
		c.Profiles = maps.Clone(c.Profiles)
		change(&c)
		return c
	}
	return map[string]ca.Config{
		"no signer":                       with(func(c *ca.Config) { c.Signer = nil }),
		"no rule":                         with(func(c *ca.Config) { c.Rule = nil }),
		"no profile":                      with(func(c *ca.Config) { c.Profiles = nil }),
		"a nil profile":                   with(func(c *ca.Config) { c.Profiles["workload"] = nil }),
		"a profile under another name":    with(func(c *ca.Config) { c.Profiles["other"] = c.Profiles["tls"] }),
		"a signer without roots":          with(func(c *ca.Config) { c.Signer = rootless{c.Signer} }),
		"a signer that knows no issuers":  with(func(c *ca.Config) { c.Signer = issuerless{c.Signer} }),
		"an issuer that cannot be linted": with(func(c *ca.Config) { c.Signer = &nameless{Signer: c.Signer} }),
	}
}

type rootless struct{ signer.Signer }

func (rootless) Roots() *bundle.Bundle { return nil }

type issuerless struct{ signer.Signer }

func (issuerless) Issuers() []*x509.Certificate { return nil }

// nameless has an issuer without a subject, under whom every certificate breaks a rule.
type nameless struct{ signer.Signer }

func (n *nameless) Issuers() []*x509.Certificate {
	issuers := n.Signer.(signer.Issuers).Issuers() //nolint:forcetypeassert // a test's own signer
	changed := *issuers[0]
	changed.RawSubject = []byte{0x30, 0}
	issuers[0] = &changed
	return issuers
}

// TestABadReplacementChangesNothing goes on with what there is, and numbers nothing.
func TestABadReplacementChangesNothing(t *testing.T) {
	b := newBed(t)
	before, changed := b.authority.Bundle()
	b.ledger.beforeSequence = func(context.Context) error {
		t.Error("a bundle was numbered for a config that is refused")
		return nil
	}
	for name, config := range badConfigs(t, b) {
		if err := b.authority.Replace(t.Context(), config); err == nil {
			t.Errorf("%s: it was taken into use", name)
		}
		if name != "an issuer that cannot be linted" && ca.Validate(config, b.clock.now()) == nil {
			t.Errorf("%s: Validate says that it is good", name)
		}
	}
	must(t, ca.Validate(b.config, b.clock.now()))

	other := b.config
	other.Signer = newHierarchySigner(t)
	b.ledger.beforeSequence = func(context.Context) error { return errors.New("disk full") }
	if err := b.authority.Replace(t.Context(), other); err == nil || !strings.Contains(err.Error(), "numbering the trust bundle: disk full") {
		t.Errorf("without its number: %v", err)
	}
	if after, _ := b.authority.Bundle(); after != before {
		t.Error("a bundle is in use whose config was refused")
	}
	select {
	case <-changed:
		t.Error("a change was told that did not happen")
	default:
	}
	if issuance := b.issue(t, order(t)); issuance.Bundle != before {
		t.Error("what is issued has another bundle")
	}
}

// newHierarchySigner returns a local signer with a new root and issuer.
func newHierarchySigner(t testing.TB) signer.Signer {
	t.Helper()
	h, err := local.Create(signertest.TrustDomain, start)
	must(t, err)
	roots, err := bundle.New(signertest.TrustDomain, []*x509.Certificate{h.Root})
	must(t, err)
	s, err := local.New(local.Config{Key: h.IssuerKey, Chain: []*x509.Certificate{h.Issuer}, Roots: roots}, start)
	must(t, err)
	return s
}

// TestReplaceWhileIssuing swaps two whole configs, with issuers and roots of their own, while eight callers issue. The parts of an answer always
// belong together: the chain ends in its bundle, the profile's lifetime is that of the same config.
func TestReplaceWhileIssuing(t *testing.T) {
	const callers, each, swaps = 8, 25, 60
	b := newBed(t)
	configs := [2]ca.Config{b.config, b.config}
	lifetimes := [2]time.Duration{2 * time.Hour, 3 * time.Hour}
	for i := range configs {
		p, err := profile.New(profile.Config{
			Name: "workload", Names: profile.NamesSPIFFE, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			DefaultLifetime: lifetimes[i], MinLifetime: time.Hour, MaxLifetime: lifetimes[i],
		})
		must(t, err)
		configs[i].Signer, configs[i].Profiles = newHierarchySigner(t), map[string]*profile.Profile{"workload": p}
	}
	must(t, b.authority.Replace(t.Context(), configs[0]))

	var group sync.WaitGroup
	issued := make(chan *ca.Issuance, callers*each)
	for range callers {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
		o := order(t)
		o.CSR = request(t, key)
		group.Go(func() {
			for range each {
				issuance, err := b.authority.Issue(t.Context(), o)
				if err != nil {
					t.Error(err)
					return
				}
				issued <- issuance
			}
		})
	}
	for i := range swaps {
		must(t, b.authority.Replace(t.Context(), configs[i%2]))
	}
	group.Wait()
	close(issued)
	for issuance := range issued {
		i := 0
		if !bytes.Equal(issuance.Bundle.Hash(), configs[0].Signer.Roots().Hash()) {
			i = 1
		}
		issuers := configs[i].Signer.(signer.Issuers).Issuers() //nolint:forcetypeassert // a local signer
		if !bytes.Equal(issuance.Bundle.Hash(), configs[i].Signer.Roots().Hash()) || !issuance.Chain.Intermediates()[0].Equal(issuers[0]) {
			t.Fatal("the bundle and the intermediate are of two configs")
		}
		must(t, issuance.Chain.Leaf().CheckSignatureFrom(issuers[0])) // the key
		must(t, issuers[0].CheckSignatureFrom(issuance.Bundle.Anchors()[0]))
		if life := issuance.NotAfter.Sub(start); life != lifetimes[i] {
			t.Fatalf("the lifetime %s is that of the other config", life)
		}
	}
}

// TestBundleSequence numbers each change of the anchors, never goes back, and remembers over a restart.
func TestBundleSequence(t *testing.T) {
	b := newBed(t)
	sequence := func() uint64 {
		current, _ := b.authority.Bundle()
		return current.Sequence()
	}
	if got := sequence(); got != 1 {
		t.Fatalf("the first bundle has the number %d", got)
	}
	replace := func(s signer.Signer, want uint64) {
		t.Helper()
		config := b.config
		config.Signer = s
		_, changed := b.authority.Bundle()
		must(t, b.authority.Replace(t.Context(), config))
		if got := sequence(); got != want {
			t.Errorf("the bundle has the number %d, want %d", got, want)
		}
		<-changed
	}
	same, other := localSigner(t, b.hierarchy), newHierarchySigner(t)
	replace(same, 1)
	replace(other, 2)
	replace(other, 2)
	replace(same, 3)
	if issuance := b.issue(t, order(t)); issuance.Bundle.Sequence() != 3 {
		t.Errorf("what is issued comes with bundle %d", issuance.Bundle.Sequence())
	}

	must(t, b.ledger.Close())
	b.with.Registerer = prometheus.NewRegistry()
	b.open(t)
	if got := sequence(); got != 3 {
		t.Errorf("after a restart the same bundle has the number %d", got)
	}
	replace(newHierarchySigner(t), 4)
}

func TestProbe(t *testing.T) {
	b := newBed(t)
	must(t, b.authority.Probe(t.Context()))
	b.clock.add(1000 * 24 * time.Hour)
	if err := b.authority.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "clock says") {
		t.Errorf("long after the issuer's end: %v", err)
	}
	remote := newBed(t, func(b *bed) { b.config.Signer = signertest.NewRogue(t, b.hierarchy, signertest.Forgery{}) })
	remote.clock.add(1000 * 24 * time.Hour)
	must(t, remote.authority.Probe(t.Context())) // it cannot tell
}

// TestSerials draws serials from the real source: positive, at most 159 bits, none twice, and every bit as often set as not.
func TestSerials(t *testing.T) {
	const draws, bits = 4000, 159
	b := newBed(t)
	seen := make(map[string]bool)
	var counts [bits]int
	for range draws {
		serial, err := b.authority.NewSerial()
		must(t, err)
		n := serial.Int()
		if n.Sign() <= 0 || n.BitLen() > bits || seen[serial.String()] {
			t.Fatalf("serial %s has %d bits, or came before", serial, n.BitLen())
		}
		seen[serial.String()] = true
		for bit := range bits {
			counts[bit] += int(n.Bit(bit))
		}
	}
	for bit, count := range counts {
		// ten standard deviations of a fair coin
		if half, most := draws/2, 320; count < half-most || count > half+most {
			t.Errorf("bit %d is set in %d of %d serials", bit, count, draws)
		}
	}
}

func TestSerialsFromABadSource(t *testing.T) {
	for name, test := range map[string]struct {
		random *bytes.Reader
		kind   errkind.Kind // of the refusal
		want   string       // the serial, if there is none
	}{
		"all ones":  {bytes.NewReader(bytes.Repeat([]byte{0xff}, 20)), 0, "7f" + strings.Repeat("ff", 19)},
		"a small":   {bytes.NewReader(append(make([]byte, 19), 5)), 0, "05"},
		"all zeros": {bytes.NewReader(make([]byte, 20)), errkind.Internal, ""},
		"exhausted": {bytes.NewReader(nil), errkind.Internal, ""},
		"too short": {bytes.NewReader(make([]byte, 19)), errkind.Internal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(b *bed) { b.with.Random = test.random })
			issuance, err := b.authority.Issue(t.Context(), order(t))
			if test.want != "" {
				must(t, err)
				if got := issuance.Serial.String(); got != test.want || issuance.Chain.Leaf().SerialNumber.Cmp(issuance.Serial.Int()) != 0 {
					t.Errorf("the serial is %s, want %s", got, test.want)
				}
				return
			}
			wantKind(t, err, test.kind, "internal error")
			b.wantSteps(t)
		})
	}
}

// TestASerialOfOld is refused by the ledger, and the key is not used.
func TestASerialOfOld(t *testing.T) {
	twice := append(bytes.Repeat([]byte{1}, 20), bytes.Repeat([]byte{1}, 20)...)
	b := newBed(t, func(b *bed) { b.with.Random = bytes.NewReader(twice) })
	b.issue(t, order(t))
	b.steps.take()
	_, err := b.authority.Issue(t.Context(), order(t))
	wantKind(t, err, errkind.Unavailable, "the ledger cannot record")
	b.wantSteps(t, "reserve")
}

// TestConfigIsTakenWhole has a config's map change after it was taken into use.
func TestConfigIsTakenWhole(t *testing.T) {
	b := newBed(t)
	delete(b.config.Profiles, "workload")
	b.issue(t, order(t))
}

// TestARuleThatSaysNothing denies, whatever else it returns.
func TestARuleThatSaysNothing(t *testing.T) {
	for name, test := range map[string]struct {
		rule authorize.Rule
		kind errkind.Kind
		say  string
	}{
		"silent": {func(context.Context, authorize.Request) (authorize.Verdict, bool, error) {
			return authorize.Verdict{Rule: "x"}, false, nil
		}, errkind.Denied, fmt.Sprintf("no rule allows %s to hold URI:%s", web, web)},
		"broken": {func(context.Context, authorize.Request) (authorize.Verdict, bool, error) {
			return authorize.Verdict{Rule: "x"}, true, errors.New("boom")
		}, errkind.Internal, "internal error"},
		"away": {func(context.Context, authorize.Request) (authorize.Verdict, bool, error) {
			return authorize.Verdict{Rule: "x"}, true, errkind.New(errkind.Unavailable, "away").After(time.Second)
		}, errkind.Unavailable, "away"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(b *bed) { b.config.Rule = test.rule })
			_, err := b.authority.Issue(t.Context(), order(t))
			wantKind(t, err, test.kind, test.say)
			b.wantSteps(t)
		})
	}
}

// TestRulesSeeTheRealRequest wants rules to be asked about exactly what would be issued.
func TestRulesSeeTheRealRequest(t *testing.T) {
	var asked []authorize.Request
	b := newBed(t, func(b *bed) {
		rule := b.config.Rule
		b.config.Rule = func(ctx context.Context, r authorize.Request) (authorize.Verdict, bool, error) {
			asked = append(asked, r)
			return rule(ctx, r)
		}
	})
	o := order(t)
	o.Profile, o.Names = "tls", names("B.web.example.org", "a.web.example.org")
	b.issue(t, o)
	if len(asked) != 1 || asked[0].Principal != o.Principal || asked[0].Profile != "tls" || asked[0].Names.String() != "DNS:a.web.example.org, DNS:b.web.example.org" {
		t.Errorf("the rules were asked %+v", asked)
	}
}

// TestAnIssuerThatCanIssueNothing signs well, but less than the shortest lifetime of every profile is left of it.
func TestAnIssuerThatCanIssueNothing(t *testing.T) {
	b := newBed(t)
	b.clock.set(b.hierarchy.Issuer.Certificate.NotAfter.Add(-time.Second))
	const want = "less than the minimum lifetime"
	for name, err := range map[string]error{
		"Replace":  b.authority.Replace(t.Context(), b.config),
		"Validate": ca.Validate(b.config, b.clock.now()),
		"Probe":    b.authority.Probe(t.Context()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", name, err, want)
		}
	}
}

func TestAnchorsDoNotChangeInSilence(t *testing.T) {
	b := newBed(t)
	if n := len(b.logs.records(t, "trust anchors in use")); n != 1 {
		t.Errorf("the start left %d lines about the anchors", n)
	}
	must(t, b.authority.Replace(t.Context(), b.config))
	if n := len(b.logs.records(t, "trust anchors changed")); n != 0 {
		t.Errorf("the same anchors left %d warnings", n)
	}
	other := b.config
	other.Signer = newHierarchySigner(t)
	must(t, b.authority.Replace(t.Context(), other))
	warnings := b.logs.records(t, "trust anchors changed")
	if len(warnings) != 1 {
		t.Fatalf("other anchors left %d warnings", len(warnings))
	}
	for _, key := range []string{"added_sha256", "removed_sha256"} {
		if list, _ := warnings[0][key].([]any); len(list) != 1 {
			t.Errorf("%s is %v, want one fingerprint", key, warnings[0][key])
		}
	}
}
