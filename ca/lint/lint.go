// Package lint looks for what a certificate must not be, before the issuing key is used and after.
//
// Before: the content is signed as a twin, with a throwaway key of the issuer's kind under the issuer's name, so that what the linters see is
// byte for byte what the issuing key would sign. After: the signed leaf is linted, unless what was signed is what was linted. Both use our
// own structural checks and zlint's rules for RFC 5280. The package never uses an issuing key and never decides who may have a name.
package lint

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	zx509 "github.com/zmap/zcrypto/x509"
	"github.com/zmap/zlint/v3"
	zlintlib "github.com/zmap/zlint/v3/lint"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
)

// Linter runs the lints. It is safe for concurrent use.
type Linter struct {
	registry zlintlib.Registry
	stranger *x509.Certificate // stands for an issuer that nobody knows yet

	twinsMu sync.Mutex
	twins   map[string]crypto.Signer // throwaway keys, by the kind of issuing key that they stand for

	mu     sync.Mutex
	shapes map[shape]struct{} // shapes that passed every lint
}

// maxShapes bounds what a Linter remembers; a server has a handful.
const maxShapes = 1024

// Refusal says that a certificate, or what would become one, breaks rules. Every other error of this package is a failure of its own.
type Refusal struct {
	// Findings are sentences, each with the name of the rule; there is at least one.
	Findings []string
}

// Error returns the findings.
func (r *Refusal) Error() string { return strings.Join(r.Findings, "; ") }

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
	l := &Linter{registry: registry, twins: make(map[string]crypto.Signer), shapes: make(map[shape]struct{})}
	if l.stranger, err = l.newStranger(); err != nil {
		return nil, err
	}
	return l, nil
}

// Prepare makes what Template needs for an issuer, and tells whether certificates under it pass at all: so that an issuer whose own name or
// key breaks a rule is found at start, and not blamed on every requester. The sample that it lints begins at now.
func (l *Linter) Prepare(issuer *x509.Certificate, now time.Time) error {
	key, err := l.twinKey(l.stranger.PublicKey)
	if err != nil {
		return err
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding the sample's key: %w", err)
	}
	now = now.UTC().Truncate(time.Second)
	_, err = l.Template(chain.Leaf{
		Serial: big.NewInt(1), Names: identity.Names{URIs: []string{"spiffe://example.org/sample"}}, SPKI: spki, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, NotBefore: now, NotAfter: now.Add(time.Hour),
	}, issuer, false)
	return err
}

// Passed is what a template's lint found out; Chain takes it back so that nothing is linted twice.
type Passed struct {
	tbs []byte // the TBSCertificate for which the lints' verdict stands; nil if the issuer was not known
}

// Template lints the content of a certificate before the issuing key is used. fixedShape tells that certificates of this profile differ in nothing
// that a lint can see, so that one verdict stands for all of the same shape. issuer is the certificate that will stand above the leaf; nil
// if that is not known before a remote authority answers, and then a stranger stands for it. Content that breaks a rule is a *Refusal.
func (l *Linter) Template(leaf chain.Leaf, issuer *x509.Certificate, fixedShape bool) (Passed, error) {
	known := issuer != nil
	if !known {
		issuer = l.stranger
	}
	algorithm, err := chain.AlgorithmFor(issuer.PublicKey)
	if err != nil {
		return Passed{}, err
	}
	tbs, err := leaf.TBS(issuer, algorithm)
	if err != nil {
		return Passed{}, &Refusal{Findings: []string{err.Error()}}
	}
	if fixedShape && isFixed(leaf) {
		err = l.once(shapeOf(leaf, issuer), func() error { return l.twin(tbs, algorithm, issuer) })
	} else {
		err = l.twin(tbs, algorithm, issuer)
	}
	if err != nil || !known {
		return Passed{}, err
	}
	return Passed{tbs}, nil
}

// twin signs a TBSCertificate with a throwaway key and lints the result.
func (l *Linter) twin(tbs []byte, algorithm chain.Algorithm, issuer *x509.Certificate) error {
	key, err := l.twinKey(issuer.PublicKey)
	if err != nil {
		return err
	}
	der, err := algorithm.Certificate(tbs, key, rand.Reader)
	if err != nil {
		return fmt.Errorf("signing the twin: %w", err)
	}
	return l.certificate(der)
}

// Chain lints the leaf of a signed chain, unless its TBSCertificate is the very one that Template's verdict stands for. A leaf that breaks a rule
// is a *Refusal.
func (l *Linter) Chain(signed chain.Chain, passed Passed) error {
	leaf := signed.Leaf()
	if passed.tbs != nil && bytes.Equal(passed.tbs, leaf.RawTBSCertificate) {
		return nil
	}
	return l.certificate(leaf.Raw)
}

// certificate runs the strict parser and zlint over one certificate.
func (l *Linter) certificate(der []byte) error {
	if _, err := chain.ParseIssued(der); err != nil {
		return &Refusal{Findings: []string{err.Error()}}
	}
	parsed, err := zx509.ParseCertificate(der)
	if err != nil {
		return &Refusal{Findings: []string{"zlint cannot read it: " + err.Error()}}
	}
	var findings []string
	for name, result := range zlint.LintCertificateEx(parsed, l.registry).Results {
		if result.Status != zlintlib.Error && result.Status != zlintlib.Fatal {
			continue
		}
		finding := "lint " + name
		if result.Details != "" {
			finding += ": " + result.Details
		}
		findings = append(findings, finding)
	}
	if len(findings) == 0 {
		return nil
	}
	slices.Sort(findings)
	return &Refusal{Findings: findings}
}

// once runs a lint unless one of the same shape has passed before.
func (l *Linter) once(s shape, lint func() error) error {
	l.mu.Lock()
	_, passed := l.shapes[s]
	l.mu.Unlock()
	if passed {
		return nil
	}
	if err := lint(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.shapes) >= maxShapes {
		clear(l.shapes)
	}
	l.shapes[s] = struct{}{}
	return nil
}
