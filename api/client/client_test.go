package client

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

// newPeer is a server that answers well: leaf and intermediate under one root.
func newPeer(t *testing.T) (*peer, *authority) {
	t.Helper()
	root := newRoot(t, "root")
	issuing := root.intermediate(t, "issuer")
	p := &peer{t: t, bundle: bundleOf(root)}
	p.answer = func(request *chanceryv1.IssueCertificateRequest) (*chanceryv1.IssueCertificateResponse, error) {
		csr, err := x509.ParseCertificateRequest(request.GetCsr())
		if err != nil {
			return nil, err
		}
		return answerFor(issuing.sign(t, &x509.Certificate{URIs: uris(t, cart)}, csr.PublicKey), bundleOf(root), issuing), nil
	}
	return p, root
}

func (p *peer) dial(roots ...*authority) *Client {
	p.t.Helper()
	return p.dialAs("", roots...)
}

func (p *peer) dialAs(name string, roots ...*authority) *Client {
	p.t.Helper()
	config := Config{Address: p.address, ServerName: name}
	for _, root := range roots {
		config.Roots = append(config.Roots, root.certificate)
	}
	c, err := Dial(config)
	must(p.t, err)
	p.t.Cleanup(func() { must(p.t, c.Close()) })
	return c
}

func TestIssue(t *testing.T) {
	p, root := newPeer(t)
	p.listen(serverCertificate(t, root))
	key := newKey(t)
	got, err := p.dial(root).Issue(within(t), Request{Key: key, Token: "the-token", Profile: "workload", Lifetime: time.Hour})
	must(t, err)
	if len(got.Chain) != 2 || !key.PublicKey.Equal(got.Chain[0].PublicKey) || got.Chain[0].URIs[0].String() != cart {
		t.Errorf("got a chain of %d for %v", len(got.Chain), got.Chain[0].URIs)
	}
	if got.Bundle.TrustDomain != "example.org" || got.Bundle.Sequence != 7 || len(got.Bundle.Anchors) != 1 {
		t.Errorf("got the bundle %+v", got.Bundle)
	}
	if !got.RenewAt.After(time.Now()) || time.Since(got.ServerTime) > time.Minute || time.Since(got.Received) > time.Minute || got.Clamped != "" {
		t.Errorf("got %+v", got)
	}
	calls := p.seen()
	if len(calls) != 1 {
		t.Fatalf("%d calls were made", len(calls))
	}
	sent := calls[0]
	if header := sent.metadata.Get("authorization"); len(header) != 1 || header[0] != "Bearer the-token" {
		t.Errorf("sent authorization %q", header)
	}
	if sent.deadline <= 0 || sent.deadline > callTimeout {
		t.Errorf("sent a deadline of %s", sent.deadline)
	}
	csr, err := x509.ParseCertificateRequest(sent.request.GetCsr())
	must(t, err)
	if !key.PublicKey.Equal(csr.PublicKey.(*ecdsa.PublicKey)) || csr.Subject.String() != "" || len(csr.Extensions) != 0 || csr.CheckSignature() != nil {
		t.Errorf("sent a CSR for %q with %d extensions", csr.Subject, len(csr.Extensions))
	}
	if sent.request.GetProfile() != "workload" || sent.request.GetLifetime().AsDuration() != time.Hour {
		t.Errorf("sent %v", sent.request)
	}
}

func TestIssueWithoutTokenOrKey(t *testing.T) {
	p, root := newPeer(t)
	p.listen(serverCertificate(t, root))
	c := p.dial(root)
	_, err := c.Issue(within(t), Request{Key: newKey(t)})
	must(t, err)
	if header := p.seen()[0].metadata.Get("authorization"); len(header) != 0 {
		t.Errorf("sent authorization %q", header)
	}
	if _, err := c.Issue(within(t), Request{Token: "the-token"}); err == nil || len(p.seen()) != 1 {
		t.Errorf("without a key: %v, %d calls", err, len(p.seen()))
	}
}

// TestClientCertificate: each connection shows the certificate that there is at the time, chain and all, whatever authority made it.
func TestClientCertificate(t *testing.T) {
	p, root := newPeer(t)
	p.listen(serverCertificate(t, root))
	issuer := newRoot(t, "another root")
	var held *tls.Certificate
	var failure error
	config := Config{Address: p.address, Roots: []*x509.Certificate{root.certificate}, Certificate: func() (*tls.Certificate, error) { return held, failure }}
	dial := func() *Client {
		c, err := Dial(config)
		must(t, err)
		t.Cleanup(func() { must(t, c.Close()) })
		return c
	}
	for n := range 3 { // none, one, another one
		_, err := dial().Issue(within(t), Request{Key: newKey(t)})
		must(t, err)
		shown := p.seen()[n].shown
		switch {
		case held == nil && len(shown) != 0:
			t.Errorf("%d certificates were shown, want none", len(shown))
		case held != nil && (len(shown) != 2 || !bytes.Equal(shown[0].Raw, held.Certificate[0]) || !bytes.Equal(shown[1].Raw, held.Certificate[1])):
			t.Errorf("%d certificates were shown, want the leaf and its issuer", len(shown))
		}
		key := newKey(t)
		leaf := issuer.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, key.Public())
		held = &tls.Certificate{Certificate: [][]byte{leaf.Raw, issuer.certificate.Raw}, PrivateKey: key}
	}
	failure = errors.New("the key is away")
	_, err := dial().Issue(within(t), Request{Key: newKey(t)})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), failure.Error()) || errors.Is(err, ErrServer) || len(p.seen()) != 3 {
		t.Errorf("without the key: %v, and %d calls", err, len(p.seen()))
	}
}

