package ca_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/ledger/sqlite"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/local"
	"github.com/chancery-ca/chancery/signer/signertest"
)

// start is when the clock of a test begins.
var start = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

const web = "spiffe://example.org/ns/default/sa/web"

// bed is an authority with a real ledger and a real signer, each behind a tap.
type bed struct {
	authority *ca.Authority
	with      ca.Dependencies
	config    ca.Config
	hierarchy *signertest.Hierarchy
	ledger    *tappedLedger
	signer    *tappedSigner
	path      string // of the ledger
	clock     *clock
	logs      *logs
	registry  *prometheus.Registry
	steps     *steps
}

// newBed returns a bed after something in it was changed.
func newBed(t testing.TB, change ...func(*bed)) *bed {
	t.Helper()
	b := &bed{
		hierarchy: signertest.NewHierarchy(t, start), path: filepath.Join(t.TempDir(), "ledger.db"), clock: &clock{}, logs: &logs{},
		registry: prometheus.NewRegistry(), steps: &steps{},
	}
	b.clock.set(start)
	b.signer = &tappedSigner{Signer: localSigner(t, b.hierarchy), steps: b.steps}
	b.config = ca.Config{Signer: b.signer, Profiles: profiles(t), Rule: rules(t)}
	b.with = ca.Dependencies{Logger: slog.New(slog.NewJSONHandler(b.logs, nil)), Registerer: b.registry, Now: b.clock.now}
	for _, apply := range change {
		apply(b)
	}
	b.open(t)
	return b
}

// open opens the ledger and makes an authority of what the bed holds.
func (b *bed) open(t testing.TB) {
	t.Helper()
	roll, err := sqlite.Open(t.Context(), sqlite.Config{Path: b.path, Now: b.clock.now})
	must(t, err)
	t.Cleanup(func() { roll.Close() })
	b.ledger = &tappedLedger{Ledger: roll, steps: b.steps}
	b.with.Ledger = b.ledger
	b.authority, err = ca.New(t.Context(), b.with, b.config)
	must(t, err)
}

func localSigner(t testing.TB, h *signertest.Hierarchy) signer.Signer {
	t.Helper()
	s, err := local.New(local.Config{Key: h.Issuer.Key, Chain: h.Issuers(), Roots: h.Bundle(t)}, start)
	must(t, err)
	return s
}

func profiles(t testing.TB) map[string]*profile.Profile {
	t.Helper()
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	out := make(map[string]*profile.Profile)
	for _, config := range []profile.Config{
		{Name: "workload", Names: profile.NamesSPIFFE, Usages: both, DefaultLifetime: 24 * time.Hour, MinLifetime: 5 * time.Minute, MaxLifetime: 168 * time.Hour},
		{Name: "tls", Names: profile.NamesDNS, Usages: both[:1], DefaultLifetime: time.Hour, MinLifetime: time.Minute, MaxLifetime: 2 * time.Hour},
	} {
		p, err := profile.New(config)
		must(t, err)
		out[config.Name] = p
	}
	return out
}

// rules let everybody have its own identity, and web some names.
func rules(t testing.TB) authorize.Rule {
	t.Helper()
	granted, err := authorize.Granted(authorize.Grant{
		Name: "web-names", Profile: "tls", Identity: web, DNS: []string{"*.web.example.org"}, IPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	})
	must(t, err)
	return authorize.First(authorize.Self(), granted)
}

// clock stands still until it is set.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time      { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) set(now time.Time)   { c.at.Store(now.UnixNano()) }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }

// steps records what an issuance did, in order.
type steps struct {
	mu   sync.Mutex
	done []string
}

func (s *steps) add(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, step)
}

// take returns the steps since it was called last.
func (s *steps) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.done
	s.done = nil
	return done
}

// tappedLedger is a real ledger whose calls are recorded, and preceded or replaced by what a test wants.
type tappedLedger struct {
	ledger.Ledger
	steps *steps

	beforeReserve, beforeCommit, afterCommit, beforeFail func(ctx context.Context) error
	beforeSequence                                       func(ctx context.Context) error
}

func ask(ctx context.Context, hook func(context.Context) error) error {
	if hook == nil {
		return nil
	}
	return hook(ctx)
}

func (l *tappedLedger) Reserve(ctx context.Context, intent ledger.Intent) error {
	l.steps.add("reserve")
	if err := ask(ctx, l.beforeReserve); err != nil {
		return err
	}
	return l.Ledger.Reserve(ctx, intent)
}

func (l *tappedLedger) Commit(ctx context.Context, outcome ledger.Outcome) error {
	l.steps.add("commit")
	if err := ask(ctx, l.beforeCommit); err != nil {
		return err
	}
	if err := l.Ledger.Commit(ctx, outcome); err != nil {
		return err
	}
	return ask(ctx, l.afterCommit)
}

func (l *tappedLedger) Fail(ctx context.Context, outcome ledger.Outcome) error {
	l.steps.add("fail")
	if err := ask(ctx, l.beforeFail); err != nil {
		return err
	}
	return l.Ledger.Fail(ctx, outcome)
}

