package chain

import (
	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

func (in *inspection) distributionPoints(value cryptobyte.String, _ bool) {
	in.points("CRL distribution points", "RFC 5280 §4.2.1.13", value)
}

func (in *inspection) freshestCRL(value cryptobyte.String, _ bool) {
	in.points("freshest CRL", "RFC 5280 §4.2.1.15", value)
}

// points reads CRLDistributionPoints.
func (in *inspection) points(what, section string, value cryptobyte.String) {
	const rule = "distribution-points"
	points, ok := in.list(rule, section, what, value)
	for ok && !points.Empty() {
		var point cryptobyte.String
		if !points.ReadASN1(&point, cryptobyte_asn1.SEQUENCE) {
			in.add(Malformed, rule, section, "the %s extension holds something that is no distribution point", what)
			return
		}
		in.point(what, section, point)
	}
}

// point reads the contents of a DistributionPoint.
func (in *inspection) point(what, section string, fields cryptobyte.String) {
	const rule = "distribution-point"
	name, hasName := optional(&fields, 0, true)
	reasons, hasReasons := optional(&fields, 1, false)
	issuer, hasIssuer := optional(&fields, 2, true)
	switch {
	case !fields.Empty():
		in.add(Malformed, rule, section, "a distribution point in the %s extension has something besides a name, reasons and an issuer", what)
		return
	case !hasName && !hasIssuer && !hasReasons:
		in.add(Malformed, rule+"-empty", section, "a distribution point in the %s extension is empty", what)
		return
	case !hasName && !hasIssuer:
		// it points nowhere, so that its reasons decide nothing
		in.add(Nonconforming, rule+"-reasons", section,
			"a distribution point in the %s extension has nothing but reasons; it needs a name or an issuer", what)
		return
	}
	if hasName {
		in.pointName(what, section, name)
	}
	if hasReasons {
		if in.contents(rule+"-reasons", section, "reasons", typeBitString, reasons) && len(reasons) > 1 && reasons[len(reasons)-1]>>reasons[0]&1 == 0 {
			in.add(Malformed, rule+"-reasons", "X.690 §11.2.2", "the reasons have trailing zero bits, which DER leaves out of a named bit list")
		}
	}
	if hasIssuer {
		in.generalNames(what, section, issuer, nameElsewhere)
	}
}

// pointName reads DistributionPointName, a CHOICE.
func (in *inspection) pointName(what, section string, choice cryptobyte.String) {
	const rule = "distribution-point-name"
	full, hasFull := optional(&choice, 0, true)
	if hasFull && choice.Empty() {
		in.generalNames(what, section, full, nameElsewhere)
		return
	}
	relative, hasRelative := optional(&choice, 1, true)
	if hasFull || !hasRelative || !choice.Empty() || relative.Empty() {
		in.add(Malformed, rule, section, "a distribution point's name in the %s extension has to be a full or a relative name", what)
		return
	}
	in.add(Nonconforming, rule+"-relative", section,
		"a distribution point in the %s extension has a relative name; a CA should not use one", what)
	for !relative.Empty() {
		var pair, oid, attribute cryptobyte.String
		var tag cryptobyte_asn1.Tag
		if !relative.ReadASN1(&pair, cryptobyte_asn1.SEQUENCE) || !pair.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
			!pair.ReadAnyASN1(&attribute, &tag) || !pair.Empty() {
			in.add(Malformed, rule, section, "a relative name in the %s extension is malformed", what)
			return
		}
		in.attributeValue(what, string(oid), tag, attribute)
	}
}

func (in *inspection) authorityInfoAccess(value cryptobyte.String, _ bool) {
	in.accessDescriptions("authority information access", "RFC 5280 §4.2.2.1", value)
}

func (in *inspection) subjectInfoAccess(value cryptobyte.String, _ bool) {
	in.accessDescriptions("subject information access", "RFC 5280 §4.2.2.2", value)
}

func (in *inspection) accessDescriptions(what, section string, value cryptobyte.String) {
	const rule = "info-access"
	descriptions, ok := in.list(rule, section, what, value)
	for ok && !descriptions.Empty() {
		var fields, method cryptobyte.String
		if !descriptions.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&method, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
			!in.generalName(what, section, &fields, nameElsewhere) || !fields.Empty() {
			in.add(Malformed, rule, section, "the %s extension holds something that is not a method and one location", what)
			return
		}
	}
}
