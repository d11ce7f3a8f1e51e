package server

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	istiov1 "github.com/chancery-ca/chancery/api/istio/v1"
	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/ledger/sqlite"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/internal/telemetry"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/local"
)

var (
	trustDomain = spiffeid.RequireTrustDomainFromString("example.org")
	cart        = spiffeid.RequireFromString("spiffe://example.org/ns/shop/sa/cart")
	ownNames    = identity.Names{DNS: []string{"localhost"}}
)

const (
	goodToken   = "good" // authenticates cart
	ownProfile  = "server-own"
	waitAtMost  = 20 * time.Second // for what should come at once; a test that waits so long has failed
	lifetime    = time.Hour
	maxLife     = 24 * time.Hour
	grantedName = "cart.shop.example.org"
)

// bed is a real server: authority, SQLite ledger, TLS listener. Only the authenticator is a stand-in.
type bed struct {
	t         *testing.T
	hierarchy *local.Hierarchy
	other     *local.Hierarchy // its root is in the bundle as well
	signer    *gated
	roll      *sqlite.Ledger
	authority *ca.Authority
	serving   *Serving
	registry  *prometheus.Registry
	logs      *logs
	server    *Server
	grpc      *grpc.Server
	address   string
	conn      *grpc.ClientConn

	mu   sync.Mutex
	auth func(context.Context, identity.Credential) (*identity.Principal, bool, error)
}

// setup is what a test may change before the server starts.
type setup struct {
	config Config
	door   Door
}

func newBed(t *testing.T, change ...func(*setup)) *bed {
	t.Helper()
	b := &bed{t: t, registry: prometheus.NewRegistry(), logs: &logs{}}
	b.auth = func(_ context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
		if credential.Bearer.Reveal() != goodToken {
			return nil, true, errkind.New(errkind.Unauthenticated, "this token is not good")
		}
		return principal(cart), true, nil
	}
	logger := slog.New(slog.NewTextHandler(b.logs, nil))
	now := time.Now()
	b.hierarchy, b.other = hierarchy(t, now), hierarchy(t, now)
	b.signer = &gated{inner: backend(t, b.hierarchy, now, b.hierarchy.Root, b.other.Root)}
	b.roll = openLedger(t)
	var err error
	b.authority, err = ca.New(t.Context(), ca.Dependencies{Ledger: b.roll, Logger: logger, Registerer: b.registry, Now: time.Now}, policy(t, b.signer))
	must(t, err)
	b.serving = newServing(t, b, subject, logger)

	s := &setup{door: Door{Chancery: true, Istio: true}, config: Config{
		Authority: b.authority, Chancery: b, Istio: b, IstioJitter: 0.05, Certificate: b.serving.Certificate, RequestTimeout: 10 * time.Second,
		Limits: Limits{InFlight: 16, Authenticating: 16, Callers: 100, Watchers: 16}, Track: telemetry.NewInFlight(time.Now).Begin, Logger: logger, Registerer: b.registry, Now: time.Now,
	}}
	for _, c := range change {
		c(s)
	}
	b.server, err = New(s.config)
	must(t, err)
	b.grpc = b.server.GRPC(s.door)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	b.address = listener.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- b.grpc.Serve(listener) }()
	t.Cleanup(func() {
		b.signer.open()
		b.grpc.Stop()
		must(t, <-ended)
	})
	b.conn = b.dial()
	return b
}

// subject is whom the server's own certificate is for.
func subject() (identity.Names, time.Duration) { return ownNames, lifetime }

func newServing(t *testing.T, b *bed, subject func() (identity.Names, time.Duration), logger *slog.Logger) *Serving {
	t.Helper()
	own := spiffeid.RequireFromPath(trustDomain, "/chancery/server")
	s := NewServing(ServingConfig{
		Authority: b.authority, Principal: &identity.Principal{ID: own, Method: identity.MethodServer}, Profile: ownProfile, Subject: subject,
		Logger: logger, Registerer: b.registry, Now: time.Now,
	})
	must(t, s.Renew(t.Context()))
	return s
}

// Authenticate implements identity.Authenticator.
func (b *bed) Authenticate(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
	b.mu.Lock()
	auth := b.auth
	b.mu.Unlock()
	return auth(ctx, credential)
}

// authenticate replaces what the authenticator does.
func (b *bed) authenticate(auth func(context.Context, identity.Credential) (*identity.Principal, bool, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.auth = auth
}

func principal(id spiffeid.ID) *identity.Principal {
	return &identity.Principal{ID: id, Method: identity.MethodKubernetes, CredentialID: "jti-1", Kubernetes: &identity.Kubernetes{Cluster: "local"}}
}

func (b *bed) tls() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(b.hierarchy.Root)
	return &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
}

func (b *bed) dial(options ...grpc.DialOption) *grpc.ClientConn {
	b.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+b.address, append(options, grpc.WithTransportCredentials(credentials.NewTLS(b.tls())))...)
	must(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() }) // a test may have closed it
	return conn
}

func (b *bed) chancery() chanceryv1.CertificateAuthorityClient {
	return chanceryv1.NewCertificateAuthorityClient(b.conn)
}

func (b *bed) istio() istiov1.IstioCertificateServiceClient {
	return istiov1.NewIstioCertificateServiceClient(b.conn)
}

