package chain

import (
	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// identifierFacts is which key identifiers there are.
type identifierFacts struct {
	authorityKey, subjectKey bool
}

func (in *inspection) subjectKeyIdentifier(value cryptobyte.String, _ bool) {
	const section = "RFC 5280 §4.2.1.2"
	id, ok := in.whole("subject-key-id", section, "subject key identifier", value, cryptobyte_asn1.OCTET_STRING)
	if ok && id.Empty() {
		in.add(Nonconforming, "subject-key-id-empty", section, "the subject key identifier is empty")
	}
	in.identifiers.subjectKey = ok && !id.Empty()
}

func (in *inspection) authorityKeyIdentifier(value cryptobyte.String, _ bool) {
	const rule, section = "authority-key-id", "RFC 5280 §4.2.1.1"
	fields, ok := in.whole(rule, section, "authority key identifier", value, cryptobyte_asn1.SEQUENCE)
	if !ok {
		return
	}
	key, _ := optional(&fields, 0, false)
	issuer, hasIssuer := optional(&fields, 1, true)
	serial, hasSerial := optional(&fields, 2, false)
	if !fields.Empty() {
		in.add(Malformed, rule, section,
			"the authority key identifier has to be keyIdentifier, authorityCertIssuer and authorityCertSerialNumber, and nothing else")
		return
	}
	in.identifiers.authorityKey = len(key) > 0
	if hasIssuer != hasSerial {
		in.add(Malformed, "authority-key-id-pair", section,
			"the authority key identifier has to have both an issuer and a serial number or neither")
	}
	if hasIssuer {
		in.generalNames("authority key identifier", section, issuer, nameElsewhere)
	}
	if hasSerial {
		in.contents("authority-key-id-serial", section, "authorityCertSerialNumber", typeInteger, serial)
	}
}
