package chain

import (
	"crypto/x509"
	"maps"
	"slices"
)

// accept validates a whole path, what its certificates say together: usages, policies, revocation.
func (v *verification) accept(path []*member) (*Path, *Error) {
	if !v.work.spend(&v.work.paths, 1) {
		return nil, v.work.exhausted(1, path[0])
	}
	if refusal := v.checkUsages(path); refusal != nil {
		return nil, refusal
	}
	policies, refusal := v.checkPolicies(path, v.options.Policies)
	if refusal != nil {
		return nil, refusal
	}
	revocation, refusal := v.checkRevocation(path)
	if refusal != nil {
		return nil, refusal
	}
	result := &Path{Policies: policies, Revocation: revocation}
	for _, m := range path {
		result.Certificates = append(result.Certificates, m.certificate)
	}
	return result, nil
}

func (v *verification) isAnchor(m *member) bool {
	return slices.ContainsFunc(v.options.Roots, m.certificate.Equal)
}

// anchorAlone is the path of a certificate that is a trust anchor itself and signed by its own key.
func (v *verification) anchorAlone(m *member, accept func(path []*member) (*Path, *Error)) (*Path, *Error) {
	if refusal := v.checkCertificate(1, m); refusal != nil {
		return nil, refusal
	}
	if refusal := v.checkSignature(1, m, m); refusal != nil {
		return nil, refusal
	}
	return accept([]*member{m})
}

// policyState are the policy variables of RFC 5280 §6.1.2.
type policyState struct {
	graph                         *policyGraph
	explicit, mapping, inhibitAny int
}

// checkPolicies runs the policy part of RFC 5280 §6.1 from the anchor down, with the graph of RFC 9618, and returns the
// user-constrained-policy-set.
func (v *verification) checkPolicies(path []*member, inputs PolicyOptions) ([]x509.OID, *Error) {
	n := len(path) - 1
	initially := func(at bool) int {
		if at {
			return 0
		}
		return n + 1
	}
	state := policyState{graph: newPolicyGraph(), explicit: initially(inputs.Explicit), mapping: initially(inputs.InhibitMapping), inhibitAny: initially(inputs.InhibitAny)}
	state.constrain(path[n].policies)
	for i := n - 1; i >= 0; i-- {
		m := path[i]
		state.graph.process(m.policies, state.inhibitAny > 0 || i > 0 && m.selfIssued())
		if state.explicit == 0 && state.graph.null() {
			return nil, refuse(i+1, m, "RFC 5280 §6.1.3 (f)", "a certificate policy is required, and none is valid for the path down to here")
		}
		if i == 0 {
			break
		}
		if refusal := state.prepare(i+1, m); refusal != nil {
			return nil, refusal
		}
	}
	return state.wrapUp(path[0], inputs.Acceptable)
}

// prepare is RFC 5280 §6.1.4 (a), (b) and (h) to (j).
func (s *policyState) prepare(position int, m *member) *Error {
	for _, mapping := range m.policies.mappings {
		if mapping.issuer == oidAnyPolicy || mapping.subject == oidAnyPolicy {
			return refuse(position, m, "RFC 5280 §6.1.4 (a)", "it maps a policy from or to anyPolicy")
		}
	}
	s.graph.mapPolicies(m.policies.mappings, s.mapping == 0)
	if !m.selfIssued() {
		s.explicit = max(0, s.explicit-1)
		s.mapping = max(0, s.mapping-1)
		s.inhibitAny = max(0, s.inhibitAny-1)
	}
	s.constrain(m.policies)
	return nil
}

func (s *policyState) constrain(facts policyFacts) {
	s.explicit = min(s.explicit, facts.requireExplicit)
	s.mapping = min(s.mapping, facts.inhibitMapping)
	s.inhibitAny = min(s.inhibitAny, facts.inhibitAny)
}

// wrapUp is RFC 5280 §6.1.5 (a), (b) and (g).
func (s *policyState) wrapUp(leaf *member, initial []x509.OID) ([]x509.OID, *Error) {
	explicit := max(0, s.explicit-1)
	if leaf.policies.requireExplicit == 0 {
		explicit = 0
	}
	acceptable := make(map[string]bool)
	for _, policy := range initial {
		contents, err := policy.MarshalBinary()
		if err != nil {
			return nil, refuse(1, leaf, "RFC 5280 §6.1.1 (c)", "an acceptable policy is not an object identifier: %v", err)
		}
		acceptable[string(contents)] = true
	}
	valid := s.graph.authorities()
	if len(acceptable) > 0 && !acceptable[oidAnyPolicy] {
		anyValid := valid[oidAnyPolicy]
		maps.DeleteFunc(valid, func(policy string, _ bool) bool { return !acceptable[policy] })
		if anyValid {
			maps.Copy(valid, acceptable)
		}
	}
	if explicit == 0 && len(valid) == 0 {
		return nil, refuse(1, leaf, "RFC 5280 §6.1.5 (g)", "a certificate policy is required, and none of the acceptable ones is valid for the path")
	}
	var result []x509.OID
	for _, policy := range slices.Sorted(maps.Keys(valid)) {
		var oid x509.OID
		if err := oid.UnmarshalBinary([]byte(policy)); err == nil {
			result = append(result, oid)
		}
	}
	return result, nil
}
