package chain

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/der"
)

// Reason is why a certificate was revoked, CRLReason of RFC 5280 §5.3.1.
type Reason uint8

// The reasons. Seven is not used.
const (
	Unspecified          Reason = 0
	KeyCompromise        Reason = 1
	CACompromise         Reason = 2
	AffiliationChanged   Reason = 3
	Superseded           Reason = 4
	CessationOfOperation Reason = 5
	CertificateHold      Reason = 6
	RemoveFromCRL        Reason = 8
	PrivilegeWithdrawn   Reason = 9
	AACompromise         Reason = 10
)

// String returns the reason as RFC 5280 spells it.
func (r Reason) String() string {
	switch r {
	case KeyCompromise:
		return "keyCompromise"
	case CACompromise:
		return "cACompromise"
	case AffiliationChanged:
		return "affiliationChanged"
	case Superseded:
		return "superseded"
	case CessationOfOperation:
		return "cessationOfOperation"
	case CertificateHold:
		return "certificateHold"
	case RemoveFromCRL:
		return "removeFromCRL"
	case PrivilegeWithdrawn:
		return "privilegeWithdrawn"
	case AACompromise:
		return "aACompromise"
	default:
		return "unspecified"
	}
}

// The object identifier contents of the CRL entry extensions (RFC 5280 §5.3).
const (
	oidReasonCode        = "\x55\x1d\x15"
	oidInvalidityDate    = "\x55\x1d\x18"
	oidCertificateIssuer = "\x55\x1d\x1d"
)

// revokedCertificates reads the contents of revokedCertificates.
func (in *crlInspection) revokedCertificates(entries cryptobyte.String) {
	const section = "RFC 5280 §5.1.2.6"
	if entries.Empty() {
		in.add(Nonconforming, "crl-entries-empty", section, "the list of revoked certificates is empty; it has to be left out")
	}
	// an entry's issuer is the one of the entry before it, unless it says otherwise (RFC 5280 §5.3.3)
	issuer := 0
	for !entries.Empty() {
		var entry, serial cryptobyte.String
		if !entries.ReadASN1(&entry, cryptobyte_asn1.SEQUENCE) || !entry.ReadASN1(&serial, cryptobyte_asn1.INTEGER) {
			in.add(Malformed, "crl-entry", section, "an entry has to start with a serial number")
			return
		}
		date, ok := in.crlTime("a revocation date", section, &entry)
		if !ok {
			return
		}
		if bytes.Compare(date[:], in.thisUpdate[:]) > 0 {
			in.add(Nonconforming, "crl-entry-date", section, "a revocation date is later than thisUpdate")
		}
		if serial[0] >= 0x80 || len(serial) == 1 && serial[0] == 0 || len(serial) > maxSerialOctets {
			in.add(Nonconforming, "serial", "RFC 5280 §4.1.2.2", "an entry's serial number is not positive or has more than 20 octets")
		}
		reason, readable := in.entryExtensions(entry, &issuer)
		if !readable {
			return
		}
		subject := crlSubject{issuer, string(serial)}
		if _, repeated := in.crl.entries[subject]; repeated {
			in.add(Nonconforming, "crl-entry-repeated", section, "a certificate stands twice in the list")
		}
		in.crl.entries[subject] = reason
	}
}

// entryExtensions reads crlEntryExtensions and returns false if what follows cannot be trusted.
func (in *crlInspection) entryExtensions(rest cryptobyte.String, issuer *int) (Reason, bool) {
	const section = "RFC 5280 §5.3"
	if rest.Empty() {
		return Unspecified, true
	}
	var extensions cryptobyte.String
	if !rest.ReadASN1(&extensions, cryptobyte_asn1.SEQUENCE) || !rest.Empty() || extensions.Empty() {
		in.add(Malformed, "crl-entry", section, "an entry has to be a serial number, a date and a list of extensions with at least one, and nothing else")
		return 0, false
	}
	reason := Unspecified
	var buffer [4][]byte
	seen := buffer[:0]
	for !extensions.Empty() {
		oid, value, critical, ok := in.crlExtension(&extensions, &seen)
		if !ok {
			return 0, false
		}
		switch string(oid) {
		case oidReasonCode:
			reason = in.reasonCode(value, critical)
		case oidInvalidityDate:
			in.invalidityDate(value, critical)
		case oidCertificateIssuer:
			in.certificateIssuer(value, critical, issuer)
		default:
			if critical {
				in.add(Malformed, "crl-entry-critical", section, "an entry has a critical extension that is not processed here, so the list must not be used")
			}
		}
	}
	return reason, true
}

