package client

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

// parts are what an answer is made of; a case changes one of them.
type parts struct {
	root, issuing *authority
	pinned        []*authority
	request       Request
	template      *x509.Certificate // of the leaf
	public        any
	// answer makes the response for the leaf; cases may replace it.
	answer func(leaf *x509.Certificate) *chanceryv1.IssueCertificateResponse
}

func goodParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{root: newRoot(t, "root")}
	p.issuing = p.root.intermediate(t, "issuer")
	p.pinned = []*authority{p.root}
	key := newKey(t)
	p.request, p.public = Request{Key: key}, key.Public()
	p.template = &x509.Certificate{URIs: uris(t, cart)}
	p.answer = func(leaf *x509.Certificate) *chanceryv1.IssueCertificateResponse {
		return answerFor(leaf, bundleOf(p.root), p.issuing)
	}
	return p
}

// then changes the response.
func (p *parts) then(change func(*chanceryv1.IssueCertificateResponse)) {
	before := p.answer
	p.answer = func(leaf *x509.Certificate) *chanceryv1.IssueCertificateResponse {
		response := before(leaf)
		change(response)
		return response
	}
}

func (p *parts) check(t *testing.T) (*Certificate, error) {
	t.Helper()
	c := &Client{}
	for _, root := range p.pinned {
		c.pinned = append(c.pinned, root.certificate)
	}
	return c.checkAnswer(p.request, p.answer(p.issuing.sign(t, p.template, p.public)), time.Now())
}

func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*testing.T, *parts)
		says   string // empty if the answer holds
	}{
		"good": {func(*testing.T, *parts) {}, ""},

		"empty": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) { *r = chanceryv1.IssueCertificateResponse{} })
		}, "empty"},
		"no chain": {func(_ *testing.T, p *parts) { p.then(func(r *chanceryv1.IssueCertificateResponse) { r.Chain = nil }) }, "the chain: it is empty"},
		"a chain of octets": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) { r.Chain[1] = []byte("x") })
		}, "certificate 2"},
		"no bundle": {func(_ *testing.T, p *parts) { p.then(func(r *chanceryv1.IssueCertificateResponse) { r.Bundle = nil }) }, "the trust bundle: it is empty"},
		"a bundle of octets": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) { r.Bundle.Anchors[0] = nil })
		}, "the trust bundle: certificate 1"},
		"the issuer's key": {func(_ *testing.T, p *parts) { p.public = p.issuing.key.Public() }, "another key"},
		"somebody's key":   {func(t *testing.T, p *parts) { p.public = newKey(t).Public() }, "another key"},
		"without the intermediate": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) { r.Chain = r.Chain[:1] })
		}, "does not lead"},
		"with the root as well": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) { r.Chain = append(r.Chain, r.GetBundle().GetAnchors()[0]) })
		}, "out of order, or more"},
		"an issuer that is not of it": {func(t *testing.T, p *parts) { p.then(add(newRoot(t, "else").certificate)) }, "out of order, or more"},
		"the issuer twice":            {func(_ *testing.T, p *parts) { p.then(add(p.issuing.certificate)) }, "out of order, or more"},
		"the issuer first": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) { r.Chain[0], r.Chain[1] = r.Chain[1], r.Chain[0] })
		}, "another key"},
		"another root's bundle": {func(t *testing.T, p *parts) { p.then(bundleIs(newRoot(t, "root"))) }, "does not lead"},
		"the leaf as an anchor": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) {
				r.Bundle.Anchors = append(r.Bundle.Anchors, r.GetChain()[0])
			})
		}, "not an authority's"},
		"an authority's certificate": {func(_ *testing.T, p *parts) { p.template.IsCA, p.template.BasicConstraintsValid = true, true }, "an authority's"},
		"expired": {func(_ *testing.T, p *parts) {
			p.template.NotBefore, p.template.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		}, "expired"},
		"of a later time": {func(_ *testing.T, p *parts) {
			p.template.NotBefore, p.template.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		}, "expired or is not yet valid"},
		"of the server's later time":  {func(_ *testing.T, p *parts) { later(p, 30*24*time.Hour) }, "expired or is not yet valid"}, // beyond what is above it
		"of the server's other clock": {func(_ *testing.T, p *parts) { later(p, 50*time.Minute) }, ""},
		"without the server's time": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) { r.ServerTime = nil })
		}, "times"},
		"without a time to renew": {func(_ *testing.T, p *parts) { p.then(func(r *chanceryv1.IssueCertificateResponse) { r.RenewAt = nil }) }, "times"},
		"to renew after its end": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) {
				r.RenewAt = timestamppb.New(time.Now().Add(24 * time.Hour))
			})
		}, "times"},
		"to renew before its beginning": {func(_ *testing.T, p *parts) {
			p.then(func(r *chanceryv1.IssueCertificateResponse) {
				r.RenewAt = timestamppb.New(time.Now().Add(-24 * time.Hour))
			})
		}, "times"},

		"no name":                       {func(_ *testing.T, p *parts) { p.template.URIs = nil }, "not one SPIFFE ID"},
		"two SPIFFE IDs":                {func(t *testing.T, p *parts) { p.template.URIs = uris(t, cart, cart+"2") }, "not one SPIFFE ID"},
		"a SPIFFE ID and a DNS name":    {func(_ *testing.T, p *parts) { p.template.DNSNames = []string{"cart.example.org"} }, "not one SPIFFE ID"},
		"a SPIFFE ID and an address":    {func(_ *testing.T, p *parts) { p.template.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1)} }, "not one SPIFFE ID"},
		"a SPIFFE ID and a mailbox":     {func(_ *testing.T, p *parts) { p.template.EmailAddresses = []string{"cart@example.org"} }, "not one SPIFFE ID"},
		"a DNS name that was not asked": {func(_ *testing.T, p *parts) { p.template.URIs, p.template.DNSNames = nil, []string{"cart.example.org"} }, "not one SPIFFE ID"},
		"a URI that is no SPIFFE ID":    {func(t *testing.T, p *parts) { p.template.URIs = uris(t, "https://example.org/cart") }, "no SPIFFE ID"},
		"a SPIFFE ID of somewhere else": {func(t *testing.T, p *parts) { p.template.URIs = uris(t, "spiffe://example.com/cart") }, "the trust bundle for example.org"},
		"the SPIFFE ID asked for":       {func(_ *testing.T, p *parts) { p.request.URIs = []string{cart} }, ""},
		"not the SPIFFE ID asked for":   {func(_ *testing.T, p *parts) { p.request.URIs = []string{cart + "2"} }, "lacks the name URI:" + cart + "2"},
		"the names asked for":           {askNames, ""},
		"lacking a DNS name":            {func(t *testing.T, p *parts) { askNames(t, p); p.template.DNSNames = p.template.DNSNames[:1] }, "lacks the name DNS:b.example.org"},
		"lacking an address":            {func(t *testing.T, p *parts) { askNames(t, p); p.template.IPAddresses = p.template.IPAddresses[1:] }, "lacks the name IP:192.0.2.1"},
		"a name more than asked for": {func(t *testing.T, p *parts) {
			askNames(t, p)
			p.template.DNSNames = append(p.template.DNSNames, "*.example.org")
		}, "DNS:*.example.org, which was not asked for"},
		"a SPIFFE ID beside them": {func(t *testing.T, p *parts) { askNames(t, p); p.template.URIs = uris(t, cart) }, "URI:" + cart + ", which was not asked for"},
		"a wildcard for the name": {func(_ *testing.T, p *parts) {
			p.request.DNSNames = []string{"a.example.org"}
			p.template.URIs, p.template.DNSNames = nil, []string{"*.example.org"}
		}, "lacks the name DNS:a.example.org"},
		"an address that none was":        {func(t *testing.T, p *parts) { askNames(t, p); p.request.IPAddresses = []string{"192.0.2"} }, "not an IP address"},
		"a bundle that lost the pin":      {func(t *testing.T, p *parts) { p.pinned = []*authority{newRoot(t, "old")} }, "none of the pinned"},
		"a pin of the same name":          {func(t *testing.T, p *parts) { p.pinned = []*authority{newRoot(t, "root")} }, "none of the pinned"},
		"one pin of two lost":             {func(t *testing.T, p *parts) { p.pinned = append([]*authority{newRoot(t, "old")}, p.root) }, ""},
		"the pinned root made anew":       {func(t *testing.T, p *parts) { p.root = p.root.reissue(t) }, ""},
		"a new root beside the pinned":    {func(t *testing.T, p *parts) { rotate(t, p, true) }, ""},
		"a new root, the pinned one gone": {func(t *testing.T, p *parts) { rotate(t, p, false) }, "none of the pinned"},
	} {
		t.Run(name, func(t *testing.T) {
			p := goodParts(t)
			test.change(t, p)
			got, err := p.check(t)
			switch {
			case test.says == "":
				must(t, err)
			case !errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), test.says) || got != nil:
				t.Errorf("got %v, want %q in it", err, test.says)
			}
		})
	}
}

