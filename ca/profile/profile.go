// Package profile says what kinds of certificate there are: which names, usages and lifetimes. A Profile turns an approved request into
// the content of a certificate; nothing in it comes from the request but the key and, once approved, the names.
//
// It never decides who may have a name (ca/authorize does) and never signs.
package profile

import (
	"crypto/x509"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// NameKind says which names a profile's certificates carry.
type NameKind string

// The name kinds.
const (
	// NamesSPIFFE is exactly one URI, a SPIFFE ID, and nothing else (X.509-SVID §2).
	NamesSPIFFE NameKind = "spiffe"
	// NamesDNS is one or more DNS names and IP addresses, and no URI.
	NamesDNS NameKind = "dns"
)

// Backdate is how far notBefore lies before the time of issuance, so that a verifier whose clock is a little slow accepts a new
// certificate. It is added outside the lifetime that was asked for.
const Backdate = time.Minute

// Config is a profile as configured. Lifetimes count from the time of issuance.
type Config struct {
	Name            string
	Names           NameKind
	Usages          []x509.ExtKeyUsage
	DefaultLifetime time.Duration
	MinLifetime     time.Duration
	MaxLifetime     time.Duration
}

// Profile is a valid, immutable profile.
type Profile struct{ config Config }

// New checks a Config.
func New(config Config) (*Profile, error) {
	switch {
	case config.Name == "":
		return nil, fmt.Errorf("a profile needs a name")
	case config.Names != NamesSPIFFE && config.Names != NamesDNS:
		return nil, fmt.Errorf("profile %s: names %q; must be %q or %q", config.Name, config.Names, NamesSPIFFE, NamesDNS)
	case len(config.Usages) == 0:
		return nil, fmt.Errorf("profile %s: needs at least one usage", config.Name)
	case config.MinLifetime <= 0 || config.DefaultLifetime < config.MinLifetime || config.MaxLifetime < config.DefaultLifetime:
		return nil, fmt.Errorf("profile %s: lifetimes must satisfy 0 < min (%s) ≤ default (%s) ≤ max (%s)", config.Name, config.MinLifetime,
			config.DefaultLifetime, config.MaxLifetime)
	}
	if config.Names == NamesSPIFFE {
		// X.509-SVID §4.4: an EKU extension, if there is one, has both
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if !slices.Contains(config.Usages, usage) {
				return nil, fmt.Errorf("profile %s: SPIFFE certificates need both server_auth and client_auth (X.509-SVID §4.4)", config.Name)
			}
		}
	}
	config.Usages = slices.Clone(config.Usages)
	return &Profile{config}, nil
}

// Name returns the profile's name.
func (p *Profile) Name() string { return p.config.Name }

// FixedShape tells whether certificates of this profile differ in serial, times, key and one SPIFFE ID alone, so that a lint of one
// stands for all of the same shape.
func (p *Profile) FixedShape() bool { return p.config.Names == NamesSPIFFE }

// CheckNames tells whether a set of names is of the profile's kind, whoever asks.
func (p *Profile) CheckNames(names identity.Names) error {
	switch p.config.Names {
	case NamesSPIFFE:
		if len(names.URIs) != 1 || len(names.DNS)+len(names.IPs) > 0 {
			return errkind.New(errkind.Invalid, "profile %s certifies exactly one SPIFFE ID; the request names %s", p.config.Name, names)
		}
	case NamesDNS:
		if len(names.URIs) > 0 || len(names.DNS)+len(names.IPs) == 0 {
			return errkind.New(errkind.Invalid, "profile %s certifies DNS names and IP addresses; the request names %s", p.config.Name, names)
		}
	}
	return nil
}

// Clamp says why a lifetime is shorter than asked for; its zero value means that it is not.
type Clamp struct {
	Asked, Granted time.Duration
	Reason         string
}

// Window is the time that the issuers allow: none of them is valid outside of it.
type Window struct {
	NotBefore, NotAfter time.Time
	Issuer              string // the subject of the issuer that ends first, for sentences
}

// Unbounded is the Window of issuers that nobody knows yet.
var Unbounded = Window{NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}

// Validity is a certificate's life.
type Validity struct {
	NotBefore, NotAfter time.Time
	RenewAt             time.Time
	Clamp               Clamp
}

// Validity returns the life of a certificate that is issued now: the asked lifetime (zero means the default), at most the profile's maximum, reduced by
// a random part of up to jitter (0 to 1), inside the issuers' window. The random source spreads renewals and secures nothing.
func (p *Profile) Validity(now time.Time, asked time.Duration, jitter float64, window Window, random *rand.Rand) (Validity, error) {
	if now.Before(window.NotBefore) {
		return Validity{}, errkind.New(errkind.Unavailable, "the server's clock says %s, but its issuer %s is valid only from %s; set the clock",
			stamp(now), window.Issuer, stamp(window.NotBefore))
	}
	lifetime := asked
	if lifetime <= 0 {
		lifetime = p.config.DefaultLifetime
	}
	wanted := lifetime
	if lifetime < p.config.MinLifetime {
		return Validity{}, errkind.New(errkind.Invalid, "a lifetime of %s is below the minimum of profile %s, %s; ask for more or for none", asked,
			p.config.Name, p.config.MinLifetime)
	}
	var clamp Clamp
	if lifetime > p.config.MaxLifetime {
		lifetime = p.config.MaxLifetime
		clamp = Clamp{Reason: fmt.Sprintf("the maximum of profile %s is %s", p.config.Name, lifetime)}
	}
	lifetime -= time.Duration(float64(lifetime) * jitter * random.Float64())
	now = now.Truncate(time.Second)
	notAfter := now.Add(lifetime).Truncate(time.Second)
	if notAfter.After(window.NotAfter) {
		notAfter = window.NotAfter
		if remaining := notAfter.Sub(now); remaining < p.config.MinLifetime {
			return Validity{}, errkind.New(errkind.Unavailable, "issuer %s ends at %s: less than the minimum lifetime of profile %s, %s, is left; the authority needs a new issuer",
				window.Issuer, stamp(window.NotAfter), p.config.Name, p.config.MinLifetime)
		}
		clamp.Reason = fmt.Sprintf("issuer %s ends at %s", window.Issuer, stamp(window.NotAfter))
	}
	notBefore := now.Add(-Backdate)
	if notBefore.Before(window.NotBefore) {
		notBefore = window.NotBefore
	}
	if clamp.Reason != "" {
		clamp.Asked, clamp.Granted = wanted, notAfter.Sub(now)
	}
	// between half and two thirds of life, spread, so that a fleet that started together does not renew together
	life := notAfter.Sub(now)
	renew := now.Add(life/2 + time.Duration(float64(life/6)*random.Float64()))
	return Validity{NotBefore: notBefore, NotAfter: notAfter, RenewAt: renew.Truncate(time.Second), Clamp: clamp}, nil
}

// Leaf returns the content of a certificate for approved names.
func (p *Profile) Leaf(serial *big.Int, names identity.Names, spki []byte, validity Validity) chain.Leaf {
	return chain.Leaf{
		Serial:      serial,
		Names:       names,
		SPKI:        spki,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: p.config.Usages,
		NotBefore:   validity.NotBefore,
		NotAfter:    validity.NotAfter,
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
