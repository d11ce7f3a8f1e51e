package chain

import (
	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// The tags of GeneralName (RFC 5280 §4.2.1.6). The string forms are primitive, as their types are.
const (
	tagOtherName     = cryptobyte_asn1.Tag(0) | 0xa0
	tagRFC822Name    = cryptobyte_asn1.Tag(1) | 0x80
	tagDNSName       = cryptobyte_asn1.Tag(2) | 0x80
	tagX400Address   = cryptobyte_asn1.Tag(3) | 0xa0
	tagDirectoryName = cryptobyte_asn1.Tag(4) | 0xa0
	tagEDIPartyName  = cryptobyte_asn1.Tag(5) | 0xa0
	tagURI           = cryptobyte_asn1.Tag(6) | 0x80
	tagIPAddress     = cryptobyte_asn1.Tag(7) | 0x80
	tagRegisteredID  = cryptobyte_asn1.Tag(8) | 0x80
)

// nameUse is where a GeneralName stands, which decides what it may be.
type nameUse uint8

const (
	nameElsewhere  nameUse = iota // it names an issuer or a location
	nameSubject                   // it names the subject: SPIFFE IDs are counted
	nameConstraint                // it is the base of a subtree
)

// nameFacts is what the subject alternative names say.
type nameFacts struct {
	present, critical bool
	uris, spiffe      int
	noPath            bool // a SPIFFE ID is a trust domain alone
}

func (in *inspection) subjectAltName(value cryptobyte.String, critical bool) {
	const rule, section = "san", "RFC 5280 §4.2.1.6"
	in.names.present, in.names.critical = true, critical
	if names, ok := in.list(rule, section, "subject alternative name", value); ok {
		in.generalNames("subject alternative name", section, names, nameSubject)
	}
}

func (in *inspection) issuerAltName(value cryptobyte.String, _ bool) {
	const rule, section = "ian", "RFC 5280 §4.2.1.7"
	if names, ok := in.list(rule, section, "issuer alternative name", value); ok {
		in.generalNames("issuer alternative name", section, names, nameElsewhere)
	}
}

// generalNames reads the contents of GeneralNames, SEQUENCE SIZE (1..MAX) OF GeneralName.
func (in *inspection) generalNames(where, section string, names cryptobyte.String, use nameUse) {
	if names.Empty() {
		in.add(Malformed, "names-empty", section, "a list of names in the %s extension is empty", where)
	}
	for !names.Empty() {
		if !in.generalName(where, section, &names, use) {
			return
		}
	}
}

// generalName reads one GeneralName and returns false if what follows it cannot be read.
func (in *inspection) generalName(where, section string, names *cryptobyte.String, use nameUse) bool {
	var value cryptobyte.String
	var tag cryptobyte_asn1.Tag
	if !names.ReadAnyASN1(&value, &tag) {
		in.add(Malformed, "name-form", section, "the %s extension lacks a name", where)
		return false
	}
	good := true
	switch tag {
	case tagRFC822Name, tagDNSName, tagURI, tagIPAddress:
		if use == nameConstraint {
			good = constraintBase(tag, value)
		} else {
			in.stringName(where, section, tag, value, use)
		}
	case tagDirectoryName:
		var rdns cryptobyte.String
		if good = value.ReadASN1(&rdns, cryptobyte_asn1.SEQUENCE) && value.Empty(); good {
			in.name(where+"'s directoryName", rdns)
		}
	case tagOtherName:
		var oid, explicit cryptobyte.String
		good = value.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) && value.ReadASN1(&explicit, cryptobyte_asn1.Tag(0)|0xa0) &&
			value.Empty() && explicit.ReadAnyASN1(&oid, nil) && explicit.Empty()
	case tagEDIPartyName:
		good = isEDIPartyName(value)
	case tagRegisteredID:
		return in.contents("name-registered-id", section, "a registeredID", typeOID, value)
	case tagX400Address:
		// nobody uses it; its encoding has been checked
	default:
		in.add(Malformed, "name-unknown", section,
			"the %s extension holds a name of a kind that does not exist, or that is constructed where it has to be primitive", where)
		return true
	}
	if !good {
		in.add(Malformed, "name-form", section, "the %s extension holds a name that does not have the form of its kind", where)
	}
	return true
}

// isEDIPartyName reads the contents of EDIPartyName: nameAssigner [0] OPTIONAL, partyName [1], both DirectoryString.
func isEDIPartyName(fields cryptobyte.String) bool {
	assigner, hasAssigner := optional(&fields, 0, true)
	party, hasParty := optional(&fields, 1, true)
	return fields.Empty() && hasParty && isOneDirectoryString(party) && (!hasAssigner || isOneDirectoryString(assigner))
}

func isOneDirectoryString(value cryptobyte.String) bool {
	var text cryptobyte.String
	var tag cryptobyte_asn1.Tag
	return value.ReadAnyASN1(&text, &tag) && value.Empty() && isDirectoryString(tag) && !text.Empty()
}

// stringName holds a name that is a string or an address against its syntax.
func (in *inspection) stringName(where, section string, tag cryptobyte_asn1.Tag, value cryptobyte.String, use nameUse) {
	switch tag { //nolint:exhaustive // the caller passes these four of ASN.1's tags
	case tagDNSName:
		if severity, problem := dnsNameProblem(value); severity != 0 {
			in.add(severity, "name-dns", section, "a dNSName in the %s extension %s", where, problem)
		}
	case tagURI:
		if severity, problem := uriProblem(value, use); severity != 0 {
			in.add(severity, "name-uri", section, "a URI in the %s extension %s", where, problem)
		}
		if use == nameSubject {
			in.subjectURI(value)
		}
	case tagRFC822Name:
		if !isMailbox(value) {
			in.add(Malformed, "name-mailbox", section, "an rfc822Name in the %s extension is not a mailbox, local-part@domain", where)
		}
	case tagIPAddress:
		if len(value) != 4 && len(value) != 16 {
			in.add(Malformed, "name-ip", section, "an iPAddress in the %s extension has %d octets; it has to have 4 or 16", where, len(value))
		}
	}
}