func (in *crlInspection) reasonCode(value cryptobyte.String, critical bool) Reason {
	const section = "RFC 5280 §5.3.1"
	var code cryptobyte.String
	if !value.ReadASN1(&code, cryptobyte_asn1.ENUM) || !value.Empty() || len(code) != 1 || code[0] == 7 || code[0] > byte(AACompromise) {
		in.add(Malformed, "crl-reason", section, "a reason code is not one of those that exist")
		return Unspecified
	}
	reason := Reason(code[0])
	switch {
	case critical:
		in.add(Nonconforming, "crl-reason-critical", section, "a reason code is critical; it must not be")
	case reason == Unspecified:
		in.add(Nonconforming, "crl-reason-unspecified", section, "a reason code says unspecified; it should be left out")
	}
	if reason == RemoveFromCRL && !in.crl.Delta() {
		in.add(Malformed, "crl-reason-remove", section, "an entry removes a certificate from the list, but the list is not a delta")
	}
	return reason
}

func (in *crlInspection) invalidityDate(value cryptobyte.String, critical bool) {
	const section = "RFC 5280 §5.3.2"
	var contents cryptobyte.String
	if !value.ReadASN1(&contents, cryptobyte_asn1.GeneralizedTime) || !value.Empty() || len(contents) != len("YYYYMMDDHHMMSSZ") {
		in.add(Malformed, "crl-invalidity", section, "an invalidity date has to be a GeneralizedTime, YYYYMMDDHHMMSSZ")
	} else if critical {
		in.add(Nonconforming, "crl-invalidity-critical", section, "an invalidity date is critical; it must not be")
	}
}

// certificateIssuer reads the issuer of this entry and those after it.
func (in *crlInspection) certificateIssuer(value cryptobyte.String, critical bool, issuer *int) {
	const section = "RFC 5280 §5.3.3"
	names, err := readGeneralNames(value, cryptobyte_asn1.SEQUENCE)
	var directory *generalName
	for i := range names {
		if names[i].tag == tagDirectoryName && directory == nil {
			directory = &names[i]
		}
	}
	switch {
	case err != nil || directory == nil:
		in.add(Malformed, "crl-entry-issuer", section, "an entry's certificate issuer has to hold the issuer's distinguished name")
		return
	case !in.crl.scope.indirect:
		in.add(Malformed, "crl-entry-issuer", section, "an entry names a certificate issuer, but the list does not say that it is indirect")
	case !critical:
		in.add(Nonconforming, "crl-entry-issuer-critical", section, "an entry's certificate issuer is not critical; it has to be")
	}
	key := directory.directory.key
	if _, known := in.crl.issuers[key]; !known {
		in.crl.issuers[key] = len(in.crl.issuers)
	}
	*issuer = in.crl.issuers[key]
}

// crlExtension reads one Extension of a list or an entry: one that is DER and was not seen before.
func (in *crlInspection) crlExtension(extensions *cryptobyte.String, seen *[][]byte) (oid, value cryptobyte.String, critical, ok bool) {
	const section = "RFC 5280 §5.2"
	var fields, boolean cryptobyte.String
	var encoded bool
	if !extensions.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
		!fields.ReadOptionalASN1(&boolean, &encoded, cryptobyte_asn1.BOOLEAN) ||
		!fields.ReadASN1(&value, cryptobyte_asn1.OCTET_STRING) || !fields.Empty() {
		in.add(Malformed, "extension-fields", section, "an extension has to be an object identifier, critical and an OCTET STRING, and nothing else")
		return nil, nil, false, false
	}
	critical = encoded && boolean[0] != 0
	if encoded && !critical {
		in.add(Malformed, "extension-default", "X.690 §11.5", "an extension encodes critical FALSE, which is the default and must be left out")
	}
	for _, other := range *seen {
		if bytes.Equal(other, oid) {
			in.add(Malformed, "extension-repeated", section, "an extension stands twice")
			return nil, nil, false, false
		}
	}
	if len(*seen) == maxExtensions {
		in.add(Malformed, "extensions-count", section, "there are more than %d extensions", maxExtensions)
		return nil, nil, false, false
	}
	*seen = append(*seen, oid)
	if der.Check(value) != nil {
		in.add(Malformed, "extension-der", section, "an extension's value is not DER")
		return nil, nil, false, false
	}
	return oid, value, critical, true
}
