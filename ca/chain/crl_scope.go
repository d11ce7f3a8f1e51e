package chain

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// reasons is a set of revocation reasons, as ReasonFlags of RFC 5280 §4.2.1.13 names them: bit n of the set is bit n of the list.
type reasons uint16

// allReasons are keyCompromise to aACompromise, bits 1 to 8; bit 0 is unused.
const allReasons reasons = 0x1fe

// crlScope is which certificates a list is about (RFC 5280 §5.2.5). The zero scope, without reasons set, is everything by the list's issuer.
type crlScope struct {
	points                             []generalName // distributionPoint; empty stands for any
	onlyUsers, onlyCAs, onlyAttributes bool
	indirect                           bool
	reasons                            reasons // zero stands for all
	encoding                           string  // of the whole extension, to compare a delta's with its base's
}

// covered returns the reasons that the list is about.
func (s crlScope) covered() reasons {
	if s.reasons == 0 {
		return allReasons
	}
	return s.reasons
}

const sectionIssuingPoint = "RFC 5280 §5.2.5"

// issuingPoint reads IssuingDistributionPoint.
func (in *crlInspection) issuingPoint(value cryptobyte.String, critical bool) {
	const rule = "crl-scope"
	scope := crlScope{encoding: string(value)}
	if !critical {
		in.add(Nonconforming, rule+"-critical", sectionIssuingPoint, "the issuing distribution point is not critical; it has to be")
	}
	fields, ok := in.whole(rule, sectionIssuingPoint, "issuing distribution point", value, cryptobyte_asn1.SEQUENCE)
	if !ok {
		return
	}
	if fields.Empty() {
		in.add(Nonconforming, rule+"-empty", sectionIssuingPoint, "the issuing distribution point is empty; it has to be left out")
	}
	if name, present := optional(&fields, 0, true); present {
		in.pointName("issuing distribution point", sectionIssuingPoint, name)
		points, err := pointNames(name, in.crl.issuer)
		if err != nil || len(points) == 0 {
			in.add(Malformed, rule+"-name", sectionIssuingPoint, "the issuing distribution point's name is malformed")
		}
		scope.points = points
	}
	scope.onlyUsers = in.scopeFlag(&fields, 1)
	scope.onlyCAs = in.scopeFlag(&fields, 2)
	if value, present := optional(&fields, 3, false); present {
		scope.reasons = in.scopeReasons(value)
	}
	scope.indirect = in.scopeFlag(&fields, 4)
	scope.onlyAttributes = in.scopeFlag(&fields, 5)
	if !fields.Empty() {
		in.add(Malformed, rule, sectionIssuingPoint, "the issuing distribution point has something besides its six fields")
	}
	if count(scope.onlyUsers, scope.onlyCAs, scope.onlyAttributes) > 1 {
		in.add(Malformed, rule+"-only", sectionIssuingPoint, "the issuing distribution point is only for more than one kind of certificates, so for none")
	}
	in.crl.scope = scope
}

// scopeFlag reads a BOOLEAN DEFAULT FALSE.
func (in *crlInspection) scopeFlag(fields *cryptobyte.String, number uint8) bool {
	value, present := optional(fields, number, false)
	if present && !bytes.Equal(value, []byte{0xff}) {
		in.add(Malformed, "crl-scope-flag", sectionIssuingPoint, "a flag of the issuing distribution point is not encoded as TRUE")
	}
	return present
}

func (in *crlInspection) scopeReasons(value cryptobyte.String) reasons {
	set, ok := readReasons(value)
	if !ok || set == 0 {
		in.add(Malformed, "crl-scope-reasons", sectionIssuingPoint, "the reasons of the issuing distribution point are malformed or none")
	}
	return set
}

// readReasons reads the contents of ReasonFlags, a named BIT STRING.
func readReasons(contents []byte) (reasons, bool) {
	if len(contents) == 0 || len(contents) > 3 || contents[0] > 7 || len(contents) == 1 && contents[0] != 0 {
		return 0, false
	}
	var set reasons
	for i, octet := range contents[1:] {
		for bit := range 8 {
			if octet&(0x80>>bit) != 0 {
				set |= 1 << (8*i + bit)
			}
		}
	}
	return set & allReasons, true
}

// pointNames reads the contents of DistributionPointName; a relative name is one below issuer.
func pointNames(choice cryptobyte.String, issuer distinguishedName) ([]generalName, error) {
	if full, present := optional(&choice, 0, true); present {
		if !choice.Empty() {
			return nil, errGeneralName
		}
		return generalNamesIn(full)
	}
	relative, present := optional(&choice, 1, true)
	if !present || !choice.Empty() {
		return nil, errGeneralName
	}
	var below distinguishedName
	rdn, err := below.relative(relative)
	if err != nil {
		return nil, err
	}
	below.rdns = append(append(below.rdns, issuer.rdns...), rdn)
	below.key = joined(below.rdns)
	return []generalName{{tag: tagDirectoryName, directory: below}}, nil
}

func count(flags ...bool) int {
	n := 0
	for _, flag := range flags {
		if flag {
			n++
		}
	}
	return n
}
