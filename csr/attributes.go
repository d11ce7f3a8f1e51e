package csr

import (
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

const (
	oidExtensionRequest = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x0e" // pkcs-9-at-extensionRequest, RFC 2985 §5.4.2
	// oidMicrosoftExtensions is what old Windows tools ask for extensions with. Ignored, it would hide names.
	oidMicrosoftExtensions = "\x2b\x06\x01\x04\x01\x82\x37\x02\x01\x0e"
)

const maxAttributes = 16

// readAttributes reads the contents of the attributes, which are of different types (X.501 §8.2): two extension requests, or one of two values,
// would be read in part by some and in whole by others. Their order is not held against X.690 §11.6, the one rule of DER that is waived:
// crypto/x509 writes them in the order that its caller gave, and nothing depends on it.
func (r *Request) readAttributes(set cryptobyte.String, rules *Rules) error {
	var types []string
	for !set.Empty() {
		var sequence, id, values cryptobyte.String
		if !set.ReadASN1(&sequence, cryptobyte_asn1.SEQUENCE) || !sequence.ReadASN1(&id, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
			!sequence.ReadASN1(&values, cryptobyte_asn1.SET) || !sequence.Empty() || values.Empty() {
			return invalid("attributes: each is one type and a set of at least one value (RFC 2986 §4.1); leave an attribute out rather than empty")
		}
		if slices.Contains(types, string(id)) {
			return invalid("attributes: %s is there twice (X.501 §8.2); put all extensions into one extension request", identifier(id))
		}
		if len(types) == maxAttributes {
			return invalid("attributes: there are more than %d; leave most of them out", maxAttributes)
		}
		types = append(types, string(id))
		switch string(id) {
		case oidExtensionRequest:
			if err := r.readExtensionRequest(values, rules); err != nil {
				return err
			}
		case oidMicrosoftExtensions:
			return invalid("attributes: extensions are asked for by Microsoft's attribute %s; use extensionRequest (RFC 2985 §5.4.2)", identifier(id))
		}
	}
	return nil
}

// readExtensionRequest reads the one value of the attribute. It may hold no extensions, against RFC 5280 §4.1.2.9: tools write that when they have
// none to ask for.
func (r *Request) readExtensionRequest(values cryptobyte.String, rules *Rules) error {
	var extensions cryptobyte.String
	if !values.ReadASN1(&extensions, cryptobyte_asn1.SEQUENCE) || !values.Empty() {
		return invalid("extensionRequest: it has not one value, a SEQUENCE of extensions (RFC 2985 §5.4.2)")
	}
	var types []string
	for !extensions.Empty() {
		extension, err := readExtension(&extensions, rules)
		if err != nil {
			return err
		}
		if slices.Contains(types, extension.id) {
			return invalid("extensionRequest: %s is there twice (RFC 5280 §4.2); keep one", identifier([]byte(extension.id)))
		}
		if len(types) == maxExtensions {
			return invalid("extensionRequest: there are more than %d extensions; leave most of them out", maxExtensions)
		}
		types = append(types, extension.id)
		if err := r.take(extension, rules); err != nil {
			return err
		}
	}
	if r.asked.CA && !rules.CA {
		return invalid("extensionRequest: it asks for a CA certificate, by cA TRUE, keyCertSign or cRLSign, and workloads get none; leave these out")
	}
	return nil
}
