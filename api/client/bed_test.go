package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/timestamppb"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

const (
	cart       = "spiffe://example.org/ns/shop/sa/cart"
	waitAtMost = 20 * time.Second
)

// authority is a root, or an intermediate, with its key.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// sign makes a certificate of a template, for a public key.
func (a *authority) sign(t *testing.T, template *x509.Certificate, public any) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 150))
	must(t, err)
	template.SerialNumber = serial
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	}
	parent, key := template, a.key
	if a.certificate != nil {
		parent = a.certificate
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return certificate
}

func caTemplate(name string) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
}

func newRoot(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	a.certificate = a.sign(t, caTemplate(name), a.key.Public())
	return a
}

// reissue makes the root anew, with its name and key.
func (a *authority) reissue(t *testing.T) *authority {
	t.Helper()
	next := &authority{key: a.key}
	next.certificate = next.sign(t, caTemplate(a.certificate.Subject.CommonName), a.key.Public())
	return next
}

func (a *authority) intermediate(t *testing.T, name string) *authority {
	t.Helper()
	next := &authority{key: newKey(t)}
	next.certificate = a.sign(t, caTemplate(name), next.key.Public())
	return next
}

// peer is a server that answers what a test says, and writes down what it is sent.
type peer struct {
	chanceryv1.UnimplementedCertificateAuthorityServer
	t       *testing.T
	address string
	answer  func(*chanceryv1.IssueCertificateRequest) (*chanceryv1.IssueCertificateResponse, error)
	bundle  *chanceryv1.TrustBundle

	mu    sync.Mutex
	calls []call
}

// call is what a server was sent.
type call struct {
	method   string
	shown    []*x509.Certificate // in the handshake
	metadata metadata.MD
	deadline time.Duration
	request  *chanceryv1.IssueCertificateRequest
}

// listen serves with a certificate.
func (p *peer) listen(certificate *tls.Certificate) {
	p.t.Helper()
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert})))
	chanceryv1.RegisterCertificateAuthorityServer(server, p)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(p.t, err)
	p.address = listener.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	p.t.Cleanup(func() {
		server.Stop()
		must(p.t, <-ended)
	})
}

// serverCertificate is one for 127.0.0.1.
func serverCertificate(t *testing.T, a *authority, change ...func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		DNSNames: []string{"ca.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, c := range change {
		c(template)
	}
	return &tls.Certificate{Certificate: [][]byte{a.sign(t, template, key.Public()).Raw}, PrivateKey: key}
}

func (p *peer) note(ctx context.Context, method string, request *chanceryv1.IssueCertificateRequest) {
	md, _ := metadata.FromIncomingContext(ctx)
	c := call{method: method, metadata: md, request: request}
	if at, ok := ctx.Deadline(); ok {
		c.deadline = time.Until(at)
	}
	if caller, ok := grpcpeer.FromContext(ctx); ok {
		if info, ok := caller.AuthInfo.(credentials.TLSInfo); ok {
			c.shown = info.State.PeerCertificates
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
}

// seen returns what has been sent so far.
func (p *peer) seen() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

func (p *peer) IssueCertificate(ctx context.Context, request *chanceryv1.IssueCertificateRequest) (*chanceryv1.IssueCertificateResponse, error) {
	p.note(ctx, "IssueCertificate", request)
	return p.answer(request)
}

func (p *peer) GetTrustBundle(ctx context.Context, _ *chanceryv1.GetTrustBundleRequest) (*chanceryv1.GetTrustBundleResponse, error) {
	p.note(ctx, "GetTrustBundle", nil)
	return &chanceryv1.GetTrustBundleResponse{Bundle: p.bundle}, nil
}

func bundleOf(roots ...*authority) *chanceryv1.TrustBundle {
	b := &chanceryv1.TrustBundle{TrustDomain: "example.org", Sequence: 7}
	for _, root := range roots {
		b.Anchors = append(b.Anchors, root.certificate.Raw)
	}
	return b
}

// answerFor is a good answer for a leaf.
func answerFor(leaf *x509.Certificate, bundle *chanceryv1.TrustBundle, above ...*authority) *chanceryv1.IssueCertificateResponse {
	response := &chanceryv1.IssueCertificateResponse{
		Chain: [][]byte{leaf.Raw}, Bundle: bundle, NotAfter: timestamppb.New(leaf.NotAfter),
		RenewAt: timestamppb.New(leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)), ServerTime: timestamppb.Now(),
	}
	for _, a := range above {
		response.Chain = append(response.Chain, a.certificate.Raw)
	}
	return response
}

func uris(t *testing.T, texts ...string) []*url.URL {
	t.Helper()
	var out []*url.URL
	for _, text := range texts {
		uri, err := url.Parse(text)
		must(t, err)
		out = append(out, uri)
	}
	return out
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func fingerprintOf(a *authority) [sha256.Size]byte { return sha256.Sum256(a.certificate.Raw) }

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitAtMost)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
