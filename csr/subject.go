package csr

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// Attribute types of a subject that have rules of their own, as DER contents.
const (
	oidCommonName   = "\x55\x04\x03"
	oidSerialNumber = "\x55\x04\x05"
	oidCountry      = "\x55\x04\x06"
	oidOrganization = "\x55\x04\x0a"
	oidUnit         = "\x55\x04\x0b"
)

const (
	maxSubjectAttributes = 64
	// ubName is the upper bound on common names, organizations, units and serial numbers; ubOther is above that of every other attribute
	// (RFC 5280 appendix A.1).
	ubName  = 64
	ubOther = 255
)

// The beginnings of what Kubernetes takes for a user (commonName) or group (organization) of its own.
const (
	systemPrefix  = "system:"
	systemMasters = "system:masters"
)

// readSubject reads a Name (RFC 5280 §4.1.2.4). The subject is never copied to a certificate, but it is what people see who approve the
// request, so that it must not be two things at once.
func (r *Request) readSubject(element cryptobyte.String, rules *Rules) error {
	var sequence cryptobyte.String
	if !element.ReadASN1(&sequence, cryptobyte_asn1.SEQUENCE) {
		return malformed("subject")
	}
	var name pkix.RDNSequence
	commonNames, total := 0, 0
	for !sequence.Empty() {
		var set cryptobyte.String
		if !sequence.ReadASN1(&set, cryptobyte_asn1.SET) || set.Empty() {
			return malformed("subject")
		}
		rdn, err := readRDN(set, rules)
		if err != nil {
			return err
		}
		if total += len(rdn); total > maxSubjectAttributes {
			return invalid("subject: it has more than %d attributes; leave most of them out", maxSubjectAttributes)
		}
		for _, attribute := range rdn {
			if attribute.Type.Equal(commonNameType) {
				commonNames++
			}
		}
		name = append(name, rdn)
	}
	if commonNames > 1 {
		return invalid("subject: it has %d common names, and readers disagree on which counts; keep one, or none", commonNames)
	}
	r.subject.FillFromRDNSequence(&name)
	r.commonName = r.subject.CommonName
	return nil
}

var commonNameType = asn1.ObjectIdentifier{2, 5, 4, 3}

// readRDN reads a RelativeDistinguishedName, whose attributes are of different types (X.501 §9.3). That the SET OF is in order, and the strings in
// their character sets, has been seen to by der.Check.
func readRDN(set cryptobyte.String, rules *Rules) (pkix.RelativeDistinguishedNameSET, error) {
	var rdn pkix.RelativeDistinguishedNameSET
	for !set.Empty() {
		var sequence, id cryptobyte.String
		if !set.ReadASN1(&sequence, cryptobyte_asn1.SEQUENCE) || !sequence.ReadASN1(&id, cryptobyte_asn1.OBJECT_IDENTIFIER) {
			return nil, malformed("subject")
		}
		identifier, ok := readIdentifier(id)
		if !ok {
			return nil, malformed("subject")
		}
		if slices.ContainsFunc(rdn, func(other pkix.AttributeTypeAndValue) bool { return other.Type.Equal(identifier) }) {
			return nil, invalid("subject: %s is twice in one relative distinguished name (X.501 §9.3)", identifier)
		}
		if len(rdn) == maxSubjectAttributes {
			return nil, invalid("subject: it has more than %d attributes; leave most of them out", maxSubjectAttributes)
		}
		value, err := readString(&sequence, string(id), identifier)
		if err != nil {
			return nil, err
		}
		if !sequence.Empty() {
			return nil, malformed("subject")
		}
		if err := checkSystem(value, rules); err != nil {
			return nil, err
		}
		rdn = append(rdn, pkix.AttributeTypeAndValue{Type: identifier, Value: value})
	}
	return rdn, nil
}

// readString reads an attribute's value in one of the string types that RFC 5280 §4.1.2.4 has for new names. The legacy types (TeletexString,
// BMPString, UniversalString) have readers that disagree on their characters.
func readString(sequence *cryptobyte.String, id string, identifier asn1.ObjectIdentifier) (string, error) {
	var contents cryptobyte.String
	var tag cryptobyte_asn1.Tag
	if !sequence.ReadAnyASN1(&contents, &tag) {
		return "", malformed("subject")
	}
	value := string(contents)
	switch tag {
	case cryptobyte_asn1.UTF8String, cryptobyte_asn1.PrintableString, cryptobyte_asn1.IA5String:
	default:
		return "", invalid("subject: attribute %s is not a UTF8String, PrintableString or IA5String (RFC 5280 §4.1.2.4); encode it as UTF8String",
			identifier)
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return "", invalid("subject: attribute %s holds control characters; write it without", identifier)
	}
	return value, checkLength(utf8.RuneCountInString(value), id, identifier)
}

// checkLength holds the bounds of RFC 5280 appendix A.1. An organization may be empty, against them: Istio agents send one.
func checkLength(length int, id string, identifier asn1.ObjectIdentifier) error {
	least, most := 1, ubOther
	switch id {
	case oidCountry:
		least, most = 2, 2
	case oidOrganization:
		least, most = 0, ubName
	case oidCommonName, oidUnit, oidSerialNumber:
		most = ubName
	}
	if length < least || length > most {
		return invalid("subject: attribute %s has %d characters, and %d to %d are allowed (RFC 5280 appendix A.1); shorten it or leave it out, "+
			"since names belong into the subject alternative name", identifier, length, least, most)
	}
	return nil
}

func checkSystem(value string, rules *Rules) error {
	folded := strings.ToLower(strings.TrimSpace(value))
	if !strings.HasPrefix(folded, systemPrefix) || rules.SystemSubjects && folded != systemMasters {
		return nil
	}
	return invalid("subject: it holds %.80q, and names that begin with %q are Kubernetes' own users and groups; leave it out", value, systemPrefix)
}
