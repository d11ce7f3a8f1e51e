package chain

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// stampDigits are YYYYMMDDHHMMSS: they compare as times do.
type stampDigits [14]byte

// validity reads Validity (RFC 5280 §4.1.2.5). That both times exist and end with Z is known: the encoding is DER.
func (in *inspection) validity(validity cryptobyte.String) {
	notBefore, ok := in.time("notBefore", &validity)
	if !ok {
		return
	}
	notAfter, ok := in.time("notAfter", &validity)
	if !ok {
		return
	}
	if !validity.Empty() {
		in.add(Malformed, "validity-trailing", "RFC 5280 §4.1.2.5", "the validity has something after notAfter")
	}
	if bytes.Compare(notBefore[:], notAfter[:]) > 0 {
		in.add(Malformed, "validity-order", "RFC 5280 §4.1.2.5", "notAfter is earlier than notBefore: the certificate is never valid")
	}
}

func (in *inspection) time(field string, validity *cryptobyte.String) (stampDigits, bool) {
	const section = "RFC 5280 §4.1.2.5"
	var contents cryptobyte.String
	var tag cryptobyte_asn1.Tag
	var digits stampDigits
	_ = validity.ReadAnyASN1(&contents, &tag)
	switch tag {
	case cryptobyte_asn1.UTCTime:
		century := "20"
		if contents[0] >= '5' {
			century = "19"
		}
		copy(digits[:], century)
		copy(digits[2:], contents)
	case cryptobyte_asn1.GeneralizedTime:
		copy(digits[:], contents)
		if len(contents) != len("YYYYMMDDHHMMSSZ") {
			in.add(Malformed, "time-fraction", section+".2", "%s has a fraction of a second; it has to be YYYYMMDDHHMMSSZ", field)
		}
		if string(digits[:4]) < "2050" {
			in.add(Nonconforming, "time-generalized", section,
				"%s is a GeneralizedTime before 2050; a CA has to write UTCTime until 2049", field)
		}
	default:
		in.add(Malformed, "time-type", section, "%s is missing or is neither UTCTime nor GeneralizedTime", field)
		return digits, false
	}
	return digits, true
}
