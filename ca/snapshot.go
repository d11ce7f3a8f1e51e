package ca

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/signer"
)

// Config is everything that an Authority issues by and that a reload can replace, as one.
type Config struct {
	// Signer holds the issuing key; its Roots are the trust bundle.
	Signer signer.Signer
	// Profiles are the profiles by their names.
	Profiles map[string]*profile.Profile
	// Rule says who may have what; what it does not allow is denied.
	Rule authorize.Rule
	// Requests says which certificate requests are read.
	Requests csr.Rules
}

// snapshot is a Config that was checked, with what follows from it. It is immutable; a request looks at one snapshot from its beginning to
// its end, so that key, chain and bundle always belong together.
type snapshot struct {
	signer   signer.Signer
	profiles map[string]*profile.Profile
	rule     authorize.Rule
	requests csr.Rules
	checker  *chain.Checker
	bundle   *bundle.Bundle
	issuers  []*x509.Certificate // empty if the backend does not say
	window   profile.Window      // unbounded if the backend does not say
	choices  signer.Choices      // none if the backend does not say
	replaced chan struct{}       // closed when another snapshot takes over
}

// newSnapshot checks a config. Its bundle has no number yet.
func newSnapshot(config Config) (*snapshot, error) {
	if config.Signer == nil || config.Rule == nil || len(config.Profiles) == 0 {
		return nil, errors.New("an authority needs a signer, a rule and at least one profile")
	}
	for name, p := range config.Profiles {
		if p == nil || p.Name() != name {
			return nil, fmt.Errorf("profile %q is not the one of this name", name)
		}
	}
	roots := config.Signer.Roots()
	if roots == nil {
		return nil, errors.New("the signing backend has no trust anchors")
	}
	checker, err := chain.NewChecker(roots.Anchors())
	if err != nil {
		return nil, err
	}
	s := &snapshot{
		signer:   config.Signer,
		profiles: maps.Clone(config.Profiles),
		rule:     config.Rule,
		requests: config.Requests,
		checker:  checker,
		bundle:   roots,
		window:   profile.Unbounded,
		replaced: make(chan struct{}),
	}
	if chooser, ok := config.Signer.(signer.Chooser); ok {
		s.choices = chooser.Choices()
	}
	if known, ok := config.Signer.(signer.Issuers); ok {
		s.issuers = known.Issuers()
		begins, ends, err := chain.Window(s.issuers)
		if err != nil {
			return nil, fmt.Errorf("the signing backend's issuers: %w", err)
		}
		s.window = profile.Window{NotBefore: begins.NotBefore, NotAfter: ends.NotAfter, Begins: begins.Subject.String(), Ends: ends.Subject.String()}
	}
	return s, nil
}

// issuer returns the certificate that will stand above the leaf, or nil if the backend does not say.
func (s *snapshot) issuer() *x509.Certificate {
	if len(s.issuers) == 0 {
		return nil
	}
	return s.issuers[0]
}

func (s *snapshot) profile(name string) (*profile.Profile, error) {
	chosen, ok := s.profiles[name]
	if !ok {
		return nil, errkind.New(errkind.Invalid, "profile %.64q does not exist here; ask the operator which profiles there are, or leave it empty for %q", name,
			DefaultProfile).Because(errkind.UnknownProfile)
	}
	return chosen, nil
}

// checkPrincipal refuses what no authenticator returns: a door that lets such a caller through must not get it a certificate.
func (s *snapshot) checkPrincipal(principal *identity.Principal) error {
	switch {
	case principal == nil || principal.ID.IsZero():
		return errkind.New(errkind.Internal, "the order comes from nobody who was authenticated")
	case !principal.ID.MemberOf(s.bundle.TrustDomain()):
		return errkind.New(errkind.Denied, "%s is not of the trust domain %s, the only one that this authority certifies", principal.ID, s.bundle.TrustDomain().Name()).
			Because(errkind.NotAllowed)
	}
	return nil
}

// checkKey refuses a request for one of the authority's own keys.
func (s *snapshot) checkKey(request *csr.Request) error {
	spki := request.SPKI()
	isOwn := func(certificate *x509.Certificate) bool {
		return bytes.Equal(certificate.RawSubjectPublicKeyInfo, spki)
	}
	if slices.ContainsFunc(s.issuers, isOwn) || slices.ContainsFunc(s.bundle.Anchors(), isOwn) {
		return errkind.New(errkind.Denied, "the request's key is an authority's own key; make a new key").Because(errkind.KeyRefused)
	}
	return nil
}

// usable returns nil if a certificate could be issued at now under at least one profile. An issuer that is not valid yet, or that ends before the
// shortest lifetime of any profile, issues nothing, however well it signs.
func (s *snapshot) usable(now time.Time) error {
	var refused error
	for _, name := range slices.Sorted(maps.Keys(s.profiles)) {
		_, err := s.profiles[name].Validity(now, profile.Wanted{}, s.window)
		if err == nil {
			return nil
		}
		if refused == nil || name == DefaultProfile {
			refused = err
		}
	}
	return refused
}

// Validate says whether an Authority could issue by a config at now. It changes nothing.
func Validate(config Config, now time.Time) error {
	s, err := newSnapshot(config)
	if err != nil {
		return err
	}
	return s.usable(now)
}
