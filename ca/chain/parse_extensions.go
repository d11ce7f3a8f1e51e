package chain

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/der"
)

// maxExtensions bounds a certificate's extensions; RFC 5280 knows seventeen.
const maxExtensions = 64

// knownExtension is an extension that is read to its last element. Its value is DER when read is called.
type knownExtension struct {
	name string
	// mayCritical is false for those that a conforming CA must mark non-critical.
	mayCritical bool
	section     string
	read        func(in *inspection, value cryptobyte.String, critical bool)
}

// extensionOf returns how an extension is read, by the contents of its object identifier; read is nil for an unknown one.
func extensionOf(oid string) knownExtension {
	switch oid {
	case "\x55\x1d\x0e":
		return knownExtension{"subject key identifier", false, "RFC 5280 §4.2.1.2", (*inspection).subjectKeyIdentifier}
	case "\x55\x1d\x0f":
		return knownExtension{"key usage", true, "RFC 5280 §4.2.1.3", (*inspection).keyUsage}
	case "\x55\x1d\x11":
		return knownExtension{"subject alternative name", true, "RFC 5280 §4.2.1.6", (*inspection).subjectAltName}
	case "\x55\x1d\x12":
		return knownExtension{"issuer alternative name", true, "RFC 5280 §4.2.1.7", (*inspection).issuerAltName}
	case "\x55\x1d\x13":
		return knownExtension{"basic constraints", true, "RFC 5280 §4.2.1.9", (*inspection).basicConstraints}
	case "\x55\x1d\x1e":
		return knownExtension{"name constraints", true, "RFC 5280 §4.2.1.10", (*inspection).nameConstraints}
	case "\x55\x1d\x1f":
		return knownExtension{"CRL distribution points", true, "RFC 5280 §4.2.1.13", (*inspection).distributionPoints}
	case "\x55\x1d\x20":
		return knownExtension{"certificate policies", true, "RFC 5280 §4.2.1.4", (*inspection).certificatePolicies}
	case "\x55\x1d\x21":
		return knownExtension{"policy mappings", true, "RFC 5280 §4.2.1.5", (*inspection).policyMappings}
	case "\x55\x1d\x23":
		return knownExtension{"authority key identifier", false, "RFC 5280 §4.2.1.1", (*inspection).authorityKeyIdentifier}
	case "\x55\x1d\x24":
		return knownExtension{"policy constraints", true, "RFC 5280 §4.2.1.11", (*inspection).policyConstraints}
	case "\x55\x1d\x25":
		return knownExtension{"extended key usage", true, "RFC 5280 §4.2.1.12", (*inspection).extKeyUsage}
	case "\x55\x1d\x2e":
		return knownExtension{"freshest CRL", false, "RFC 5280 §4.2.1.15", (*inspection).freshestCRL}
	case "\x55\x1d\x36":
		return knownExtension{"inhibit anyPolicy", true, "RFC 5280 §4.2.1.14", (*inspection).inhibitAnyPolicy}
	case "\x2b\x06\x01\x05\x05\x07\x01\x01":
		return knownExtension{"authority information access", false, "RFC 5280 §4.2.2.1", (*inspection).authorityInfoAccess}
	case "\x2b\x06\x01\x05\x05\x07\x01\x0b":
		return knownExtension{"subject information access", false, "RFC 5280 §4.2.2.2", (*inspection).subjectInfoAccess}
	}
	return knownExtension{}
}

// extensions reads the field extensions (RFC 5280 §4.1.2.9).
func (in *inspection) extensions(tbs *cryptobyte.String, version int) {
	const section = "RFC 5280 §4.1.2.9"
	field, present := optional(tbs, 3, true)
	if !present {
		return
	}
	if version != 3 {
		in.add(Malformed, "extensions-version", section, "a certificate with extensions has to be version 3, this one is version %d", version)
	}
	var extensions cryptobyte.String
	if !field.ReadASN1(&extensions, cryptobyte_asn1.SEQUENCE) || !field.Empty() || extensions.Empty() {
		in.add(Malformed, "extensions-fields", section, "the extensions field has to be one list with at least one extension")
		return
	}
	var buffer [16][]byte
	seen := buffer[:0]
	for !extensions.Empty() {
		if len(seen) == maxExtensions {
			in.add(Malformed, "extensions-count", section, "the certificate has more than %d extensions", maxExtensions)
			return
		}
		oid, ok := in.extension(&extensions)
		if !ok {
			return
		}
		for _, other := range seen {
			if bytes.Equal(other, oid) {
				in.add(Malformed, "extension-repeated", "RFC 5280 §4.2", "an extension stands twice in the certificate")
				break
			}
		}
		seen = append(seen, oid)
	}
}

// extension reads one Extension and returns its object identifier's contents.
func (in *inspection) extension(extensions *cryptobyte.String) (oid cryptobyte.String, ok bool) {
	var fields, boolean, value cryptobyte.String
	var encoded bool
	if !extensions.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
		!fields.ReadOptionalASN1(&boolean, &encoded, cryptobyte_asn1.BOOLEAN) ||
		!fields.ReadASN1(&value, cryptobyte_asn1.OCTET_STRING) || !fields.Empty() {
		in.add(Malformed, "extension-fields", "RFC 5280 §4.1",
			"an extension has to be an object identifier, critical and an OCTET STRING, and nothing else")
		return nil, false
	}
	critical := encoded && boolean[0] != 0
	if encoded && !critical {
		in.add(Malformed, "extension-default", "X.690 §11.5", "an extension encodes critical FALSE, which is the default and must be left out")
	}
	known := extensionOf(string(oid))
	switch {
	case known.read == nil && critical:
		in.add(Malformed, "extension-critical", "RFC 5280 §4.2",
			"a critical extension is not one that is known here, so the certificate has to be refused")
		return oid, true
	case known.read == nil:
		return oid, true
	case critical && !known.mayCritical:
		in.add(Nonconforming, "extension-critical", known.section, "the %s extension is critical; a CA must mark it non-critical", known.name)
	}
	if err := der.Check(value); err != nil {
		in.add(Malformed, "extension-der", known.section, "the %s extension is not DER: %v", known.name, err)
		return oid, true
	}
	known.read(in, value, critical)
	return oid, true
}
