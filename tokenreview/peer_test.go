package tokenreview

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
)

var _ CertificateSource = ledger.Ledger(nil)

// certificates is a CertificateSource with one row or one fault.
type certificates struct {
	row ledger.Entry
	err error
}

func (s *certificates) Certificate(ctx context.Context, leaf ledger.Serial, der []byte) (ledger.Entry, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return ledger.Entry{}, errors.New("the look-up has no deadline")
	}
	if s.err != nil {
		return ledger.Entry{}, s.err
	}
	if s.row.Outcome.LeafSerial != leaf || !bytes.Equal(s.row.Outcome.Certificate, der) {
		return ledger.Entry{}, ledger.ErrNotFound
	}
	return s.row, nil
}

// issuerFixture is a certificate with its key.
type issuerFixture struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certify makes a certificate under issuer, self-signed if that is nil.
func certify(t *testing.T, issuer *issuerFixture, template x509.Certificate) *issuerFixture {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent := &issuerFixture{&template, key}
	if issuer != nil {
		parent = issuer
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent.certificate, key.Public(), parent.key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuerFixture{parsed, key}
}

func authorityTemplate(name string) x509.Certificate {
	return x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: start.Add(-48 * time.Hour), NotAfter: start.Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

func leafTemplate(serial int64) x509.Certificate {
	uri := &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: "/vm/db-1"}
	return x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: start.Add(-time.Hour), NotAfter: start.Add(time.Hour), URIs: []*url.URL{uri},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
}

// peers is a Peer with the authority whose certificates it accepts.
type peers struct {
	t      *testing.T
	root   *issuerFixture
	issuer *issuerFixture
	leaf   *issuerFixture
	source *certificates
	config PeerConfig
}

func newPeers(t *testing.T) *peers {
	t.Helper()
	p := &peers{t: t}
	p.root = certify(t, nil, authorityTemplate("root"))
	p.issuer = certify(t, p.root, authorityTemplate("issuer"))
	p.config = PeerConfig{
		TrustDomain: trustDomain, Origins: []identity.Method{identity.MethodJoinToken}, Now: func() time.Time { return start },
		Authority: func() (anchors, issuers []*x509.Certificate) {
			return []*x509.Certificate{p.root.certificate}, []*x509.Certificate{p.issuer.certificate}
		},
	}
	p.issue(leafTemplate(77))
	return p
}

// issue makes the leaf and its row.
func (p *peers) issue(template x509.Certificate) {
	p.leaf = certify(p.t, p.issuer, template)
	p.source = &certificates{row: ledger.Entry{
		State: ledger.Issued, Intent: ledger.Intent{
			Serial: "\x09", Identity: "spiffe://cluster.local/vm/db-1", Profile: "workload", Origin: ledger.Origin{Method: string(identity.MethodJoinToken)},
		},
		Outcome: ledger.Outcome{Serial: "\x09", LeafSerial: ledger.Serial(template.SerialNumber.Bytes()), Certificate: p.leaf.certificate.Raw},
	}}
}

func (p *peers) ask(shown ...*x509.Certificate) (*identity.Principal, error) {
	p.t.Helper()
	peer, err := NewPeer(p.source, p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	principal, handled, err := peer.Authenticate(p.t.Context(), identity.Credential{PeerChain: shown})
	if !handled || (principal == nil) != (err != nil) {
		p.t.Fatalf("handled %t, principal %v, error %v", handled, principal, err)
	}
	return principal, err
}

func TestPrincipalOfACertificate(t *testing.T) {
	p := newPeers(t)
	for name, shown := range map[string][]*x509.Certificate{
		"with its chain": {p.leaf.certificate, p.issuer.certificate},
		"alone":          {p.leaf.certificate},
		"with others":    {p.leaf.certificate, p.root.certificate, p.leaf.certificate, p.issuer.certificate},
	} {
		principal, err := p.ask(shown...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if principal.ID != spiffeid.RequireFromString("spiffe://cluster.local/vm/db-1") || principal.Method != identity.MethodCertificate ||
			principal.CredentialID != "09" || !principal.Expiry.Equal(start.Add(time.Hour)) || principal.Kubernetes != nil || principal.JoinToken != nil ||
			*principal.Certificate != (identity.Certificate{Serial: "09", NotAfter: p.leaf.certificate.NotAfter, Origin: identity.MethodJoinToken,
				Profile: "workload", ClientAuth: true}) {
			t.Errorf("%s: got %+v with %+v", name, principal, principal.Certificate)
		}
	}
	// what it is for and what else it names does not matter: its holder is who it was issued to
	for name, change := range map[string]func(*x509.Certificate){
		"a server's":           func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} },
		"a client's":           func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} },
		"of DNS names alone":   func(c *x509.Certificate) { c.URIs, c.DNSNames = nil, []string{"db-1.example.org"} },
		"of DNS names as well": func(c *x509.Certificate) { c.DNSNames = []string{"db-1.example.org"} },
		"of two identities": func(c *x509.Certificate) {
			c.URIs = append([]*url.URL{{Scheme: "spiffe", Host: "cluster.local", Path: "/vm/db-1/backup"}}, c.URIs...)
		},
	} {
		template := leafTemplate(78)
		change(&template)
		p.issue(template)
		if principal, err := p.ask(p.leaf.certificate); err != nil || principal.ID.Path() != "/vm/db-1" {
			t.Errorf("%s: got %+v, %v", name, principal, err)
		}
	}
	// an issuer that was replaced is not among the authority's any more
	p.config.Authority = func() (anchors, issuers []*x509.Certificate) { return []*x509.Certificate{p.root.certificate}, nil }
	if _, err := p.ask(p.leaf.certificate, p.issuer.certificate); err != nil {
		t.Errorf("with the issuer from the caller: %v", err)
	}
	if _, err := p.ask(p.leaf.certificate); errkind.ReasonOf(err) != errkind.UnknownCertificate {
		t.Errorf("without any issuer: %v", err)
	}
}