func (l *tappedLedger) BundleSequence(ctx context.Context, hash []byte) (uint64, error) {
	if err := ask(ctx, l.beforeSequence); err != nil {
		return 0, err
	}
	return l.Ledger.BundleSequence(ctx, hash)
}

// tappedSigner is a signer whose calls are recorded, and preceded, changed or followed by what a test wants.
type tappedSigner struct {
	signer.Signer
	steps *steps

	before func(ctx context.Context, order *signer.Order) error
	after  func()
}

func (s *tappedSigner) Sign(ctx context.Context, order signer.Order) (chain.Chain, error) {
	s.steps.add("sign")
	if s.before != nil {
		if err := s.before(ctx, &order); err != nil {
			return chain.Chain{}, err
		}
	}
	signed, err := s.Signer.Sign(ctx, order)
	if s.after != nil {
		s.after()
	}
	return signed, err
}

// Issuers implements signer.Issuers as the signer behind it does.
func (s *tappedSigner) Issuers() []*x509.Certificate { return s.Signer.(signer.Issuers).Issuers() } //nolint:forcetypeassert // a test's own signer

// Probe implements signer.Prober as the signer behind it does.
func (s *tappedSigner) Probe(ctx context.Context, now time.Time) error {
	return s.Signer.(signer.Prober).Probe(ctx, now) //nolint:forcetypeassert // a test's own signer
}

// logs holds what was logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

var _ io.Writer = (*logs)(nil)

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// records returns the logged lines of a message as maps.
func (l *logs) records(t testing.TB, message string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(l.String()) {
		var record map[string]any
		must(t, json.Unmarshal([]byte(line), &record))
		if record["msg"] == message {
			out = append(out, record)
		}
	}
	return out
}

// newKey returns a workload's new key.
func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

// request returns a certificate request that asks for names, each a URI, an address or a DNS name.
func request(t testing.TB, key crypto.Signer, names ...string) []byte {
	t.Helper()
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "what the requester wrote"}}
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
		} else if uri, err := url.Parse(name); err == nil && uri.IsAbs() {
			template.URIs = append(template.URIs, uri)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	must(t, err)
	return der
}

// requestFor returns a request that asks for a usage.
func requestFor(t testing.TB, key crypto.Signer, usage asn1.ObjectIdentifier) []byte {
	t.Helper()
	value, err := asn1.Marshal([]asn1.ObjectIdentifier{usage})
	must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Value: value}},
	}, key)
	must(t, err)
	return der
}

// brokenOf returns the chain.Error in an error.
func brokenOf(t testing.TB, err error) *chain.Error {
	t.Helper()
	var broken *chain.Error
	if !errors.As(err, &broken) {
		t.Fatalf("there is no chain.Error in %v", err)
	}
	return broken
}

// names is the same as a set.
func names(all ...string) identity.Names {
	var out identity.Names
	for _, name := range all {
		if ip, err := netip.ParseAddr(name); err == nil {
			out.IPs = append(out.IPs, ip)
		} else if strings.Contains(name, "://") {
			out.URIs = append(out.URIs, name)
		} else {
			out.DNS = append(out.DNS, name)
		}
	}
	return out
}

// order is the order of the workload web for its own identity.
func order(t testing.TB) ca.Order {
	t.Helper()
	return ca.Order{
		Principal: &identity.Principal{
			ID: spiffeid.RequireFromString(web), Method: identity.MethodKubernetes, CredentialID: "JTI=6b1d",
			Kubernetes: &identity.Kubernetes{
				Cluster: "local", Namespace: "default", ServiceAccount: "web", ServiceAccountUID: "uid-sa", PodName: "web-0", PodUID: "uid-pod",
				NodeName: "node-1", NodeUID: "uid-node",
			},
		},
		Door: ca.DoorChancery, Remote: "192.0.2.99:1234", CSR: request(t, newKey(t)),
	}
}

// wantKind wants an error of a kind whose sentence for the caller says everything in say.
func wantKind(t testing.TB, err error, kind errkind.Kind, say ...string) {
	t.Helper()
	if err == nil || errkind.Of(err) != kind {
		t.Fatalf("got %v, want an error that is %s", err, kind)
	}
	for _, part := range say {
		if !strings.Contains(errkind.Message(err), part) {
			t.Errorf("the caller gets %q, which does not say %q", errkind.Message(err), part)
		}
	}
	if kind.Retryable() && errkind.RetryAfter(err) == 0 {
		t.Errorf("%q does not say when to come back", errkind.Message(err))
	}
}

// entries returns everything in the ledger.
func (b *bed) entries(t testing.TB) []ledger.Entry {
	t.Helper()
	entries, err := b.ledger.Find(t.Context(), ledger.Query{Limit: 1000})
	must(t, err)
	return entries
}

// wantSteps wants these steps since the last call.
func (b *bed) wantSteps(t testing.TB, want ...string) {
	t.Helper()
	if got := b.steps.take(); !slices.Equal(got, want) {
		t.Errorf("the steps are %v, want %v", got, want)
	}
}

func (b *bed) issue(t testing.TB, o ca.Order) *ca.Issuance {
	t.Helper()
	issuance, err := b.authority.Issue(t.Context(), o)
	must(t, err)
	return issuance
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
