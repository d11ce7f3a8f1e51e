package chain

import (
	"errors"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// unlimited stands for an absent count of certificates; no path is as long.
const unlimited = 1 << 20

// policyFacts is what the policy extensions of a certificate say. Policies are the contents of object identifiers.
type policyFacts struct {
	present  bool // there is a certificate policies extension
	policies []string
	mappings []policyMapping

	// unlimited where absent
	requireExplicit, inhibitMapping, inhibitAny int
}

// policyMapping says that the issuer holds its policy to be equivalent to one of the subject's domain.
type policyMapping struct{ issuer, subject string }

func noPolicies() policyFacts {
	return policyFacts{requireExplicit: unlimited, inhibitMapping: unlimited, inhibitAny: unlimited}
}

var errPolicies = errors.New("a policy extension is malformed")

func (p *policyFacts) readPolicies(value cryptobyte.String) error {
	p.present = true
	return eachSequence(value, func(policy cryptobyte.String) bool {
		var oid cryptobyte.String
		ok := policy.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER)
		p.policies = append(p.policies, string(oid))
		return ok
	})
}

func (p *policyFacts) readMappings(value cryptobyte.String) error {
	return eachSequence(value, func(mapping cryptobyte.String) bool {
		var issuer, subject cryptobyte.String
		ok := mapping.ReadASN1(&issuer, cryptobyte_asn1.OBJECT_IDENTIFIER) && mapping.ReadASN1(&subject, cryptobyte_asn1.OBJECT_IDENTIFIER) &&
			mapping.Empty()
		p.mappings = append(p.mappings, policyMapping{string(issuer), string(subject)})
		return ok
	})
}

func (p *policyFacts) readConstraints(value cryptobyte.String) error {
	var fields cryptobyte.String
	if !value.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !value.Empty() {
		return errPolicies
	}
	explicit, hasExplicit := optional(&fields, 0, false)
	mapping, hasMapping := optional(&fields, 1, false)
	if !fields.Empty() || hasExplicit && len(explicit) == 0 || hasMapping && len(mapping) == 0 {
		return errPolicies
	}
	if hasExplicit {
		p.requireExplicit = skipCount(explicit)
	}
	if hasMapping {
		p.inhibitMapping = skipCount(mapping)
	}
	return nil
}

func (p *policyFacts) readInhibitAny(value cryptobyte.String) error {
	var skip cryptobyte.String
	if !value.ReadASN1(&skip, cryptobyte_asn1.INTEGER) || !value.Empty() || len(skip) == 0 {
		return errPolicies
	}
	p.inhibitAny = skipCount(skip)
	return nil
}

// skipCount reads SkipCerts, INTEGER (0..MAX). Counts beyond any path are all alike; a negative one, which parsers refuse, constrains at once.
func skipCount(contents []byte) int {
	switch {
	case contents[0] >= 0x80:
		return 0
	case len(contents) > 2:
		return unlimited
	}
	count := 0
	for _, octet := range contents {
		count = count<<8 | int(octet)
	}
	return count
}

// eachSequence reads a SEQUENCE OF SEQUENCE.
func eachSequence(encoding cryptobyte.String, read func(contents cryptobyte.String) bool) error {
	var list cryptobyte.String
	if !encoding.ReadASN1(&list, cryptobyte_asn1.SEQUENCE) || !encoding.Empty() {
		return errPolicies
	}
	for !list.Empty() {
		var element cryptobyte.String
		if !list.ReadASN1(&element, cryptobyte_asn1.SEQUENCE) || !read(element) {
			return errPolicies
		}
	}
	return nil
}