func TestPeerHandlesCertificatesAlone(t *testing.T) {
	p := newPeers(t)
	peer, err := NewPeer(p.source, p.config)
	if err != nil {
		t.Fatal(err)
	}
	for name, credential := range map[string]identity.Credential{
		"nothing":               {},
		"a token":               {Bearer: "x"},
		"a token beside a good": {Bearer: "x", PeerChain: []*x509.Certificate{p.leaf.certificate}},
	} {
		if principal, handled, err := peer.Authenticate(t.Context(), credential); handled || principal != nil || err != nil {
			t.Errorf("%s: got %v, %t, %v", name, principal, handled, err)
		}
	}
}

func TestPeerRefuses(t *testing.T) {
	row := func(change func(*ledger.Entry)) func(*peers) { return func(p *peers) { change(&p.source.row) } }
	leaf := func(change func(*x509.Certificate)) func(*peers) {
		return func(p *peers) {
			template := leafTemplate(77)
			change(&template)
			p.issue(template)
		}
	}
	forged := func(p *peers, issuer *issuerFixture) { // the ledger has the good one
		p.leaf = certify(p.t, issuer, leafTemplate(77))
	}
	for name, test := range map[string]struct {
		change func(*peers)
		reason errkind.Reason
		kind   errkind.Kind
	}{
		"self-signed with our names and serial": {func(p *peers) { forged(p, nil) }, errkind.UnknownCertificate, 0},
		"of another authority":                  {func(p *peers) { forged(p, certify(p.t, nil, authorityTemplate("issuer"))) }, errkind.UnknownCertificate, 0},
		"of ours, with a serial of another's":   {func(p *peers) { forged(p, p.issuer) }, errkind.UnknownCertificate, 0},
		"of ours, not in the ledger":            {func(p *peers) { p.source.err = ledger.ErrNotFound }, errkind.UnknownCertificate, 0},
		"the issuer's own":                      {func(p *peers) { p.leaf = p.issuer }, errkind.UnknownCertificate, 0},
		"the root's own":                        {func(p *peers) { p.leaf = p.root }, errkind.UnknownCertificate, 0},
		"under an anchor that is gone": {func(p *peers) {
			other := certify(p.t, nil, authorityTemplate("root"))
			p.config.Authority = func() (anchors, issuers []*x509.Certificate) { return []*x509.Certificate{other.certificate}, nil }
		}, errkind.UnknownCertificate, 0},
		"revoked":                       {row(func(e *ledger.Entry) { e.Revoked = &ledger.Revocation{At: start} }), errkind.CertificateRevoked, 0},
		"expired":                       {leaf(func(c *x509.Certificate) { c.NotAfter = start.Add(-time.Second) }), errkind.CredentialExpired, 0},
		"not begun":                     {leaf(func(c *x509.Certificate) { c.NotBefore = start.Add(time.Second) }), errkind.NotYetValid, 0},
		"got by a pod":                  {row(func(e *ledger.Entry) { e.Origin.Method = "kubernetes" }), errkind.NotRenewable, 0},
		"got by a pod, then renewed":    {row(func(e *ledger.Entry) { e.Origin = ledger.Origin{Method: "certificate", FirstMethod: "kubernetes"} }), errkind.NotRenewable, 0},
		"renewed from nothing":          {row(func(e *ledger.Entry) { e.Origin = ledger.Origin{Method: "certificate"} }), errkind.NotRenewable, 0},
		"the server's own":              {row(func(e *ledger.Entry) { e.Origin.Method = "server" }), errkind.NotRenewable, 0},
		"of the server's identity":      {row(func(e *ledger.Entry) { e.Identity = "spiffe://cluster.local/chancery/server" }), errkind.NotRenewable, 0},
		"of the authority's path":       {row(func(e *ledger.Entry) { e.Identity = "spiffe://cluster.local/chancery" }), errkind.NotRenewable, 0},
		"of another, who was handed it": {leaf(func(c *x509.Certificate) { c.URIs[0].Path = "/vm/db-1/backup" }), errkind.NotRenewable, 0},
		"of another of the same name":   {leaf(func(c *x509.Certificate) { c.URIs[0].Host = "other.local" }), errkind.NotRenewable, 0},
		"of another trust domain":       {row(func(e *ledger.Entry) { e.Identity = "spiffe://other.example/vm/db-1" }), errkind.NotRenewable, 0},
		"of no identity":                {row(func(e *ledger.Entry) { e.Identity = "" }), errkind.NotRenewable, 0},
		"with a ledger that is away":    {func(p *peers) { p.source.err = ledger.ErrUnavailable }, errkind.LedgerUnavailable, errkind.Unavailable},
		"with a ledger that broke":      {func(p *peers) { p.source.err = errors.New("disk") }, errkind.LedgerUnavailable, errkind.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeers(t)
			test.change(p)
			_, err := p.ask(p.leaf.certificate, p.issuer.certificate)
			if test.kind == errkind.Internal {
				test.kind = errkind.Unauthenticated
			}
			wantKind(t, err, test.kind, "")
			if reason := errkind.ReasonOf(err); reason != test.reason {
				t.Errorf("the reason is %s, want %s: %v", reason, test.reason, err)
			}
		})
	}
}

