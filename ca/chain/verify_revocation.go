package chain

import (
	"cmp"
	"fmt"
	"slices"
)

// revocationLists are a caller's lists by canonical issuer, the newest first: of two that are about the same, the newer one counts.
type revocationLists struct {
	complete, deltas map[string][]*CRL
}

func newRevocationLists(lists []*CRL) revocationLists {
	sorted := slices.Clone(lists)
	slices.SortStableFunc(sorted, func(a, b *CRL) int {
		return cmp.Or(b.list.ThisUpdate.Compare(a.list.ThisUpdate), b.list.Number.Cmp(a.list.Number))
	})
	result := revocationLists{complete: make(map[string][]*CRL), deltas: make(map[string][]*CRL)}
	for _, list := range sorted {
		into := result.complete
		if list.Delta() {
			into = result.deltas
		}
		into[list.issuer.key] = append(into[list.issuer.key], list)
	}
	return result
}

const ruleRevocation = "RFC 5280 §6.3.3"

// checkRevocation decides for every certificate of a path but the anchor whether it was revoked, and returns for which of them lists said
// that they are good. That one is revoked tells more than that nothing is known of another.
func (v *verification) checkRevocation(path []*member) ([]bool, *Error) {
	checked := make([]bool, len(path)-1)
	var unknown *Error
	for i := len(path) - 2; i >= 0; i-- {
		var refusal *Error
		if checked[i], refusal = v.status(path, i, 0); refusal != nil && (refusal.Rule != ruleRevocation || v.work.spent) {
			return nil, refusal
		}
		unknown = cmp.Or(unknown, refusal)
	}
	if unknown != nil {
		return nil, unknown
	}
	return checked, nil
}

// status decides about the certificate with index i in a path: RFC 5280 §6.3.3 over its distribution points, and at last over the lists of
// its issuer that no point names. It returns false if no list is about the certificate.
func (v *verification) status(path []*member, i, depth int) (good bool, refusal *Error) {
	m := path[i]
	if len(v.options.CRLs) == 0 && !v.options.RequireCRLs {
		return false, nil
	}
	s := status{verification: v, path: path, index: i, depth: depth, why: "the lists are not about all reasons for revocation"}
	for _, point := range m.points {
		if s.covered == allReasons {
			break
		}
		if refusal := s.look(point); refusal != nil {
			return false, refusal
		}
	}
	switch {
	case s.covered == allReasons:
		return true, nil
	case s.concerned:
		return false, refuse(i+1, m, ruleRevocation, "its revocation status cannot be determined: %s", s.why)
	case v.options.RequireCRLs:
		return false, refuse(i+1, m, ruleRevocation, "no revocation list by its issuer (%s) is about it", bounded(m.certificate.Issuer.String()))
	}
	return false, nil
}

// status is the state of deciding about one certificate.
type status struct {
	*verification
	path  []*member
	index int
	depth int

	delegated bool    // the certificate names the lists' issuer
	covered   reasons // reasons_mask
	concerned bool    // a list is about the certificate, whether it can be used or not
	why       string  // what is wrong with the last list that could not be used
}

// look goes through the lists of one distribution point.
func (s *status) look(point distributionPoint) *Error {
	m := s.path[s.index]
	serial := serialContents(m.certificate)
	for _, issuer := range point.issuers {
		for _, list := range s.lists.deltas[issuer.key] {
			if !s.concerned && s.about(list, point) {
				s.concerned, s.why = true, "there is a delta but not the complete list that it changes"
			}
		}
		for _, list := range s.lists.complete[issuer.key] {
			if !s.about(list, point) {
				continue
			}
			s.concerned = true
			interim := list.scope.covered() & point.reasons
			if interim&^s.covered == 0 {
				continue
			}
			s.delegated = point.foreign
			if why := s.unusable(list); why != "" {
				s.why = why
				continue
			}
			reason, revoked := list.reasonFor(m.issuer, serial)
			decided := list
			if delta := s.deltaOf(list); delta != nil {
				if newer, listed := delta.reasonFor(m.issuer, serial); listed {
					reason, revoked, decided = newer, newer != RemoveFromCRL, delta
				}
			}
			if revoked {
				return refuse(s.index+1, m, "RFC 5280 §6.1.3 (a)(3)", "it is revoked (%s) by revocation list %d of %s", reason, decided.list.Number,
					bounded(decided.list.Issuer.String()))
			}
			s.covered |= interim
		}
	}
	if s.work.spent {
		return s.work.exhausted(s.index+1, m)
	}
	return nil
}

// about tells whether a list's scope holds the certificate as a distribution point names it: RFC 5280 §6.3.3 (b).
func (s *status) about(list *CRL, point distributionPoint) bool {
	if !s.work.spend(&s.work.comparisons, 1+len(list.scope.points)*len(point.names)) {
		return false
	}
	certificate := s.path[s.index].certificate
	isCA := certificate.BasicConstraintsValid && certificate.IsCA
	scope := list.scope
	switch {
	case point.foreign && !scope.indirect, scope.onlyAttributes, scope.onlyUsers && isCA, scope.onlyCAs && !isCA:
		return false
	}
	return len(scope.points) == 0 || slices.ContainsFunc(scope.points, func(name generalName) bool {
		return slices.ContainsFunc(point.names, name.same)
	})
}

// unusable returns what speaks against using a list: it is not current, or not signed by who may sign it.
func (s *status) unusable(list *CRL) string {
	who := fmt.Sprintf("revocation list %d of %s", list.list.Number, bounded(list.list.Issuer.String()))
	switch at := s.options.At; {
	case at.Before(list.list.ThisUpdate):
		return fmt.Sprintf("%s is of %s, later than the time to verify for", who, stamp(list.list.ThisUpdate))
	case at.After(list.list.NextUpdate):
		return fmt.Sprintf("%s is out of date since %s", who, stamp(list.list.NextUpdate))
	}
	if why := s.unsigned(list); why != "" {
		return who + " " + why
	}
	return ""
}

// deltaOf returns the newest usable delta for a complete list: RFC 5280 §6.3.3 (c). Without one the complete list stands for itself.
func (s *status) deltaOf(list *CRL) *CRL {
	for _, delta := range s.lists.deltas[list.issuer.key] {
		if delta.scope.encoding == list.scope.encoding && string(delta.list.AuthorityKeyId) == string(list.list.AuthorityKeyId) &&
			list.list.Number.Cmp(delta.base) >= 0 && list.list.Number.Cmp(delta.list.Number) < 0 && s.unusable(delta) == "" {
			return delta
		}
	}
	return nil
}

// reasonFor returns why a certificate is on the list.
func (c *CRL) reasonFor(issuer distinguishedName, serial string) (reason Reason, listed bool) {
	index, known := c.issuers[issuer.key]
	if !known {
		return 0, false
	}
	reason, listed = c.entries[crlSubject{index, serial}]
	return reason, listed
}
