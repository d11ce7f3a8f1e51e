package ca

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/signer"
)

// Config is everything that an Authority issues by and that a reload can replace, as one.
type Config struct {
	Signer   signer.Signer
	Profiles map[string]*profile.Profile
	Rule     authorize.Rule
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
	replaced chan struct{}       // closed when another snapshot takes over
}

func newSnapshot(config Config, numbered *bundle.Bundle) (*snapshot, error) {
	if config.Signer == nil || config.Rule == nil || len(config.Profiles) == 0 {
		return nil, errors.New("an authority needs a signer, a rule and at least one profile")
	}
	checker, err := chain.NewChecker(numbered.Anchors())
	if err != nil {
		return nil, err
	}
	s := &snapshot{
		signer:   config.Signer,
		profiles: config.Profiles,
		rule:     config.Rule,
		requests: config.Requests,
		checker:  checker,
		bundle:   numbered,
		window:   profile.Unbounded,
		replaced: make(chan struct{}),
	}
	if known, ok := config.Signer.(signer.Issuers); ok {
		s.issuers = known.Issuers()
		notBefore, notAfter, ends, err := chain.Window(s.issuers)
		if err != nil {
			return nil, fmt.Errorf("the signing backend's issuers: %w", err)
		}
		s.window = profile.Window{NotBefore: notBefore, NotAfter: notAfter, Issuer: ends.Subject.String()}
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
	if name == "" {
		name = DefaultProfile
	}
	chosen, ok := s.profiles[name]
	if !ok {
		return nil, errkind.New(errkind.Invalid, "profile %.64q does not exist here; ask the operator which profiles there are, or leave it empty for %q", name,
			DefaultProfile)
	}
	return chosen, nil
}

// checkKey refuses a request for one of the authority's own keys.
func (s *snapshot) checkKey(request *csr.Request) error {
	for _, issuer := range s.issuers {
		if bytes.Equal(issuer.RawSubjectPublicKeyInfo, request.SPKI()) {
			return errkind.New(errkind.Denied, "the request's key is an authority's own key; make a new key")
		}
	}
	return nil
}

// Validate says whether an Authority could issue by a config.
func Validate(config Config) error {
	if config.Signer == nil {
		return errors.New("an authority needs a signer")
	}
	_, err := newSnapshot(config, config.Signer.Roots())
	return err
}