// TestServerErrorsPass: a status of the server comes out as it is.
func TestServerErrorsPass(t *testing.T) {
	p, root := newPeer(t)
	p.listen(serverCertificate(t, root))
	c := p.dial(root)
	for _, code := range []codes.Code{codes.PermissionDenied, codes.Unavailable, codes.ResourceExhausted, codes.Unauthenticated} {
		p.answer = func(*chanceryv1.IssueCertificateRequest) (*chanceryv1.IssueCertificateResponse, error) {
			return nil, status.Error(code, "the sentence")
		}
		_, err := c.Issue(within(t), Request{Key: newKey(t), Token: "the-token"})
		if s := status.Convert(err); s.Code() != code || s.Message() != "the sentence" || errors.Is(err, ErrServer) {
			t.Errorf("got %v, want %s", err, code)
		}
	}
}

// TestServersThatAreNotBelieved: whatever is wrong with the server, no credential reaches it, and the error is one that says so.
func TestServersThatAreNotBelieved(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*x509.Certificate)
		other  bool // the certificate is another root's
		name   string
		ok     bool
		says   string
	}{
		"good":                  {ok: true},
		"good, by another name": {name: "ca.example.org", ok: true},
		"another root's":        {other: true, says: "unknown authority"},
		"for another name":      {name: "else.example.org", says: "else.example.org"},
		"for another address":   {change: func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1)} }, says: "127.0.0.1"},
		"expired":               {change: func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }, says: "expired"},
		"for clients only":      {change: func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, says: "usage"},
		"of a later time": {change: func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(time.Hour)
			c.NotAfter = time.Now().Add(2 * time.Hour)
		}, says: "not yet valid"},
		"with a SPIFFE ID alone": {change: func(c *x509.Certificate) { c.DNSNames, c.IPAddresses, c.URIs = nil, nil, uris(t, cart) }, says: "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			p, root := newPeer(t)
			signer := root
			if test.other {
				signer = newRoot(t, "root")
			}
			p.listen(serverCertificate(t, signer, func(c *x509.Certificate) {
				if test.change != nil {
					test.change(c)
				}
			}))
			c := p.dialAs(test.name, root)
			_, err := c.Issue(within(t), Request{Key: newKey(t), Token: "the-token"})
			_, bundleErr := c.TrustBundle(within(t))
			if test.ok {
				must(t, err)
				must(t, bundleErr)
				return
			}
			if !errors.Is(err, ErrServer) || !errors.Is(bundleErr, ErrServer) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, and for the bundle %v", err, bundleErr)
			}
			if status.Code(err) != codes.Unknown {
				t.Errorf("the error is a status of gRPC: %s", status.Code(err))
			}
			if n := len(p.seen()); n != 0 {
				t.Errorf("%d calls reached the server", n)
			}
		})
	}
}

// TestServerThatIsNotThere is another thing than one that is not believed: trying again can help.
func TestServerThatIsNotThere(t *testing.T) {
	p, root := newPeer(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p.address = listener.Addr().String()
	must(t, listener.Close())
	_, err = p.dial(root).Issue(within(t), Request{Key: newKey(t), Token: "the-token"})
	if status.Code(err) != codes.Unavailable || errors.Is(err, ErrServer) {
		t.Errorf("got %v", err)
	}
}

func TestDialRefuses(t *testing.T) {
	root := newRoot(t, "root").certificate
	for name, config := range map[string]Config{
		"no roots":     {Address: "127.0.0.1:8443"},
		"no port":      {Address: "127.0.0.1", Roots: []*x509.Certificate{root}},
		"empty port":   {Address: "127.0.0.1:", Roots: []*x509.Certificate{root}},
		"no host":      {Address: ":8443", Roots: []*x509.Certificate{root}},
		"empty":        {Roots: []*x509.Certificate{root}},
		"a whole URL":  {Address: "https://ca.example.org:8443", Roots: []*x509.Certificate{root}},
		"bare IPv6":    {Address: "::1", Roots: []*x509.Certificate{root}},
		"a target too": {Address: "unix:/run/x", Roots: []*x509.Certificate{root}},
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := Dial(config); err == nil {
				_ = c.Close() // it should not be
				t.Error("it was taken")
			}
		})
	}
}

// TestTrustBundle: the bundle of a server that is believed, if it goes on from the pinned anchors.
func TestTrustBundle(t *testing.T) {
	p, root := newPeer(t)
	p.listen(serverCertificate(t, root))
	other := newRoot(t, "other")
	c := p.dial(root)
	p.bundle = bundleOf(other, root)
	got, err := c.TrustBundle(within(t))
	must(t, err)
	if len(got.Anchors) != 2 || !got.Anchors[1].Equal(root.certificate) {
		t.Errorf("got %d anchors", len(got.Anchors))
	}
	p.bundle = bundleOf(other)
	if got, err := c.TrustBundle(within(t)); !errors.Is(err, ErrAnswer) || len(got.Anchors) != 0 {
		t.Errorf("got %d anchors, %v", len(got.Anchors), err)
	}
}
