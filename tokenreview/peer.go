package tokenreview

import (
	"context"
	"crypto/x509"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
)

const (
	// peerTimeout bounds the look-up of a certificate.
	peerTimeout = 5 * time.Second
	// maxPeerChain is how many certificates of a caller are looked at.
	maxPeerChain = 10
)

// CertificateSource looks certificates up; every ledger.Ledger is one.
type CertificateSource interface {
	// Certificate returns the issued entry whose certificate is exactly der, or ledger.ErrNotFound. leaf is der's own serial number.
	Certificate(ctx context.Context, leaf ledger.Serial, der []byte) (ledger.Entry, error)
}

// PeerConfig says which certificates renew themselves.
type PeerConfig struct {
	// TrustDomain is where the callers' identities live. Required.
	TrustDomain spiffeid.TrustDomain
	// Origins are the methods by which the first certificate of a line of renewals must have been got. At least one.
	Origins []identity.Method
	// Grace is how long after its end a certificate still counts. Default 0.
	Grace time.Duration
	// Authority returns the trust anchors in use, and the issuing certificates below them. Required.
	Authority func() (anchors, issuers []*x509.Certificate)
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Peer authenticates callers by a certificate that this authority issued and that they have shown in the TLS handshake, which has proven that they hold
// its key. It is safe for concurrent use.
type Peer struct {
	config PeerConfig
	source CertificateSource
}

// NewPeer returns a Peer.
func NewPeer(source CertificateSource, config PeerConfig) (*Peer, error) {
	config.Origins = slices.Clone(config.Origins)
	if config.Now == nil {
		config.Now = time.Now
	}
	switch {
	case source == nil:
		return nil, errors.New("tokenreview: renewal by certificate needs a ledger: configure one, or turn it off")
	case config.TrustDomain.IsZero():
		return nil, errors.New("tokenreview: trust domain is empty: name the one that certificates are issued for")
	case len(config.Origins) == 0 || config.Authority == nil:
		return nil, errors.New("tokenreview: renewal by certificate needs origins and the authority's certificates")
	case config.Grace < 0:
		return nil, errors.New("tokenreview: grace must not be negative")
	}
	return &Peer{config: config, source: source}, nil
}

// Authenticate handles callers who show a certificate and send no token. Whoever sends a token is judged by that alone.
func (p *Peer) Authenticate(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
	if len(credential.PeerChain) == 0 || credential.Bearer != "" {
		return nil, false, nil
	}
	principal, err := p.authenticate(ctx, credential.PeerChain)
	return principal, true, err
}

func (p *Peer) authenticate(ctx context.Context, shown []*x509.Certificate) (*identity.Principal, error) {
	now := p.config.Now()
	leaf, grace, err := p.verify(shown, now)
	if err != nil {
		return nil, err
	}
	serial, err := ledger.SerialFromInt(leaf.SerialNumber)
	if err != nil {
		return nil, notOurs(err)
	}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	entry, err := p.source.Certificate(ctx, serial, leaf.Raw)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil, notOurs(err)
	case err != nil:
		return nil, errkind.Wrap(errkind.Unavailable, err, "the certificate could not be looked up; try again").Because(errkind.LedgerUnavailable).
			After(retryAfter)
	case entry.Revoked != nil:
		return nil, errkind.New(errkind.Unauthenticated, "the certificate was revoked at %s: get a new one with another credential", stamp(entry.Revoked.At)).
			Because(errkind.CertificateRevoked)
	}
	origin := identity.Method(entry.Origin.FirstMethod)
	if origin == "" {
		origin = identity.Method(entry.Origin.Method)
	}
	if !slices.Contains(p.config.Origins, origin) {
		return nil, errkind.New(errkind.Unauthenticated, "a certificate that was first got by %s is not renewed by itself here: send that credential again", origin).
			Because(errkind.NotRenewable)
	}
	id, err := spiffeid.FromString(entry.Identity)
	if err != nil || !id.MemberOf(p.config.TrustDomain) || id.Path() == "" || id.Path() == ownPath || strings.HasPrefix(id.Path(), ownPath+"/") {
		return nil, errkind.Wrap(errkind.Unauthenticated, err, "the certificate's holder is not one whose certificates are renewed here").
			Because(errkind.NotRenewable)
	}
	// A node agent, say, gets certificates of others and hands them over with their keys: their holders are not the agent. A certificate without any
	// identity, of a server's DNS names, is its requester's.
	if len(leaf.URIs) > 0 && !slices.ContainsFunc(leaf.URIs, func(uri *url.URL) bool { return uri.String() == entry.Identity }) {
		return nil, errkind.New(errkind.Unauthenticated, "the certificate is not of the identity that got it: only %s gets it anew, with its own credential", id).
			Because(errkind.NotRenewable)
	}
	return &identity.Principal{
		ID: id, Method: identity.MethodCertificate, CredentialID: entry.Serial.String(), Expiry: leaf.NotAfter.Add(p.config.Grace),
		Certificate: &identity.Certificate{Serial: entry.Serial.String(), NotAfter: leaf.NotAfter, Origin: origin, Grace: grace,
			Profile: entry.Profile, ClientAuth: slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth)},
	}, nil
}

// verify holds the chain against the anchors in use. What the ledger holds was issued here; this finds out that it still counts.
func (p *Peer) verify(shown []*x509.Certificate, now time.Time) (leaf *x509.Certificate, grace bool, err error) {
	// the library that shook hands reads more than ours does
	leaf, err = chain.ParseCertificate(shown[0].Raw)
	if err != nil {
		return nil, false, notOurs(err)
	}
	at := now
	switch {
	case now.Before(leaf.NotBefore):
		return nil, false, errkind.New(errkind.Unauthenticated, "the certificate begins at %s and the clock here says %s: compare the clocks",
			stamp(leaf.NotBefore), stamp(now)).Because(errkind.NotYetValid)
	case now.After(leaf.NotAfter.Add(p.config.Grace)):
		return nil, false, errkind.New(errkind.Unauthenticated, "the certificate expired at %s and the clock here says %s: get a new one with another credential",
			stamp(leaf.NotAfter), stamp(now)).Because(errkind.CredentialExpired)
	case now.After(leaf.NotAfter):
		at, grace = leaf.NotAfter, true
	}
	anchors, issuers := p.config.Authority()
	intermediates := slices.Clone(issuers)
	for _, certificate := range shown[1:min(len(shown), maxPeerChain)] {
		if parsed, err := chain.ParseCertificate(certificate.Raw); err == nil {
			intermediates = append(intermediates, parsed)
		}
	}
	if _, err := chain.Verify(leaf, chain.VerifyOptions{Roots: anchors, Intermediates: intermediates, At: at, AnyKey: true}); err != nil {
		return nil, false, notOurs(err)
	}
	return leaf, grace, nil
}

// notOurs does not tell a caller how near it came.
func notOurs(cause error) error {
	return errkind.Wrap(errkind.Unauthenticated, cause,
		"the client certificate is none of this authority's: connect without one and send a token, or show a certificate from here with its chain").
		Because(errkind.UnknownCertificate)
}
