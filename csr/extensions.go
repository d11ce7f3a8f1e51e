package csr

import (
	"crypto/x509"
	"encoding/asn1"
	"math/bits"
	"slices"

	"github.com/chancery-ca/chancery/ca/der"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// The extensions that may be asked for (RFC 5280 §4.2.1), as DER contents.
const (
	oidSubjectKeyID     = "\x55\x1d\x0e"
	oidKeyUsage         = "\x55\x1d\x0f"
	oidSubjectAltName   = "\x55\x1d\x11"
	oidBasicConstraints = "\x55\x1d\x13"
	oidAuthorityKeyID   = "\x55\x1d\x23"
	oidExtKeyUsage      = "\x55\x1d\x25"

	oidAnyExtKeyUsage = "\x55\x1d\x25\x00"
)

const (
	maxExtensions   = 32
	maxExtKeyUsages = 32
)

// extension is one Extension (RFC 5280 §4.1) whose value is not yet read.
type extension struct {
	id    string
	value cryptobyte.String
}

func readExtension(extensions *cryptobyte.String, rules *Rules) (extension, error) {
	var sequence, id, value cryptobyte.String
	if !extensions.ReadASN1(&sequence, cryptobyte_asn1.SEQUENCE) || !sequence.ReadASN1(&id, cryptobyte_asn1.OBJECT_IDENTIFIER) {
		return extension{}, malformed("extensionRequest")
	}
	if _, err := readDefaultFalse(&sequence, "critical", rules); err != nil {
		return extension{}, err
	}
	if !sequence.ReadASN1(&value, cryptobyte_asn1.OCTET_STRING) || !sequence.Empty() {
		return extension{}, malformed("extensionRequest")
	}
	return extension{string(id), value}, nil
}

// readDefaultFalse reads a BOOLEAN DEFAULT FALSE, which DER leaves out when it is FALSE (X.690 §11.5).
func readDefaultFalse(sequence *cryptobyte.String, field string, rules *Rules) (bool, error) {
	if !sequence.PeekASN1Tag(cryptobyte_asn1.BOOLEAN) {
		return false, nil
	}
	var value bool
	if !sequence.ReadASN1Boolean(&value) {
		return false, malformed("extensionRequest")
	}
	if !value && !rules.EncodedDefaults {
		return false, invalid("extensionRequest: %s is FALSE and spelled out, where DER leaves a default out (X.690 §11.5); leave it out", field)
	}
	return value, nil
}

// take reads an extension's value and notes what it asks for.
func (r *Request) take(extension extension, rules *Rules) error {
	identifier, ok := readIdentifier([]byte(extension.id))
	if !ok {
		return malformed("extensionRequest")
	}
	r.asked.Extensions = append(r.asked.Extensions, identifier)
	switch extension.id {
	case oidSubjectAltName:
		return r.readAltNames(extension.value, rules)
	case oidKeyUsage:
		return r.readKeyUsage(extension.value)
	case oidExtKeyUsage:
		return r.readExtKeyUsage(extension.value)
	case oidBasicConstraints:
		return r.readBasicConstraints(extension.value, rules)
	case oidSubjectKeyID:
		return readOnly(extension.value, cryptobyte_asn1.OCTET_STRING, "subjectKeyIdentifier")
	case oidAuthorityKeyID:
		return readOnly(extension.value, cryptobyte_asn1.SEQUENCE, "authorityKeyIdentifier")
	}
	if !slices.ContainsFunc(rules.Extensions, identifier.Equal) {
		return invalid("extensionRequest: the extension %s may not be asked for; leave it out, since the issuer decides on extensions", identifier)
	}
	if err := der.Check(extension.value); err != nil {
		return invalid("extensionRequest: the value of %s is not strict DER (X.690): %v", identifier, err)
	}
	return nil
}

// readOnly checks the value of an extension that is ignored: DER of one element with the tag.
func readOnly(value cryptobyte.String, tag cryptobyte_asn1.Tag, field string) error {
	if err := der.Check(value); err != nil || !value.SkipASN1(tag) || !value.Empty() {
		return invalid("%s: malformed (RFC 5280 §4.2.1); leave it out, since the issuer computes it", field)
	}
	return nil
}

// readKeyUsage reads a named bit list, whose trailing zeros DER leaves out (X.690 §11.2.2) and of which at least one is set (RFC 5280 §4.2.1.3).
func (r *Request) readKeyUsage(value cryptobyte.String) error {
	var list asn1.BitString
	if !value.ReadASN1BitString(&list) || !value.Empty() || list.BitLength == 0 || list.BitLength > 9 || list.At(list.BitLength-1) == 0 {
		return invalid("keyUsage: malformed (RFC 5280 §4.2.1.3): it is a list of 1 to 9 bits that ends with one set; ask for usages or leave it out")
	}
	for i, octet := range list.Bytes {
		r.asked.KeyUsage |= x509.KeyUsage(bits.Reverse8(octet)) << (8 * i)
	}
	if r.asked.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0 {
		r.asked.CA = true
	}
	return nil
}

func (r *Request) readExtKeyUsage(value cryptobyte.String) error {
	var usages cryptobyte.String
	if !value.ReadASN1(&usages, cryptobyte_asn1.SEQUENCE) || !value.Empty() || usages.Empty() {
		return invalid("extKeyUsage: malformed (RFC 5280 §4.2.1.12): it is a list of at least one identifier; ask for usages or leave it out")
	}
	for !usages.Empty() {
		var id cryptobyte.String
		if !usages.ReadASN1(&id, cryptobyte_asn1.OBJECT_IDENTIFIER) {
			return malformed("extKeyUsage")
		}
		if string(id) == oidAnyExtKeyUsage {
			return invalid("extKeyUsage: it asks for anyExtendedKeyUsage, which no workload gets; ask for serverAuth or clientAuth, or leave it out")
		}
		if len(r.asked.ExtKeyUsage) == maxExtKeyUsages {
			return invalid("extKeyUsage: it asks for more than %d usages; leave most of them out", maxExtKeyUsages)
		}
		identifier, ok := readIdentifier(id)
		if !ok {
			return malformed("extKeyUsage")
		}
		r.asked.ExtKeyUsage = append(r.asked.ExtKeyUsage, identifier)
	}
	return nil
}

func (r *Request) readBasicConstraints(value cryptobyte.String, rules *Rules) error {
	var sequence cryptobyte.String
	if !value.ReadASN1(&sequence, cryptobyte_asn1.SEQUENCE) || !value.Empty() {
		return malformed("basicConstraints")
	}
	isCA, err := readDefaultFalse(&sequence, "cA", rules)
	if err != nil {
		return err
	}
	if !sequence.Empty() {
		var pathLength uint
		if !sequence.ReadASN1Integer(&pathLength) || !sequence.Empty() || !isCA {
			return invalid("basicConstraints: a path length is a number of 0 or more and goes with cA TRUE only (RFC 5280 §4.2.1.9)")
		}
	}
	if isCA {
		r.asked.CA = true
	}
	return nil
}
