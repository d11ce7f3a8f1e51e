// Package lint looks for what a certificate must not be, before the issuing key is used and after.
//
// Before: the content is signed as a twin, with a throwaway key of the issuer's kind under the issuer's name, so that what the linters see is
// byte for byte what the issuing key would sign. After: the signed leaf is linted, unless it is the twin that was. Both use our own
// structural checks and zlint's rules for RFC 5280. The package never uses an issuing key and never decides who may have a name.
package lint

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"

	zx509 "github.com/zmap/zcrypto/x509"
	"github.com/zmap/zlint/v3"
	zlintlib "github.com/zmap/zlint/v3/lint"

	"github.com/chancery-ca/chancery/ca/chain"
)

// Linter runs the lints. It is safe for concurrent use.
type Linter struct {
	registry zlintlib.Registry
	twins    sync.Map // string, the issuing key's kind → crypto.Signer, a throwaway key

	mu     sync.Mutex
	shapes map[shape]struct{} // shapes that passed every lint
}

// shape is what certificates of a fixed-shape profile have in common: whatever the lints can tell apart, but for the serial, the
// times within their forms, the bits of the key and the text of the SPIFFE ID, which have checks of their own.
type shape [sha256.Size]byte

// maxShapes bounds what a Linter remembers; a server has a handful.
const maxShapes = 1024

// New returns a Linter.
func New() (*Linter, error) {
	registry, err := zlintlib.GlobalRegistry().Filter(zlintlib.FilterOptions{
		IncludeSources: zlintlib.SourceList{zlintlib.RFC5280, zlintlib.RFC5480, zlintlib.RFC5891, zlintlib.RFC8813},
		// each costs over a millisecond a certificate: one compares with a list of keys, the other looks for a small private key
		ExcludeNames: []string{"e_cert_issued_by_compromised_emudhra_ca", "e_ecdsa_small_private_key"},
	})
	if err != nil {
		return nil, fmt.Errorf("selecting lints: %w", err)
	}
	return &Linter{registry: registry, shapes: make(map[shape]struct{})}, nil
}

// Passed is what a template's lint found out; Chain takes it back so that nothing is linted twice.
type Passed struct {
	tbs   []byte // the twin's TBSCertificate; nil when its shape was known
	shape shape
	fixed bool
}

// Template lints the content of a certificate before the issuing key is used. fixedShape tells that certificates of this profile differ in nothing
// that a lint can see, so that one verdict stands for all of the same shape. issuer is the certificate that will stand above the leaf; nil
// if that is not known before a remote authority answers, and then only the chain is linted.
func (l *Linter) Template(leaf chain.Leaf, issuer *x509.Certificate, fixedShape bool) (Passed, error) {
	if issuer == nil {
		return Passed{}, nil
	}
	passed := Passed{fixed: fixedShape}
	if fixedShape {
		passed.shape = shapeOf(leaf, issuer)
		if l.known(passed.shape) {
			return passed, nil
		}
	}
	algorithm, err := chain.AlgorithmFor(issuer.PublicKey)
	if err != nil {
		return Passed{}, err
	}
	tbs, err := leaf.TBS(issuer, algorithm)
	if err != nil {
		return Passed{}, fmt.Errorf("building the twin: %w", err)
	}
	key, err := l.twinKey(issuer.PublicKey)
	if err != nil {
		return Passed{}, err
	}
	der, err := algorithm.Certificate(tbs, key, rand.Reader)
	if err != nil {
		return Passed{}, fmt.Errorf("signing the twin: %w", err)
	}
	if err := l.certificate(der); err != nil {
		return Passed{}, err
	}
	passed.tbs = tbs
	return passed, nil
}

// Chain lints the leaf of a signed chain. A leaf whose TBSCertificate is that of the linted twin, or whose shape passed before, is not
// linted again.
func (l *Linter) Chain(signed chain.Chain, passed Passed) error {
	leaf := signed.Leaf()
	switch {
	case passed.tbs != nil && bytes.Equal(passed.tbs, leaf.RawTBSCertificate):
	case passed.tbs == nil && passed.fixed && l.known(passed.shape):
		return nil
	default:
		if err := l.certificate(leaf.Raw); err != nil {
			return err
		}
	}
	if passed.fixed {
		l.remember(passed.shape)
	}
	return nil
}

// certificate runs the strict parser and zlint over one certificate.
func (l *Linter) certificate(der []byte) error {
	if _, err := chain.ParseIssued(der); err != nil {
		return fmt.Errorf("structure: %w", err)
	}
	parsed, err := zx509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("structure: %w", err)
	}
	var findings []error
	for name, result := range zlint.LintCertificateEx(parsed, l.registry).Results {
		if result.Status == zlintlib.Error || result.Status == zlintlib.Fatal {
			findings = append(findings, fmt.Errorf("lint %s: %s", name, result.Details))
		}
	}
	return errors.Join(findings...)
}

func (l *Linter) known(s shape) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.shapes[s]
	return ok
}

func (l *Linter) remember(s shape) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.shapes) >= maxShapes {
		clear(l.shapes)
	}
	l.shapes[s] = struct{}{}
}

// twinKey returns the throwaway key of the same kind as an issuing key. It lives in this process's memory alone.
func (l *Linter) twinKey(public crypto.PublicKey) (crypto.Signer, error) {
	kind := fmt.Sprintf("%T", public)
	generate := func() (crypto.Signer, error) {
		return nil, fmt.Errorf("no throwaway key can be made for an issuer with a %T", public)
	}
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		kind = key.Curve.Params().Name
		generate = func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.Curve(key.Curve), rand.Reader) }
	case ed25519.PublicKey:
		generate = func() (crypto.Signer, error) {
			_, private, err := ed25519.GenerateKey(rand.Reader)
			return private, err
		}
	case *rsa.PublicKey:
		kind = fmt.Sprintf("rsa-%d", key.N.BitLen())
		generate = func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, key.N.BitLen()) }
	}
	if key, ok := l.twins.Load(kind); ok {
		return key.(crypto.Signer), nil //nolint:forcetypeassert // only signers are stored
	}
	fresh, err := generate()
	if err != nil {
		return nil, fmt.Errorf("making a throwaway key: %w", err)
	}
	key, _ := l.twins.LoadOrStore(kind, fresh)
	return key.(crypto.Signer), nil //nolint:forcetypeassert // only signers are stored
}
