package client

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrAnswer, fmt.Errorf(format, args...))
}

func (c *Client) checkAnswer(request Request, response *chanceryv1.IssueCertificateResponse, now time.Time) (*Certificate, error) {
	chain, err := parseAll(response.GetChain())
	if err != nil {
		return nil, bad("the chain: %w", err)
	}
	bundle, err := parseBundle(response.GetBundle())
	if err != nil {
		return nil, err
	}
	leaf := chain[0]
	public, err := x509.MarshalPKIXPublicKey(request.Key.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding the public key: %w", err)
	}
	if !bytes.Equal(public, leaf.RawSubjectPublicKeyInfo) {
		return nil, bad("the certificate is for another key")
	}
	if err := checkNames(request, leaf, bundle); err != nil {
		return nil, err
	}
	at, renewAt := response.GetServerTime().AsTime(), response.GetRenewAt().AsTime()
	if response.GetServerTime() == nil || renewAt.Before(leaf.NotBefore) || renewAt.After(leaf.NotAfter) {
		return nil, bad("the times in it do not fit: renewal at %s of a certificate valid from %s to %s, answered at %s", renewAt, leaf.NotBefore, leaf.NotAfter, at)
	}
	if err := checkChain(chain, bundle, at); err != nil {
		return nil, err
	}
	if err := c.checkContinuity(bundle); err != nil {
		return nil, err
	}
	return &Certificate{
		Chain: chain, Bundle: bundle, RenewAt: renewAt, Received: now, ServerTime: at, Clamped: response.GetLifetimeClamp().GetReason(),
	}, nil
}

// checkChain tells whether the chain, as it stands, leads to the bundle. The time is the server's, so that an answer is not thrown away for a clock of
// ours that is off: the dates are the server's promise to its verifiers.
func checkChain(chain []*x509.Certificate, bundle Bundle, at time.Time) error {
	leaf := chain[0]
	if leaf.IsCA {
		return bad("the certificate is an authority's")
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, anchor := range bundle.Anchors {
		roots.AddCert(anchor)
	}
	for _, certificate := range chain[1:] {
		intermediates.AddCert(certificate)
	}
	paths, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return bad("the chain does not lead to the trust bundle: %w", err)
	}
	asItStands := func(path []*x509.Certificate) bool {
		return len(path) == len(chain)+1 && slices.EqualFunc(path[:len(chain)], chain, (*x509.Certificate).Equal)
	}
	if !slices.ContainsFunc(paths, asItStands) {
		return bad("the chain has certificates out of order, or more than lead to the trust bundle")
	}
	return nil
}

// checkNames holds a certificate's names against those that were asked for.
func checkNames(request Request, leaf *x509.Certificate, bundle Bundle) error {
	wanted, err := namesWanted(request)
	if err != nil {
		return err
	}
	got := namesOf(leaf)
	if len(wanted) == 0 {
		return checkIdentity(leaf, got, bundle)
	}
	for _, name := range wanted {
		if !slices.Contains(got, name) {
			return bad("the certificate lacks the name %s", name)
		}
	}
	for _, name := range got {
		if !slices.Contains(wanted, name) {
			return bad("the certificate has the name %s, which was not asked for", name)
		}
	}
	return nil
}

// checkIdentity wants one SPIFFE ID of the bundle's trust domain and no other name (X.509-SVID §2). Which one it is, only the server knows.
func checkIdentity(leaf *x509.Certificate, got []string, bundle Bundle) error {
	if len(got) != 1 || len(leaf.URIs) != 1 {
		return bad("the certificate names %s, and not one SPIFFE ID", strings.Join(got, ", "))
	}
	id, err := spiffeid.FromURI(leaf.URIs[0])
	if err != nil {
		return bad("the certificate's name is no SPIFFE ID: %w", err)
	}
	if id.TrustDomain().Name() != bundle.TrustDomain {
		return bad("the certificate is for %s, and the trust bundle for %s", id, bundle.TrustDomain)
	}
	return nil
}

// namesWanted returns the names asked for in the form that they have in a certificate.
func namesWanted(request Request) ([]string, error) {
	var names []string
	for _, uri := range request.URIs {
		names = append(names, "URI:"+uri)
	}
	for _, name := range request.DNSNames {
		names = append(names, "DNS:"+strings.ToLower(name))
	}
	for _, text := range request.IPAddresses {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, bad("a certificate came although %q, which was asked for, is not an IP address", text)
		}
		names = append(names, "IP:"+ip.Unmap().String())
	}
	return names, nil
}

func namesOf(leaf *x509.Certificate) []string {
	var names []string
	for _, uri := range leaf.URIs {
		names = append(names, "URI:"+uri.String())
	}
	for _, name := range leaf.DNSNames {
		names = append(names, "DNS:"+name)
	}
	for _, ip := range leaf.IPAddresses {
		names = append(names, "IP:"+ip.String())
	}
	for _, address := range leaf.EmailAddresses {
		names = append(names, "email:"+address)
	}
	return names
}

// checkContinuity refuses a bundle in which no pinned anchor goes on; see Issue.
func (c *Client) checkContinuity(bundle Bundle) error {
	for _, pinned := range c.pinned {
		for _, anchor := range bundle.Anchors {
			if bytes.Equal(anchor.RawSubject, pinned.RawSubject) && bytes.Equal(anchor.RawSubjectPublicKeyInfo, pinned.RawSubjectPublicKeyInfo) {
				return nil
			}
		}
	}
	if len(c.pinned) == 0 {
		return nil // FetchRoot, which believes a fingerprint instead
	}
	return bad("its trust bundle has none of the pinned trust anchors; get the authority's root again from its operator")
}

func parseBundle(message *chanceryv1.TrustBundle) (Bundle, error) {
	anchors, err := parseAll(message.GetAnchors())
	if err != nil {
		return Bundle{}, bad("the trust bundle: %w", err)
	}
	for _, anchor := range anchors {
		// a certificate among the anchors is believed unsigned, so that one of a workload must not be there
		if !anchor.BasicConstraintsValid || !anchor.IsCA {
			return Bundle{}, bad("the trust bundle: %s is not an authority's certificate", anchor.Subject)
		}
	}
	return Bundle{TrustDomain: message.GetTrustDomain(), Sequence: message.GetSequence(), Anchors: anchors}, nil
}

func parseAll(encoded [][]byte) ([]*x509.Certificate, error) {
	if len(encoded) == 0 {
		return nil, errors.New("it is empty")
	}
	certificates := make([]*x509.Certificate, 0, len(encoded))
	for i, der := range encoded {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", i+1, err)
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}
