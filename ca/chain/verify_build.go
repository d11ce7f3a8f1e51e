package chain

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"slices"
)

// pool holds the certificates that a path can be built from, by subject.
type pool struct {
	bySubject map[string][]*member
}

// newPool indexes roots before intermediates. A certificate whose names cannot be read is nobody's issuer; one that stands twice counts once.
func newPool(roots, intermediates []*x509.Certificate) pool {
	p := pool{bySubject: make(map[string][]*member)}
	seen := make(map[[sha256.Size]byte]bool)
	add := func(certificates []*x509.Certificate, anchors bool) {
		for _, certificate := range certificates {
			digest := sha256.Sum256(certificate.Raw)
			if seen[digest] {
				continue
			}
			seen[digest] = true
			if m, err := newMember(certificate, anchors); err == nil {
				p.bySubject[m.subject.key] = append(p.bySubject[m.subject.key], m)
			}
		}
	}
	add(roots, true)
	add(intermediates, false)
	return p
}

// issuers returns who may have issued a certificate, the likeliest first: those whose key identifier fits, then anchors, then those that
// are valid at the time. The order decides what is found within the bounds, and never what is accepted.
func (v *verification) issuers(of *member) []*member {
	candidates := slices.Clone(v.pool.bySubject[of.issuer.key])
	rank := func(m *member) int {
		rank := 0
		if !identifiersFit(of.certificate, m.certificate) {
			rank += 4
		}
		if !m.anchor {
			rank += 2
		}
		if !v.validAt(m.certificate) {
			rank++
		}
		return rank
	}
	slices.SortStableFunc(candidates, func(a, b *member) int { return rank(a) - rank(b) })
	return candidates
}

// identifiersFit tells whether the key identifiers of RFC 5280 §4.2.1.1 and §4.2.1.2 do not speak against an issuer.
func identifiersFit(certificate, issuer *x509.Certificate) bool {
	return len(certificate.AuthorityKeyId) == 0 || len(issuer.SubjectKeyId) == 0 || bytes.Equal(certificate.AuthorityKeyId, issuer.SubjectKeyId)
}

func (v *verification) validAt(certificate *x509.Certificate) bool {
	return !v.options.At.Before(certificate.NotBefore) && !v.options.At.After(certificate.NotAfter)
}

// How much an error tells about why there is no path; of several, the most telling one is returned.
const (
	tellsNoIssuer = iota + 1 // nobody with the issuer's name
	tellsUnfit               // somebody with its name, who did not or may not issue it
	tellsInvalid             // a whole path, which is not valid
)

// walk is one search for a path.
type walk struct {
	*verification
	accept func(path []*member) (*Path, *Error)
	why    *Error
	tells  int
}

// build searches depth first for a path from end to an anchor that accept takes.
func (v *verification) build(end *member, accept func(path []*member) (*Path, *Error)) (*Path, *Error) {
	w := &walk{verification: v, accept: accept}
	if end.anchor || v.options.AnchorLeaf && end.selfIssued() && v.isAnchor(end) {
		return v.anchorAlone(end, accept)
	}
	if path := w.extend([]*member{end}, 0); path != nil {
		return path, nil
	}
	if w.why == nil {
		return nil, refuse(1, end, "RFC 5280 §6.1", "no path leads to a trust anchor")
	}
	return nil, w.why
}

// extend looks for an issuer of the last certificate of a path; intermediates counts those in it that are not self-issued.
func (w *walk) extend(path []*member, intermediates int) *Path {
	position, last := len(path), path[len(path)-1]
	candidates := w.issuers(last)
	if len(candidates) == 0 {
		w.note(tellsNoIssuer, refuse(position, last, "RFC 5280 §6.1.3 (a)(4)", "its issuer (%s) is neither a trust anchor nor among the intermediates",
			bounded(last.certificate.Issuer.String())))
	}
	for _, candidate := range candidates {
		if !w.work.spend(&w.work.steps, 1) {
			w.note(tellsInvalid+1, w.work.exhausted(position, last))
			return nil
		}
		if repeats(path, candidate) {
			w.note(tellsNoIssuer, refuse(position, last, "RFC 5280 §6.1.3 (a)(4)",
				"its only known issuers (%s) are itself or stand below it; no path leads from there to another trust anchor",
				bounded(last.certificate.Issuer.String())))
			continue
		}
		next := append(path[:position:position], candidate)
		if refusal := w.checkIssuer(next, intermediates); refusal != nil {
			w.note(tellsUnfit, refusal)
			continue
		}
		if candidate.anchor {
			found, refusal := w.accept(next)
			if found != nil {
				return found
			}
			w.note(tellsInvalid, refusal)
			continue
		}
		above := intermediates
		if !candidate.selfIssued() {
			above++
		}
		if above > w.pathLength || len(next) >= maxPath {
			w.note(tellsUnfit, refuse(position+1, candidate, "RFC 5280 §6.1.2 (k)", "the path is too long: %d intermediates are accepted, %d certificates in all",
				w.pathLength, maxPath))
			continue
		}
		if found := w.extend(next, above); found != nil || w.work.spent {
			return found
		}
	}
	return nil
}

// repeats tells whether a path would come back to a key of the same subject: whatever it reaches from there, it reaches without the loop.
func repeats(path []*member, candidate *member) bool {
	return slices.ContainsFunc(path, func(m *member) bool {
		return m.subject.key == candidate.subject.key &&
			bytes.Equal(m.certificate.RawSubjectPublicKeyInfo, candidate.certificate.RawSubjectPublicKeyInfo)
	})
}

// note keeps the error that tells most, the one nearest to an anchor among equals, and the first of those.
func (w *walk) note(tells int, refusal *Error) {
	if w.work.spent {
		tells = tellsInvalid + 1
	}
	if tells > w.tells || tells == w.tells && refusal.Position > w.why.Position {
		w.tells, w.why = tells, refusal
	}
}
