package chain

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/keypolicy"
)

// VerifyOptions says what Verify holds a certificate against. Roots and At are needed; everything else may be left out. The certificates
// have to come from a parser of this package, since Verify judges what they say, not how they are written.
type VerifyOptions struct {
	// Roots are the pinned trust anchors. A path ends at one of them.
	Roots []*x509.Certificate
	// Intermediates are what a path may be built from, in any order; the leaf and roots may be among them. None is trusted.
	Intermediates []*x509.Certificate
	// At is the time to verify for. Validity has whole seconds, both ends included, so fractions are ignored.
	At time.Time

	// Usages are the extended key usages that the whole path has to allow, every one of them. Empty asks for none.
	Usages []x509.ExtKeyUsage
	// KeyUsage are bits that the leaf's key usage has to have, if it has one.
	KeyUsage x509.KeyUsage
	// Host is a DNS name or an IP address that the subject alternative names have to cover. Common names are never looked at.
	Host string
	// URI has to be one of the subject alternative names, octet by octet.
	URI string
	// SPIFFEID has to be the only URI of the subject alternative names.
	SPIFFEID spiffeid.ID

	// Policies are the policy inputs of RFC 5280 §6.1.1.
	Policies PolicyOptions
	// PathLength bounds how many intermediates that are not self-issued a path may have; nil stands for 8.
	PathLength *int

	// CRLs are revocation lists: full ones, deltas and indirect ones. A certificate is checked if one of them is of its issuer, or
	// is named by its distribution points; then its status has to come out, or it is refused. RequireCRLs refuses those that no list is of, too.
	CRLs        []*CRL
	RequireCRLs bool

	// Keys is the policy that every key of a path has to pass. AnyKey waives it, for chains of the past.
	Keys   keypolicy.Policy
	AnyKey bool
	// Conforming refuses paths in which a certificate breaks any rule for who issues it, also where certificates in use do: those with
	// any finding of Inspect, and those whose key identifiers do not fit.
	Conforming bool
	// AnchorLeaf accepts a leaf that is one of Roots and self-signed as a path of its own.
	AnchorLeaf bool
}

// PolicyOptions are the inputs for certificate policies. The zero value accepts any.
type PolicyOptions struct {
	// Acceptable is the user-initial-policy-set; empty stands for any policy. It refuses a path only when a policy is required, by
	// Explicit or by a certificate; Path.Policies says what came out.
	Acceptable []x509.OID
	// Explicit, InhibitMapping and InhibitAny are the initial-explicit-policy, initial-policy-mapping-inhibit and
	// initial-any-policy-inhibit.
	Explicit, InhibitMapping, InhibitAny bool
}

// Path is a path that was verified.
type Path struct {
	// Certificates are the path, leaf first and trust anchor last.
	Certificates []*x509.Certificate
	// Policies is the user-constrained-policy-set (RFC 9618 §4.5), sorted. It may hold anyPolicy.
	Policies []x509.OID
	// Revocation tells for each certificate but the anchor whether revocation lists said that it is good.
	Revocation []bool
}

// Verify builds a path from leaf to one of the roots and validates it by RFC 5280 §6.1, and §6.3 where revocation lists are given. It
// returns the first path that holds. Signatures are checked by crypto/x509; everything else is decided here:
//
//   - A trust anchor is a certificate, so what it says binds (as RFC 5937 has it): its validity, basic constraints, key usage, extended key
//     usage, name constraints, policy constraints and critical extensions. Its signature and its certificate policies are not looked at.
//   - A leaf that is one of the roots is not taken on that alone: it needs a path like any other, or AnchorLeaf.
//   - Extended key usages nest: an issuer that has some grants no others.
//   - SHA-1 and MD5 are refused, and so are keys that the key policy refuses.
//   - Rules for who issues bind where no certificate in use breaks them: see alwaysRefused. Conforming holds paths to the rest, too.
//   - Names match by RFC 5280 §7.1, which crypto/x509 does by octets.
//
// The work is bounded: a hostile set of certificates ends in an error that says so. Errors are of type *Error, unless the options are wrong.
func Verify(leaf *x509.Certificate, options VerifyOptions) (*Path, error) {
	v, err := newVerification(options)
	if err == nil && leaf == nil {
		err = errors.New("verifying a chain needs a leaf")
	}
	if err != nil {
		return nil, err
	}
	end, err := newMember(leaf, false)
	if err != nil {
		return nil, &Error{Position: 1, Subject: bounded(leaf.Subject.String()), Rule: "RFC 5280 §4.1.2.4", Detail: err.Error()}
	}
	if refusal := v.checkLeaf(end); refusal != nil {
		return nil, refusal
	}
	path, refusal := v.build(end, v.accept)
	if refusal != nil {
		return nil, refusal
	}
	return path, nil
}

// verification is one call of Verify.
type verification struct {
	options    VerifyOptions
	pathLength int
	pool       pool
	work       work
	signed     map[signatureOf]error
	lists      revocationLists
	vouching   map[*member]bool // signers of lists whose own status is being decided
}

func newVerification(options VerifyOptions) (*verification, error) {
	switch {
	case len(options.Roots) == 0:
		return nil, errors.New("verifying a chain needs at least one pinned trust anchor")
	case options.At.IsZero():
		return nil, errors.New("verifying a chain needs the time to verify for")
	case len(options.Intermediates) > maxCandidates:
		return nil, fmt.Errorf("there are %d intermediates to build a path from; at most %d are accepted", len(options.Intermediates), maxCandidates)
	case slices.ContainsFunc(options.CRLs, func(list *CRL) bool { return list == nil || !list.checked }):
		return nil, errors.New("revocation lists have to come from ParseCRL, without findings")
	case options.PathLength != nil && *options.PathLength < 0:
		return nil, fmt.Errorf("a path length of %d is negative", *options.PathLength)
	}
	options.At = options.At.Truncate(time.Second)
	v := &verification{options: options, pathLength: maxIntermediates, work: newWork(), signed: make(map[signatureOf]error),
		vouching: make(map[*member]bool)}
	if options.PathLength != nil {
		v.pathLength = *options.PathLength
	}
	v.pool = newPool(options.Roots, options.Intermediates)
	v.lists = newRevocationLists(options.CRLs)
	return v, nil
}

// refuse returns the error for a certificate at a position, 1 being the leaf.
func refuse(position int, at *member, rule, format string, args ...any) *Error {
	return &Error{Position: position, Subject: bounded(at.certificate.Subject.String()), Rule: rule, Detail: fmt.Sprintf(format, args...)}
}
