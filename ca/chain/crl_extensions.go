package chain

import (
	"bytes"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// The object identifier contents of the CRL extensions (RFC 5280 §5.2).
const (
	oidCRLIssuerAltName   = "\x55\x1d\x12"
	oidCRLNumber          = "\x55\x1d\x14"
	oidDeltaCRLIndicator  = "\x55\x1d\x1b"
	oidIssuingPoint       = "\x55\x1d\x1c"
	oidCRLAuthorityKey    = "\x55\x1d\x23"
	oidCRLFreshest        = "\x55\x1d\x2e"
	oidCRLAuthorityAccess = "\x2b\x06\x01\x05\x05\x07\x01\x01"
)

// extensions reads crlExtensions.
func (in *crlInspection) extensions(tbs *cryptobyte.String) {
	const section = "RFC 5280 §5.1.2.7"
	defer in.acrossExtensions()
	field, present := optional(tbs, 0, true)
	if !present {
		return
	}
	var extensions cryptobyte.String
	if !field.ReadASN1(&extensions, cryptobyte_asn1.SEQUENCE) || !field.Empty() || extensions.Empty() {
		in.add(Malformed, "extensions-fields", section, "the extensions field has to be one list with at least one extension")
		return
	}
	var buffer [8][]byte
	seen := buffer[:0]
	for !extensions.Empty() {
		oid, value, critical, ok := in.crlExtension(&extensions, &seen)
		if !ok {
			return
		}
		in.listExtension(string(oid), value, critical)
	}
}

func (in *crlInspection) listExtension(oid string, value cryptobyte.String, critical bool) {
	mustNot := func(section, what string) {
		if critical {
			in.add(Nonconforming, "extension-critical", section, "the %s extension is critical; it must not be", what)
		}
	}
	switch oid {
	case oidCRLNumber:
		in.crlNumber(value, critical)
	case oidDeltaCRLIndicator:
		in.deltaIndicator(value, critical)
	case oidIssuingPoint:
		in.issuingPoint(value, critical)
	case oidCRLAuthorityKey:
		mustNot("RFC 5280 §5.2.1", "authority key identifier")
		in.authorityKeyIdentifier(value, critical)
		in.hasAuthorityKey = in.identifiers.authorityKey
	case oidCRLFreshest:
		mustNot("RFC 5280 §5.2.6", "freshest CRL")
		in.hasFreshest = true
		in.freshestCRL(value, critical)
	case oidCRLIssuerAltName:
		mustNot("RFC 5280 §5.2.2", "issuer alternative name")
		in.issuerAltName(value, critical)
	case oidCRLAuthorityAccess:
		mustNot("RFC 5280 §5.2.7", "authority information access")
		in.authorityInfoAccess(value, critical)
	default:
		if critical {
			in.add(Malformed, "extension-critical", "RFC 5280 §5.2", "a critical extension is not one that is known here, so the list must not be used")
		}
	}
}

// acrossExtensions applies the rules on extensions together.
func (in *crlInspection) acrossExtensions() {
	if !in.sawNumber {
		in.add(Malformed, "crl-number-missing", "RFC 5280 §5.2.3", "there is no CRL number, so that nobody can tell which of two lists is newer")
	}
	if !in.hasAuthorityKey {
		in.add(Nonconforming, "authority-key-id-missing", "RFC 5280 §5.2.1", "there is no authority key identifier with a keyIdentifier")
	}
	if in.crl.Delta() {
		if in.hasNumber && in.crl.base.Cmp(new(big.Int).SetBytes(in.number)) > 0 {
			in.add(Malformed, "crl-delta-base", "RFC 5280 §5.2.4", "the delta's base is newer than the delta itself")
		}
		if in.hasFreshest {
			in.add(Nonconforming, "crl-delta-freshest", "RFC 5280 §5.2.6", "a delta has a freshest CRL extension, which is for complete lists")
		}
	}
}

// maxCRLNumberOctets is how long a CRL number may be (RFC 5280 §5.2.3).
const maxCRLNumberOctets = 20

// numberIn reads BaseCRLNumber and CRLNumber, INTEGER (0..MAX).
func (in *crlInspection) numberIn(value cryptobyte.String, section, what string) ([]byte, bool) {
	var contents cryptobyte.String
	if !value.ReadASN1(&contents, cryptobyte_asn1.INTEGER) || !value.Empty() || contents[0] >= 0x80 {
		in.add(Malformed, "crl-number", section, "the %s is not one INTEGER of zero or more", what)
		return nil, false
	}
	if len(contents) > maxCRLNumberOctets {
		in.add(Nonconforming, "crl-number-length", section, "the %s has more than %d octets", what, maxCRLNumberOctets)
	}
	return bytes.TrimLeft(contents, "\x00"), true
}

func (in *crlInspection) crlNumber(value cryptobyte.String, critical bool) {
	const section = "RFC 5280 §5.2.3"
	in.number, in.hasNumber = in.numberIn(value, section, "CRL number")
	in.sawNumber = true
	if critical {
		in.add(Malformed, "crl-number-critical", section, "the CRL number is critical; it must not be")
	}
}

func (in *crlInspection) deltaIndicator(value cryptobyte.String, critical bool) {
	const section = "RFC 5280 §5.2.4"
	// a delta that is taken for a complete list makes revoked certificates good, so the base is never nil
	in.crl.base = new(big.Int)
	if base, ok := in.numberIn(value, section, "delta's base number"); ok {
		in.crl.base.SetBytes(base)
	}
	if !critical {
		in.add(Malformed, "crl-delta-critical", section, "the delta CRL indicator is not critical, so that others take the delta for a complete list")
	}
}
