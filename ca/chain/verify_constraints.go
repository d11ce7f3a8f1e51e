package chain

import (
	"errors"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// nameConstraints are the subtrees of one certificate (RFC 5280 §4.2.1.10), by kind. Lists of a kind without a subtree are absent, which
// permits and excludes nothing.
type nameConstraints struct {
	permitted, excluded map[cryptobyte_asn1.Tag][]generalName
}

var errConstraints = errors.New("the name constraints are malformed")

func readNameConstraints(encoding cryptobyte.String) (*nameConstraints, error) {
	var fields cryptobyte.String
	if !encoding.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !encoding.Empty() {
		return nil, errConstraints
	}
	permitted, hasPermitted := optional(&fields, 0, true)
	excluded, hasExcluded := optional(&fields, 1, true)
	if !fields.Empty() || !hasPermitted && !hasExcluded {
		return nil, errConstraints
	}
	var constraints nameConstraints
	var err error
	if constraints.permitted, err = readSubtrees(permitted); err != nil {
		return nil, err
	}
	if constraints.excluded, err = readSubtrees(excluded); err != nil {
		return nil, err
	}
	return &constraints, nil
}

func readSubtrees(contents cryptobyte.String) (map[cryptobyte_asn1.Tag][]generalName, error) {
	subtrees := make(map[cryptobyte_asn1.Tag][]generalName)
	for !contents.Empty() {
		var subtree cryptobyte.String
		if !contents.ReadASN1(&subtree, cryptobyte_asn1.SEQUENCE) {
			return nil, errConstraints
		}
		base, err := readGeneralName(&subtree)
		// minimum is zero by default and maximum absent: anything else cannot be processed (RFC 5280 §4.2.1.10)
		if err != nil || !subtree.Empty() || !constraintBase(base.tag, base.value) {
			return nil, errConstraints
		}
		subtrees[base.tag] = append(subtrees[base.tag], base)
	}
	return subtrees, nil
}

// dotted tells whether a dNSName of the subtrees begins with a period.
func (n *nameConstraints) dotted() bool {
	for _, base := range slices.Concat(n.permitted[tagDNSName], n.excluded[tagDNSName]) {
		if len(base.value) > 0 && base.value[0] == '.' {
			return true
		}
	}
	return false
}

// constrainedNames returns the names of a certificate that constraints above it apply to: its subject, unless empty, the mailboxes in
// that, and its subject alternative names.
func (m *member) constrainedNames() []generalName {
	names := make([]generalName, 0, len(m.names)+1)
	if !m.subject.empty() {
		names = append(names, generalName{tag: tagDirectoryName, directory: m.subject})
	}
	for _, mailbox := range m.subject.emails {
		names = append(names, generalName{tag: tagRFC822Name, value: []byte(mailbox)})
	}
	return append(names, m.names...)
}

// checkNames holds the names of every certificate below the issuer at position issuer (1 is the leaf) against its constraints:
// RFC 5280 §6.1.3 (b) and (c). Self-issued certificates are exempt unless they are the leaf.
func (v *verification) checkNames(path []*member, issuer int) *Error {
	constraints := path[issuer-1].constraints
	if constraints == nil {
		return nil
	}
	for i, below := range path[:issuer-1] {
		if i > 0 && below.selfIssued() {
			continue
		}
		names := below.constrainedNames()
		if !v.work.spend(&v.work.comparisons, len(names)) {
			return v.work.exhausted(i+1, below)
		}
		for _, name := range names {
			if err := v.checkName(i+1, below, issuer, name, constraints); err != nil {
				return err
			}
		}
	}
	return nil
}

const ruleConstraints = "RFC 5280 §4.2.1.10"

func (v *verification) checkName(position int, below *member, issuer int, name generalName, constraints *nameConstraints) *Error {
	permitted, excluded := constraints.permitted[name.tag], constraints.excluded[name.tag]
	if len(permitted)+len(excluded) == 0 {
		return nil
	}
	matches := matcherOf(name)
	if matches == nil {
		return refuse(position, below, ruleConstraints, "certificate %d constrains names of the kind %s, and %s cannot be held against that",
			issuer, describeKind(name.tag), name.show())
	}
	if !v.work.spend(&v.work.comparisons, len(permitted)+len(excluded)) {
		return v.work.exhausted(position, below)
	}
	inside := len(permitted) == 0
	for _, base := range permitted {
		inside = inside || matches(base, false)
	}
	if !inside {
		return refuse(position, below, ruleConstraints, "%s is in none of the subtrees that certificate %d permits", name.show(), issuer)
	}
	for _, base := range excluded {
		if matches(base, true) {
			return refuse(position, below, ruleConstraints, "%s is in a subtree that certificate %d excludes", name.show(), issuer)
		}
	}
	return nil
}
