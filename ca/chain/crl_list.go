package chain

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// crlInspection collects the findings of a revocation list and what it says.
type crlInspection struct {
	inspection
	crl *CRL

	sawNumber, hasNumber, hasAuthorityKey, hasFreshest bool
	number                                             []byte // contents of the INTEGER
	thisUpdate                                         stampDigits
}

// certificateList reads CertificateList (RFC 5280 §5.1). Its encoding is known to be DER, so the readers here look at structure only, and
// consume every element.
func (in *crlInspection) certificateList(encoding cryptobyte.String) {
	var fields, tbs, algorithm, signature cryptobyte.String
	if !encoding.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&tbs, cryptobyte_asn1.SEQUENCE) ||
		!fields.ReadASN1Element(&algorithm, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&signature, cryptobyte_asn1.BIT_STRING) ||
		!fields.Empty() {
		in.add(Malformed, "crl-fields", "RFC 5280 §5.1", "a CertificateList has to be tbsCertList, signatureAlgorithm and signatureValue, and nothing else")
		return
	}
	if in.tbsCertList(tbs, algorithm) {
		in.signatureValue(algorithm, signature)
	}
}

// tbsCertList reads TBSCertList and returns false if its fields cannot be told apart.
func (in *crlInspection) tbsCertList(tbs, outerAlgorithm cryptobyte.String) bool {
	var version, algorithm, issuer cryptobyte.String
	if !tbs.ReadASN1(&version, cryptobyte_asn1.INTEGER) || len(version) != 1 || version[0] != 1 {
		in.add(Malformed, "crl-version", "RFC 5280 §5.1.2.1", "the version has to be there and to be 1 (v2)")
		return false
	}
	if !tbs.ReadASN1Element(&algorithm, cryptobyte_asn1.SEQUENCE) || !tbs.ReadASN1Element(&issuer, cryptobyte_asn1.SEQUENCE) {
		in.add(Malformed, "crl-fields", "RFC 5280 §5.1", "a TBSCertList lacks its signature algorithm or its issuer")
		return false
	}
	if !bytes.Equal(algorithm, outerAlgorithm) {
		in.add(Malformed, "algorithm-mismatch", "RFC 5280 §5.1.1.2", "signatureAlgorithm and tbsCertList's signature have to be the same octets")
	}
	in.signatureAlgorithm(algorithm)
	if !in.issuer(issuer) || !in.updates(&tbs) {
		return false
	}
	var revoked cryptobyte.String
	var hasRevoked bool
	if !tbs.ReadOptionalASN1(&revoked, &hasRevoked, cryptobyte_asn1.SEQUENCE) {
		in.add(Malformed, "crl-entries", "RFC 5280 §5.1.2.6", "the revoked certificates are malformed")
		return false
	}
	// the extensions say whose the entries are, so they are read before them
	in.extensions(&tbs)
	if !tbs.Empty() {
		in.add(Malformed, "crl-trailing", "RFC 5280 §5.1", "a TBSCertList has something after its last field")
	}
	if hasRevoked {
		in.revokedCertificates(revoked)
	}
	return true
}

func (in *crlInspection) issuer(element cryptobyte.String) bool {
	const section = "RFC 5280 §5.1.2.3"
	name, err := readName(element)
	if err != nil {
		in.add(Malformed, "issuer", section, "the issuer is malformed")
		return false
	}
	if name.empty() {
		in.add(Malformed, "issuer-empty", section, "the issuer is empty; it has to name somebody")
	}
	var rdns cryptobyte.String
	if element.ReadASN1(&rdns, cryptobyte_asn1.SEQUENCE) {
		in.name("issuer", rdns)
	}
	in.crl.issuer = name
	in.crl.issuers = map[string]int{name.key: 0}
	return true
}

// updates reads thisUpdate and nextUpdate.
func (in *crlInspection) updates(tbs *cryptobyte.String) bool {
	var ok bool
	if in.thisUpdate, ok = in.crlTime("thisUpdate", "RFC 5280 §5.1.2.4", tbs); !ok {
		return false
	}
	if !tbs.PeekASN1Tag(cryptobyte_asn1.UTCTime) && !tbs.PeekASN1Tag(cryptobyte_asn1.GeneralizedTime) {
		in.add(Malformed, "crl-next-update", "RFC 5280 §5.1.2.5", "there is no nextUpdate, so that nobody can tell when the list is out of date")
		return true
	}
	nextUpdate, ok := in.crlTime("nextUpdate", "RFC 5280 §5.1.2.5", tbs)
	if ok && bytes.Compare(in.thisUpdate[:], nextUpdate[:]) > 0 {
		in.add(Malformed, "crl-update-order", "RFC 5280 §5.1.2.5", "nextUpdate is earlier than thisUpdate: the list is never current")
	}
	return ok
}

// crlTime reads a Time of a revocation list: UTCTime until 2049, GeneralizedTime without a fraction from 2050 on.
func (in *crlInspection) crlTime(field, section string, from *cryptobyte.String) (stampDigits, bool) {
	var contents cryptobyte.String
	var tag cryptobyte_asn1.Tag
	var digits stampDigits
	_ = from.ReadAnyASN1(&contents, &tag)
	switch tag {
	case cryptobyte_asn1.UTCTime:
		copy(digits[:], "20")
		if contents[0] >= '5' {
			copy(digits[:], "19")
		}
		copy(digits[2:], contents)
	case cryptobyte_asn1.GeneralizedTime:
		copy(digits[:], contents)
		if len(contents) != len("YYYYMMDDHHMMSSZ") {
			in.add(Malformed, "time-fraction", section, "%s has a fraction of a second; it has to be YYYYMMDDHHMMSSZ", field)
		}
		if string(digits[:4]) < "2050" {
			in.add(Nonconforming, "time-generalized", section, "%s is a GeneralizedTime before 2050; a CA has to write UTCTime until 2049", field)
		}
	default:
		in.add(Malformed, "time-type", section, "%s is missing or is neither UTCTime nor GeneralizedTime", field)
		return digits, false
	}
	return digits, true
}