// add puts a certificate at the chain's end.
func add(certificate *x509.Certificate) func(*chanceryv1.IssueCertificateResponse) {
	return func(r *chanceryv1.IssueCertificateResponse) { r.Chain = append(r.Chain, certificate.Raw) }
}

func bundleIs(roots ...*authority) func(*chanceryv1.IssueCertificateResponse) {
	return func(r *chanceryv1.IssueCertificateResponse) { r.Bundle = bundleOf(roots...) }
}

// later lets the server's clock, and the leaf with it, be ahead of ours.
func later(p *parts, by time.Duration) {
	p.template.NotBefore, p.template.NotAfter = time.Now().Add(by-time.Minute), time.Now().Add(by+time.Minute)
	p.then(func(r *chanceryv1.IssueCertificateResponse) { r.ServerTime = timestamppb.New(time.Now().Add(by)) })
}

// askNames lets names be asked for, and given.
func askNames(_ *testing.T, p *parts) {
	p.request.DNSNames, p.request.IPAddresses = []string{"A.example.org", "b.example.org"}, []string{"::ffff:192.0.2.1", "2001:DB8::0:1"}
	p.template.URIs, p.template.DNSNames = nil, []string{"a.example.org", "b.example.org"}
	p.template.IPAddresses = []net.IP{net.ParseIP("192.0.2.1"), net.ParseIP("2001:db8::1")}
}

// rotate lets another root issue, with the pinned one still in the bundle or not.
func rotate(t *testing.T, p *parts, kept bool) {
	t.Helper()
	old, next := p.root, newRoot(t, "next")
	p.issuing = next.intermediate(t, "issuer")
	p.answer = func(leaf *x509.Certificate) *chanceryv1.IssueCertificateResponse {
		if kept {
			return answerFor(leaf, bundleOf(old, next), p.issuing)
		}
		return answerFor(leaf, bundleOf(next), p.issuing)
	}
}