// issue asks for a certificate with the good token and a new key.
func (b *bed) issue() (*chanceryv1.IssueCertificateResponse, error) {
	return b.chancery().IssueCertificate(b.bearer(goodToken), &chanceryv1.IssueCertificateRequest{Csr: newCSR(b.t, newKey(b.t), nil)})
}

func (b *bed) bearer(token string) context.Context {
	return metadata.AppendToOutgoingContext(within(b.t), "authorization", "Bearer "+token)
}

// issued returns the certificates in the ledger that callers got.
func (b *bed) issued() []ledger.Entry {
	b.t.Helper()
	all, err := b.roll.Find(b.t.Context(), ledger.Query{State: ledger.Issued})
	must(b.t, err)
	var out []ledger.Entry
	for _, entry := range all {
		if entry.Origin.Door != string(ca.DoorServer) {
			out = append(out, entry)
		}
	}
	return out
}

// gated is a signing backend whose door can be shut: a signature then waits at it.
type gated struct {
	mu      sync.Mutex
	inner   signer.Signer
	shut    chan struct{} // nil while it is open
	arrived chan struct{}
	fail    error
}

// close lets the next signatures wait until open; each that arrives sends on the channel that it returns.
func (g *gated) close() (arrived <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.arrived = make(chan struct{}), make(chan struct{}, 64)
	return g.arrived
}

func (g *gated) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// failWith lets every signature fail; nil lets them succeed again.
func (g *gated) failWith(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail = err
}

func (g *gated) Sign(ctx context.Context, order signer.Order) (chain.Chain, error) {
	g.mu.Lock()
	inner, shut, arrived, fail := g.inner, g.shut, g.arrived, g.fail
	g.mu.Unlock()
	if fail != nil {
		return chain.Chain{}, fail
	}
	if shut != nil {
		arrived <- struct{}{}
		select {
		case <-shut:
		case <-ctx.Done():
			return chain.Chain{}, ctx.Err()
		}
	}
	return inner.Sign(ctx, order)
}

// replace lets another backend sign from now on.
func (g *gated) replace(inner signer.Signer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inner = inner
}

func (g *gated) now() signer.Signer {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inner
}

func (g *gated) Roots() *bundle.Bundle { return g.now().Roots() }

// Issuers implements signer.Issuers.
func (g *gated) Issuers() []*x509.Certificate { return g.now().(signer.Issuers).Issuers() }

func hierarchy(t *testing.T, now time.Time) *local.Hierarchy {
	t.Helper()
	h, err := local.Create(trustDomain, now)
	must(t, err)
	return h
}

func backend(t *testing.T, h *local.Hierarchy, now time.Time, roots ...*x509.Certificate) signer.Signer {
	t.Helper()
	anchors, err := bundle.New(trustDomain, roots)
	must(t, err)
	s, err := local.New(local.Config{Key: h.IssuerKey, Chain: []*x509.Certificate{h.Issuer}, Roots: anchors}, now)
	must(t, err)
	return s
}

func policy(t *testing.T, backend signer.Signer) ca.Config {
	t.Helper()
	return policyFor(t, backend, ownNames)
}

func policyFor(t *testing.T, backend signer.Signer, own identity.Names) ca.Config {
	t.Helper()
	profiles := make(map[string]*profile.Profile)
	for _, config := range []profile.Config{
		{Name: ca.DefaultProfile, Names: profile.NamesSPIFFE, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}},
		{Name: "serving", Names: profile.NamesDNS, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		{Name: ownProfile, Names: profile.NamesDNS, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
	} {
		config.DefaultLifetime, config.MinLifetime, config.MaxLifetime = lifetime, 5*time.Minute, maxLife
		p, err := profile.New(config)
		must(t, err)
		profiles[config.Name] = p
	}
	granted, err := authorize.Granted(authorize.Grant{Name: "cart", Profile: "serving", Identity: cart.String(), DNS: []string{grantedName}})
	must(t, err)
	return ca.Config{Signer: backend, Profiles: profiles, Rule: authorize.First(authorize.Server(ownProfile, own), authorize.Self(), granted)}
}

func openLedger(t *testing.T) *sqlite.Ledger {
	t.Helper()
	roll, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	must(t, err)
	t.Cleanup(func() { must(t, roll.Close()) })
	return roll
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func newCSR(t *testing.T, key crypto.Signer, template *x509.CertificateRequest) []byte {
	t.Helper()
	if template == nil {
		template = &x509.CertificateRequest{}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	must(t, err)
	return der
}

// within returns a context that ends only if something hangs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitAtMost)
	t.Cleanup(cancel)
	return ctx
}

// await returns what comes out of a channel.
func await[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(waitAtMost):
		t.Fatalf("%s: nothing came", what)
	}
	var none T
	return none
}

func wantCode(t *testing.T, err error, code codes.Code) *status.Status {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != code {
		t.Fatalf("got %s %q, want %s", s.Code(), s.Message(), code)
	}
	return s
}

// wantUnavailable returns the sentence of an error that is Unavailable.
func wantUnavailable(t *testing.T, err error) string {
	t.Helper()
	return wantCode(t, err, codes.Unavailable).Message()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logs is a log that can be read while it is written.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

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
