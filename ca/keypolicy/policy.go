// Package keypolicy says which public keys Chancery certifies: of which kind and size, and free of the known ways in which a key
// generator goes wrong.
//
// It reads public keys only. It never verifies a signature, never touches a private key and never goes to a network or a database:
// a list of keys known to be compromised comes in by the function Config.Blocked. Its errors are sentences for the requester;
// the caller classifies them.
package keypolicy

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// Kind names a kind of key together with its size, as a configuration file writes it.
type Kind string

// The kinds that Chancery knows. Every other one is refused: P-192, P-224 and RSA below 2048 bits as too weak; other RSA sizes, Ed448, X25519
// and DSA because what relies on the certificate could not use them.
const (
	P256    Kind = "P-256"
	P384    Kind = "P-384"
	P521    Kind = "P-521"
	Ed25519 Kind = "Ed25519"
	RSA2048 Kind = "RSA-2048"
	RSA3072 Kind = "RSA-3072"
	RSA4096 Kind = "RSA-4096"
)

// kinds holds every Kind; a position in it is a bit of Policy.allowed.
var kinds = [...]Kind{P256, P384, P521, Ed25519, RSA2048, RSA3072, RSA4096}

const (
	defaultFermatRounds = 100
	maxFermatRounds     = 1000
)

// Config is a policy as it is written down.
type Config struct {
	// Allow lists the kinds of keys to certify. Empty means all that the package knows.
	Allow []Kind
	// FermatRounds is how many rounds of Fermat's factorisation an RSA modulus must withstand, 1 to 1000. Zero means 100, at
	// which factors as close as those of CVE-2022-26320 are found and all checks of an RSA-4096 key take some 0.1 ms.
	FermatRounds int
	// Blocked tells whether the key with this SHA-256 hash of its DER SubjectPublicKeyInfo is known to be compromised;
	// BlockedKeys.Contains is one. It is called for keys that passed everything else, from many goroutines. Nil blocks none.
	Blocked func(spkiSHA256 [32]byte) bool
}

// Policy is a valid, immutable policy. The zero Policy is Default().
type Policy struct {
	allowed      uint8 // one bit for each of kinds; zero means all
	fermatRounds int   // zero means defaultFermatRounds
	blocked      func(spkiSHA256 [32]byte) bool
}

// Default returns the policy that allows every Kind and blocks no key by its hash.
func Default() Policy { return Policy{} }

// New builds the policy that config describes.
func New(config Config) (Policy, error) {
	policy := Policy{fermatRounds: config.FermatRounds, blocked: config.Blocked}
	for _, kind := range config.Allow {
		bit, known := kind.bit()
		if !known {
			return Policy{}, fmt.Errorf("allow: unknown kind of key %q; the kinds are %s", string(kind), Policy{}.describe())
		}
		policy.allowed |= bit
	}
	if config.FermatRounds < 0 || config.FermatRounds > maxFermatRounds {
		return Policy{}, fmt.Errorf("fermatRounds: %d is not between 1 and %d; leave it out for %d", config.FermatRounds, maxFermatRounds,
			defaultFermatRounds)
	}
	return policy, nil
}

// Check returns nil if the key may be certified, and otherwise a sentence that says why not and what to do. It takes pointers to
// the keys of crypto/ecdsa and crypto/rsa, and ed25519.PublicKey, as crypto/x509 parses them. The cheap rules come first, so
// that a key of a wrong size costs nothing.
func (p Policy) Check(public crypto.PublicKey) error {
	var err error
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		err = p.checkECDSA(key)
	case ed25519.PublicKey:
		err = p.checkEd25519(key)
	case *rsa.PublicKey:
		err = p.checkRSA(key)
	default:
		return fmt.Errorf("public key: type %T is not one that Chancery certifies; use %s", public, p.describe())
	}
	if err != nil {
		return err
	}
	return p.checkBlocked(public)
}

func (p Policy) checkBlocked(public crypto.PublicKey) error {
	if p.blocked == nil {
		return nil
	}
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return fmt.Errorf("public key: encoding it to look it up: %w", err)
	}
	if p.blocked(sha256.Sum256(spki)) {
		return errors.New("public key: it is on the list of compromised keys; generate a new key")
	}
	return nil
}

// require refuses a kind that the policy leaves out.
func (p Policy) require(kind Kind) error {
	if bit, _ := kind.bit(); p.allowed == 0 || p.allowed&bit != 0 {
		return nil
	}
	return p.refuse(string(kind))
}

func (p Policy) refuse(what string) error {
	return fmt.Errorf("public key: %s is not allowed by the key policy; use %s", what, p.describe())
}

func (p Policy) describe() string {
	var names []string
	for i, kind := range kinds {
		if p.allowed == 0 || p.allowed&(1<<i) != 0 {
			names = append(names, string(kind))
		}
	}
	return strings.Join(names, ", ")
}

func (k Kind) bit() (bit uint8, known bool) {
	for i, kind := range kinds {
		if k == kind {
			return 1 << i, true
		}
	}
	return 0, false
}
