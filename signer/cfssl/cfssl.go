// Package cfssl is the signing backend whose key is held by a CFSSL server, reached by its authsign protocol.
//
// CFSSL signs by profiles of its own and drops without a word what it does not know: dates, an unknown profile, the serial number unless its profile
// takes it. So the package sends names and subject outright, looks at the answer, and tells the operator which of the server's settings does not
// fit; what a server may choose itself is declared (signer.Chooser), never tolerated in silence. It talks to one server, over TLS with pinned
// certificates or over a unix socket, sends each order once, and never tries elsewhere after an answer.
//
// Of github.com/cloudflare/cfssl it uses the package auth alone. The client in api/client has no context, no limit on what it reads, plain HTTP as
// default, a connection for each call, and asks the next server after any error, which signs twice.
package cfssl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/signer"
)

// Config names what a Signer needs.
type Config struct {
	// Server is where the server is: https://HOST, https://HOST:PORT or unix:///PATH. Nothing else is taken: no user, path, query or plain HTTP.
	Server string
	// ServerCAs are the only certificates that the server's own is verified by. Needed with https, refused with unix.
	ServerCAs []*x509.Certificate
	// ServerName is the name in the server's certificate, if it is not the host in Server.
	ServerName string
	// Client is the certificate shown to a server that asks for one; nil for none.
	Client *tls.Certificate
	// Key authenticates orders.
	Key Key
	// Roots are the pinned anchors; every chain ends at one of them.
	Roots *bundle.Bundle
	// Chain is the server's issuing certificate and those above it, in order, with or without the root. If it is empty the server is asked for its
	// issuing certificate (info), which then has to be signed by one of the Roots, or be one.
	Chain []*x509.Certificate
	// Profiles say under which name the server knows our profiles. One that is not there is asked for by our name.
	Profiles map[string]Profile
	// Label names the key of a server that has several (multirootca), for profiles that do not say; usually empty. Together with Chain it is the only
	// one, since one Chain stands above every certificate.
	Label string
	// SendsSubject means that requests with a subject are sent too: the server's profiles have a CSR whitelist without it. Otherwise the server would
	// copy the subject into the certificate, and such requests are refused.
	SendsSubject bool
	// Serial, Earlier and Later are what the server may choose; Shorter is how much earlier than ordered a certificate may end.
	Choices signer.Choices
	Shorter time.Duration
	// Timeout bounds one call, whatever the caller's deadline; from 100 ms.
	Timeout time.Duration
	// Connections bounds the connections, and so the calls under way; from 1.
	Connections int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Profile is what the server calls one of our profiles.
type Profile struct {
	Name string
	// Label, if it is not empty, replaces Config.Label.
	Label string
}

// Signer signs by a CFSSL server. It is immutable but for what it remembers of the server's issuing certificate, and holds connections that close by
// themselves when they are idle.
type Signer struct {
	config  Config
	client  *http.Client
	base    string // of the endpoints' URLs
	shown   string // the server, as errors name it
	slots   chan struct{}
	issuers map[string]*issuers // by label
}

// pinned is a Signer whose issuers were configured, and so are known before anything is signed.
type pinned struct {
	*Signer
	path []*x509.Certificate
}

// Issuers implements signer.Issuers.
func (p pinned) Issuers() []*x509.Certificate { return slices.Clone(p.path) }

// minTimeout is the least that makes sense for a call over a network.
const minTimeout = 100 * time.Millisecond

// New checks a config; it calls nobody. The result is a signer.Prober and a signer.Chooser, and a signer.Issuers if Config.Chain is given. Its errors
// are for the operator.
func New(config Config) (signer.Signer, error) {
	switch {
	case config.Roots == nil:
		return nil, errors.New("a CFSSL backend needs trust anchors")
	case !config.Key.usable():
		return nil, fmt.Errorf("a CFSSL backend needs an authentication key of at least %d bytes", minKey)
	case config.Timeout < minTimeout || config.Connections < 1:
		return nil, fmt.Errorf("a CFSSL backend needs a timeout of at least %s and at least one connection", minTimeout)
	case config.Choices.Earlier < 0 || config.Choices.Later < 0 || config.Shorter < 0:
		return nil, errors.New("by how much dates may differ is not negative")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	to, err := parseServer(config.Server)
	if err != nil {
		return nil, err
	}
	client, err := to.client(config)
	if err != nil {
		return nil, err
	}
	s := &Signer{
		config: config, client: client, base: to.base, shown: to.shown, slots: make(chan struct{}, config.Connections), issuers: make(map[string]*issuers),
	}
	var path []*x509.Certificate
	if len(config.Chain) > 0 {
		if path, err = chain.IssuerPath(config.Chain, config.Roots.Anchors(), config.Now()); err != nil {
			return nil, err
		}
	}
	for _, label := range s.labels() {
		s.issuers[label] = &issuers{configured: path, ask: func(ctx context.Context) ([]*x509.Certificate, error) { return s.info(ctx, label) },
			roots: config.Roots, now: config.Now}
	}
	switch {
	case path == nil:
		return s, nil
	case len(s.issuers) > 1:
		return nil, errors.New("with a configured chain every profile has the same label, since one chain stands above all certificates")
	}
	return pinned{s, path}, nil
}

// Roots implements signer.Signer.
func (s *Signer) Roots() *bundle.Bundle { return s.config.Roots }

// Choices implements signer.Chooser.
func (s *Signer) Choices() signer.Choices { return s.config.Choices }

// Sign implements signer.Signer. An order is sent once. A call that ends without an answer may have left a certificate with the server that nobody
// gets.
func (s *Signer) Sign(ctx context.Context, order signer.Order) (chain.Chain, error) {
	if err := ctx.Err(); err != nil {
		return chain.Chain{}, err
	}
	body, err := s.authsign(order)
	if err != nil {
		return chain.Chain{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	issuers := s.issuers[s.profile(order.Profile).Label]
	// before the key is used: a chain that cannot be completed is worth no certificate
	if _, err := issuers.get(ctx); err != nil {
		return chain.Chain{}, err
	}
	result, err := s.call(ctx, "authsign", body)
	if err != nil {
		return chain.Chain{}, err
	}
	leaf, err := result.leaf()
	if err != nil {
		return chain.Chain{}, fmt.Errorf("%w: %s: %w", signer.ErrWrong, s.shown, err)
	}
	if err := s.compare(order, leaf); err != nil {
		return chain.Chain{}, err
	}
	above, err := issuers.of(ctx, leaf)
	if err != nil {
		return chain.Chain{}, err
	}
	return chain.New(append([]*x509.Certificate{leaf}, above[:len(above)-1]...)...)
}

// compare finds what the server has dropped or chosen without leave, and says how to mend it. Everything else is the checker's to find.
func (s *Signer) compare(order signer.Order, leaf *x509.Certificate) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s, profile %q, certificate %x: %s", signer.ErrWrong, s.shown, s.profile(order.Profile).Name, leaf.SerialNumber,
			fmt.Sprintf(format, args...))
	}
	want, allowed := order.Leaf, s.config.Choices
	switch {
	case !allowed.Serial && leaf.SerialNumber.Cmp(want.Serial) != 0:
		return wrong("its serial number is not the reserved %x; let the server's profile take it (\"ClientProvidesSerialNumbers\": true), "+
			"or allow it to choose (serials: server)", want.Serial)
	case leaf.NotBefore.Before(want.NotBefore.Add(-allowed.Earlier)):
		return wrong("it begins at %s, ordered was %s; CFSSL begins by the profile's \"backdate\", 5m if it has none: shorten it, or raise accept_earlier (%s)",
			stamp(leaf.NotBefore), stamp(want.NotBefore), allowed.Earlier)
	case leaf.NotAfter.After(want.NotAfter.Add(allowed.Later)):
		return wrong("it ends at %s, ordered was %s; CFSSL knows no lifetime but the profile's \"expiry\": shorten it, or raise accept_longer (%s)",
			stamp(leaf.NotAfter), stamp(want.NotAfter), allowed.Later)
	case leaf.NotAfter.Before(want.NotAfter.Add(-s.config.Shorter)):
		return wrong("it ends at %s, ordered was %s; CFSSL knows no lifetime but the profile's \"expiry\", less its \"backdate\": lengthen it, "+
			"or raise accept_shorter (%s)", stamp(leaf.NotAfter), stamp(want.NotAfter), s.config.Shorter)
	}
	return nil
}

// Probe implements signer.Prober: it asks the server for its issuing certificate and holds that against what is pinned. Whether the server takes our
// key shows only when it signs.
func (s *Signer) Probe(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	for _, label := range s.labels() {
		if err := s.issuers[label].probe(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