func TestGrace(t *testing.T) {
	for _, test := range []struct {
		grace, since time.Duration
		ok           bool
	}{
		{0, time.Second, false},
		{time.Hour, time.Second, true},
		{time.Hour, time.Hour, true},
		{time.Hour, time.Hour + time.Second, false},
		{47 * time.Hour, 30 * time.Hour, true},
	} {
		t.Run(fmt.Sprintf("%s of %s", test.since, test.grace), func(t *testing.T) {
			p := newPeers(t)
			p.config.Grace = test.grace
			template := leafTemplate(77)
			template.NotBefore, template.NotAfter = start.Add(-47*time.Hour), start.Add(-test.since)
			p.issue(template)
			principal, err := p.ask(p.leaf.certificate)
			switch {
			case !test.ok && errkind.ReasonOf(err) != errkind.CredentialExpired:
				t.Errorf("got %v, %v", principal, err)
			case test.ok && (err != nil || !principal.Certificate.Grace):
				t.Errorf("got %+v, %v", principal, err)
			}
			p.source.row.Revoked = &ledger.Revocation{At: start}
			if _, err := p.ask(p.leaf.certificate); err == nil {
				t.Error("revoked, it was accepted")
			}
		})
	}
	p := newPeers(t)
	p.config.Grace = time.Hour
	if principal, err := p.ask(p.leaf.certificate); err != nil || principal.Certificate.Grace {
		t.Errorf("before its end: got %+v, %v", principal, err)
	}
}
