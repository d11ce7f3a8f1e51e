// Package profile says what kinds of certificate there are: which names, usages and lifetimes. A Profile turns an approved request into
// the content of a certificate; nothing in it comes from the request but the key and, once approved, the names.
//
// It never decides who may have a name (ca/authorize does) and never signs.
package profile

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// NameKind says which names a profile's certificates carry.
type NameKind string

// The name kinds.
const (
	// NamesSPIFFE is exactly one URI, a SPIFFE ID, and nothing else (X509-SVID §2).
	NamesSPIFFE NameKind = "spiffe"
	// NamesDNS is one or more DNS names and IP addresses, and no URI.
	NamesDNS NameKind = "dns"
)

// shortestLifetime is the least minimum: certificates count in whole seconds (RFC 5280 §4.1.2.5).
const shortestLifetime = time.Second

// Config is a profile as configured. Lifetimes count from the time of issuance.
type Config struct {
	Name  string
	Names NameKind
	// Usages are server_auth, client_auth or both.
	Usages          []x509.ExtKeyUsage
	DefaultLifetime time.Duration
	MinLifetime     time.Duration // at least one second
	MaxLifetime     time.Duration
}

// Profile is a valid, immutable profile.
type Profile struct{ config Config }

// New checks a Config.
func New(config Config) (*Profile, error) {
	switch {
	case config.Name == "":
		return nil, errors.New("a profile needs a name")
	case config.Names != NamesSPIFFE && config.Names != NamesDNS:
		return nil, fmt.Errorf("profile %s: names %q; must be %q or %q", config.Name, config.Names, NamesSPIFFE, NamesDNS)
	case config.MinLifetime < shortestLifetime || config.DefaultLifetime < config.MinLifetime || config.MaxLifetime < config.DefaultLifetime:
		return nil, fmt.Errorf("profile %s: lifetimes must satisfy %s ≤ min (%s) ≤ default (%s) ≤ max (%s)", config.Name, shortestLifetime,
			config.MinLifetime, config.DefaultLifetime, config.MaxLifetime)
	}
	if err := checkUsages(config); err != nil {
		return nil, fmt.Errorf("profile %s: %w", config.Name, err)
	}
	config.Usages = slices.Clone(config.Usages)
	return &Profile{config}, nil
}

func checkUsages(config Config) error {
	if len(config.Usages) == 0 {
		return errors.New("needs at least one usage")
	}
	for i, usage := range config.Usages {
		switch {
		case usage != x509.ExtKeyUsageServerAuth && usage != x509.ExtKeyUsageClientAuth:
			return fmt.Errorf("usage %s is not one that workloads get; use server_auth, client_auth or both", usage)
		case slices.Contains(config.Usages[:i], usage):
			return fmt.Errorf("usage %s stands twice", usage)
		}
	}
	if config.Names == NamesSPIFFE && len(config.Usages) < 2 {
		return errors.New("SPIFFE certificates need both server_auth and client_auth (X509-SVID §4.4)")
	}
	return nil
}

// Name returns the profile's name.
func (p *Profile) Name() string { return p.config.Name }

// FixedShape tells whether certificates of this profile differ in serial, times, key and one SPIFFE ID alone, so that a lint of one
// stands for all of the same shape.
func (p *Profile) FixedShape() bool { return p.config.Names == NamesSPIFFE }

// CheckNames tells whether a set of names is of the profile's kind, whoever asks. Errors are errkind.Invalid.
func (p *Profile) CheckNames(names identity.Names) error {
	switch p.config.Names {
	case NamesSPIFFE:
		return p.checkSPIFFE(names)
	case NamesDNS:
		return p.checkHosts(names)
	default:
		return errkind.New(errkind.Internal, "profile %s has names of the unknown kind %q", p.config.Name, p.config.Names)
	}
}

func (p *Profile) checkSPIFFE(names identity.Names) error {
	if len(names.URIs) != 1 || len(names.DNS)+len(names.IPs) > 0 {
		return errkind.New(errkind.Invalid, "profile %s certifies exactly one SPIFFE ID; the request names %s", p.config.Name, names).Because(errkind.NamesMismatch)
	}
	id, err := spiffeid.FromString(names.URIs[0])
	switch {
	case err != nil:
		return errkind.New(errkind.Invalid, "profile %s certifies exactly one SPIFFE ID; %s is none (SPIFFE-ID §2): %v", p.config.Name, names, err).Because(errkind.NamesMismatch)
	case id.Path() == "":
		return errkind.New(errkind.Invalid, "%s is a whole trust domain; a workload's SPIFFE ID has a path (X509-SVID §3.1)", names).Because(errkind.NamesMismatch)
	}
	return nil
}

// checkHosts leaves the syntax of DNS names to ca/lint, which sees it in a certificate.
func (p *Profile) checkHosts(names identity.Names) error {
	if len(names.URIs) > 0 || len(names.DNS)+len(names.IPs) == 0 {
		return errkind.New(errkind.Invalid, "profile %s certifies DNS names and IP addresses; the request names %s", p.config.Name, names).Because(errkind.NamesMismatch)
	}
	for _, ip := range names.IPs {
		if !ip.IsValid() || ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() {
			return errkind.New(errkind.Invalid, "%s is not the address of a host; ask for an address, without a zone, at which the workload is reached", ip).Because(errkind.NamesMismatch)
		}
	}
	return nil
}

// Leaf returns the content of a certificate for approved names.
func (p *Profile) Leaf(serial *big.Int, names identity.Names, spki []byte, validity Validity) chain.Leaf {
	return chain.Leaf{
		Serial:      serial,
		Names:       names,
		SPKI:        spki,
		KeyUsage:    p.keyUsage(spki),
		ExtKeyUsage: slices.Clone(p.config.Usages),
		NotBefore:   validity.NotBefore,
		NotAfter:    validity.NotAfter,
	}
}

// rsaEncryption is the AlgorithmIdentifier of RSA keys (RFC 3279 §2.3.1).
var rsaEncryption = []byte{0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00}

// keyUsage returns digitalSignature, and keyEncipherment too for the RSA key of a server. TLS 1.3 has no use for that, but verifiers such as NSS want
// it of every server with RSA, and X509-SVID §4.3 allows it. For keys of other kinds it is forbidden (RFC 8813 §3).
func (p *Profile) keyUsage(spki []byte) x509.KeyUsage {
	const header = 4 // of the outer SEQUENCE, which is longer than 255 octets for every RSA key that is certified
	if len(spki) > header && bytes.HasPrefix(spki[header:], rsaEncryption) && slices.Contains(p.config.Usages, x509.ExtKeyUsageServerAuth) {
		return x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	}
	return x509.KeyUsageDigitalSignature
}
