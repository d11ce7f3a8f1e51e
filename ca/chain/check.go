package chain

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Error says which certificate of a chain broke which rule.
type Error struct {
	Position int    // 1 is the leaf
	Subject  string // a short form; empty for an empty subject
	Rule     string // the section, as "RFC 5280 §4.1.2.5", or the invariant's name
	Detail   string // what was found and what was expected
}

// Error returns a sentence that names the certificate, the finding and the rule.
func (e *Error) Error() string {
	who := "certificate"
	if e.Position == 1 {
		who = "leaf"
	}
	if e.Subject != "" {
		who += " (" + e.Subject + ")"
	}
	return fmt.Sprintf("certificate %d of the chain, %s: %s (%s)", e.Position, who, e.Detail, e.Rule)
}

func broken(position int, certificate *x509.Certificate, rule, format string, args ...any) *Error {
	return &Error{Position: position, Subject: shownName(certificate.Subject, certificate.RawSubject), Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// shownName returns a name as a sentence may hold it. It is as long as a backend liked, and its text takes quadratic time.
func shownName(name pkix.Name, raw []byte) string {
	if len(raw) > maxShownSubject {
		return fmt.Sprintf("a name of %d octets", len(raw))
	}
	return bounded(name.String())
}

// unreadable returns the Error for a certificate that the strict parser refuses.
func unreadable(position int, certificate *x509.Certificate, err error) *Error {
	var refused *ParseError
	if errors.As(err, &refused) {
		return broken(position, certificate, refused.Findings[0].Section, "%s", refused.Findings[0].Detail)
	}
	return broken(position, certificate, "RFC 5280 §4.1", "%v", err)
}

// Checker checks chains against pinned trust anchors. It is safe for concurrent use. Paths above the leaf that it has verified once are
// remembered, and their dates compared each time: so a new leaf costs one parse and one signature verification.
type Checker struct {
	anchors []*x509.Certificate

	mu    sync.Mutex
	paths map[[sha256.Size]byte]*path
}

// NewChecker returns a Checker that accepts only chains that end at one of the anchors.
func NewChecker(anchors []*x509.Certificate) (*Checker, error) {
	if len(anchors) == 0 || slices.Contains(anchors, nil) {
		return nil, errors.New("a chain checker needs at least one pinned trust anchor")
	}
	return &Checker{anchors: slices.Clone(anchors), paths: make(map[[sha256.Size]byte]*path)}, nil
}

// Check returns nil if the chain is what was approved: its leaf says exactly what want says and nothing more, every signature and
// link is good, it ends at a pinned anchor, nothing in it has expired or is not yet valid at now, and the leaf outlives nothing above it.
// A leaf may say less in one thing, a shorter life; and it may carry, beyond what was approved, extensions that grant nothing: where to
// find the issuer and revocation lists, policies, timestamps.
//
// It reads the encodings again, by ParseIssued and ParseCertificate: what leaves is bytes, whatever a backend says they mean. Errors are of
// type *Error.
func (c *Checker) Check(chain Chain, want Leaf, now time.Time) error {
	if len(chain.certificates) == 0 {
		return &Error{Position: 1, Rule: "a chain is not empty", Detail: "there is no certificate"}
	}
	if err := checkDistinct(1, chain.certificates); err != nil {
		return err
	}
	leaf, err := ParseIssued(chain.Leaf().Raw)
	if err != nil {
		return unreadable(1, chain.Leaf(), err)
	}
	if err := checkLeaf(leaf, want, now); err != nil {
		return err
	}
	above, err := c.path(leaf, chain.Intermediates(), now)
	if err != nil {
		return err
	}
	switch {
	case leaf.NotAfter.After(above.notAfter):
		return broken(1, leaf, "a leaf outlives no issuer", "notAfter %s is later than %s, the earliest notAfter above it",
			stamp(leaf.NotAfter), stamp(above.notAfter))
	case leaf.NotBefore.Before(above.notBefore):
		return broken(1, leaf, "a leaf is not older than its issuers", "notBefore %s is earlier than %s, the latest notBefore above it",
			stamp(leaf.NotBefore), stamp(above.notBefore))
	}
	if above.constrained {
		return above.verify(leaf, want.ExtKeyUsage, now)
	}
	return nil
}

// checkDistinct checks certificates of which the first stands at a position.
func checkDistinct(first int, certificates []*x509.Certificate) error {
	for i, certificate := range certificates {
		if j := slices.IndexFunc(certificates[:i], certificate.Equal); j >= 0 {
			return broken(first+i, certificate, "no certificate stands twice", "it is the same as certificate %d", first+j)
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
