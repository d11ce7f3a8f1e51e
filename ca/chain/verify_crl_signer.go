package chain

import (
	"bytes"
	"crypto/x509"
	"slices"
)

// unsigned returns what is wrong with a list's signature: RFC 5280 §6.3.3 (f) to (h). A list is signed by a certificate above the one in
// question, or by another with the list's issuer's name, which then needs a path of its own to the same anchor.
func (s *status) unsigned(list *CRL) string {
	if !acceptedAlgorithm(list.list.SignatureAlgorithm) {
		return "is signed by an algorithm that is not accepted: " + list.list.SignatureAlgorithm.String()
	}
	why := "is by nobody who is known"
	for _, signer := range s.signers(list) {
		if refusal := s.checkCertificate(1, signer); refusal != nil {
			why = "is by a certificate that is not accepted: " + refusal.Detail
			continue
		}
		if signer.keyUsage && signer.certificate.KeyUsage&x509.KeyUsageCRLSign == 0 {
			why = "is by a certificate whose key usage lacks cRLSign"
			continue
		}
		err := s.signature(list.list.SignatureAlgorithm, list.list.RawTBSRevocationList, list.list.Signature, list, signer)
		if err != nil {
			why = "is not signed by its issuer: " + err.Error()
			continue
		}
		// a signer whose own status is on its list vouches for itself only if its certificate says that this is where its status is
		if slices.Contains(s.path[s.index+1:], signer) || s.vouching[signer] && s.delegated {
			return ""
		}
		refusal := s.signerPath(signer)
		if refusal == nil {
			return ""
		}
		why = "is signed by a certificate without a path of its own: " + refusal.Detail
	}
	return why
}

// signers returns who may have signed a list: first those above the certificate, then others with the name, those whose key identifier fits
// before the rest.
func (s *status) signers(list *CRL) []*member {
	above := s.path[s.index+1:]
	var signers []*member
	for _, m := range above {
		if m.subject.key == list.issuer.key {
			signers = append(signers, m)
		}
	}
	for _, m := range s.pool.bySubject[list.issuer.key] {
		if !slices.Contains(above, m) {
			signers = append(signers, m)
		}
	}
	rank := func(m *member) int {
		if id := list.list.AuthorityKeyId; len(id) == 0 || bytes.Equal(id, m.certificate.SubjectKeyId) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(signers, func(a, b *member) int { return rank(a) - rank(b) })
	return signers
}

// signerPath looks for a path from a signer of lists to the anchor of the path in question, in which nothing is revoked.
func (s *status) signerPath(signer *member) *Error {
	if s.depth == maxStatusDepth {
		return refuse(1, signer, ruleRevocation, "the revocation status of too many signers of revocation lists depends on each other")
	}
	anchor := s.path[len(s.path)-1]
	if s.vouching[signer] {
		return refuse(1, signer, ruleRevocation, "whether the signer is revoked would be up to itself")
	}
	s.vouching[signer] = true
	defer delete(s.vouching, signer)
	_, refusal := s.build(signer, func(path []*member) (*Path, *Error) {
		if !s.work.spend(&s.work.paths, 1) {
			return nil, s.work.exhausted(1, signer)
		}
		if path[len(path)-1] != anchor {
			return nil, refuse(len(path), path[len(path)-1], ruleRevocation+" (f)", "the path of the signer ends at another trust anchor")
		}
		if _, refusal := s.checkPolicies(path, PolicyOptions{}); refusal != nil {
			return nil, refusal
		}
		for i := len(path) - 2; i >= 0; i-- {
			if _, refusal := s.verification.status(path, i, s.depth+1); refusal != nil {
				return nil, refusal
			}
		}
		return &Path{}, nil
	})
	return refusal
}
