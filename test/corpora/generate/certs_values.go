package main

import (
	"crypto"
	"crypto/elliptic"
	"strings"
)

var (
	curve224, curve256, curve384, curve521    = elliptic.P224(), elliptic.P256(), elliptic.P384(), elliptic.P521()
	hashMD5, hash1, hash256, hash384, hash512 = crypto.MD5, crypto.SHA1, crypto.SHA256, crypto.SHA384, crypto.SHA512
)

// timeCases are about Validity.
func timeCases() []certCase {
	const section = "RFC 5280 §4.1.2.5"
	utc := func(notBefore, notAfter string) func(*draft) {
		return func(d *draft) { d.validity = times(notBefore, notAfter) }
	}
	until := func(generalized string) func(*draft) {
		return func(d *draft) { d.validity = seq(text(tagUTCTime, leafFrom), text(tagGeneralizedTime, generalized)) }
	}
	return []certCase{
		{"time-never-ends", accept, "-", section, "99991231235959Z: no well-defined end", until("99991231235959Z")},
		{"time-2050", accept, "-", section, "GeneralizedTime from 2050 on", until("20500101000000Z")},
		{"time-2049", accept, "-", section, "the last UTCTime", utc(leafFrom, "491231235959Z")},
		{"time-1950", accept, "-", section, "the first UTCTime", utc("500101000000Z", leafTo)},
		{"time-leap-day", accept, "-", "X.690 §11.8", "the 29th of February of a leap year", utc(leafFrom, "320229000000Z")},
		{"time-second", accept, "-", section, "both times are one, which is a validity of one second", utc(leafFrom, leafFrom)},
		{"time-generalized-early", nonconforming, "time-generalized", section, "GeneralizedTime before 2050", until("20300616120000Z")},
		{"time-order", malformed, "validity-order", section, "notAfter is before notBefore", utc(leafTo, leafFrom)},
		{"time-trailing", malformed, "validity-trailing", section, "a third time", func(d *draft) {
			d.validity = seq(text(tagUTCTime, leafFrom), text(tagUTCTime, leafTo), text(tagUTCTime, leafTo))
		}},
		{"time-one", malformed, "time-type", section, "no notAfter", func(d *draft) { d.validity = seq(text(tagUTCTime, leafFrom)) }},
		{"time-string", malformed, "time-type", section, "a PrintableString as time", func(d *draft) { d.validity = seq(printable(leafFrom), text(tagUTCTime, leafTo)) }},
		{"time-fraction", malformed, "time-fraction", section + ".2", "a fraction of a second, which DER allows and RFC 5280 does not", until("20500101000000.5Z")},
		{"time-fraction-zero", malformed, "der", "X.690 §11.7", "a fraction that ends with a zero", until("20500101000000.50Z")},
		{"time-no-seconds", malformed, "der", "X.690 §11.8", "UTCTime without seconds", utc(leafFrom, "3006161200Z")},
		{"time-offset", malformed, "der", "X.690 §11.8", "UTCTime with an offset", utc(leafFrom, "300616120000+0000")},
		{"time-local", malformed, "der", "X.690 §11.7", "GeneralizedTime without Z", until("20500101000000")},
		{"time-small-z", malformed, "der", "X.690 §11.8", "a small z", utc(leafFrom, "300616120000z")},
		{"time-second-60", malformed, "der", "X.680 §46", "a leap second", utc(leafFrom, "300630235960Z")},
		{"time-hour-24", malformed, "der", "X.680 §46", "hour 24", utc(leafFrom, "300616240000Z")},
		{"time-month-13", malformed, "der", "X.680 §46", "month 13", utc(leafFrom, "301316120000Z")},
		{"time-february-30", malformed, "der", "X.680 §46", "the 30th of February", utc(leafFrom, "310230120000Z")},
		{"time-no-leap-day", malformed, "der", "X.680 §46", "the 29th of February of a common year", utc(leafFrom, "310229120000Z")},
		{"time-day-zero", malformed, "der", "X.680 §46", "day 0", utc("300600120000Z", leafTo)},
		{"time-letters", malformed, "der", "X.690 §11.8", "letters among the digits", utc(leafFrom, "3o0616120000Z")},
	}
}

// nameCases are about issuer and subject.
func nameCases() []certCase {
	const section, bounds = "RFC 5280 §4.1.2.4", "RFC 5280 Appendix A.1"
	subject := func(rdns ...[]byte) func(*draft) {
		return func(d *draft) { d.subject = seq(rdns...) }
	}
	cn := func(value []byte) func(*draft) { return subject(rdn(idCommonName, value)) }
	many := make([][]byte, 65)
	for i := range many {
		many[i] = rdn(idUnit, printable("unit"))
	}
	return []certCase{
		{"subject-empty", accept, "-", "RFC 5280 §4.1.2.6", "an empty subject beside critical alternative names", func(d *draft) {
			d.subject = seq()
			d.mark(idSubjectAltName, isTrue)
		}},
		{"subject-empty-not-critical", nonconforming, "san-critical", "RFC 5280 §4.2.1.6", "an empty subject, and the alternative names are not critical", subject()},
		{"subject-empty-no-names", malformed, "subject-empty", "RFC 5280 §4.1.2.6", "an empty subject and no alternative names", func(d *draft) {
			d.subject = seq()
			d.drop(idSubjectAltName)
		}},
		{"issuer-empty", malformed, "issuer-empty", section, "an empty issuer", func(d *draft) { d.issuer = seq() }},
		{"rdn-empty", malformed, "name-rdn", section, "a relative distinguished name without attributes", subject(set(), rdn(idCommonName, printable("a")))},
		{"rdn-sequence", malformed, "name-rdn", section, "a SEQUENCE in the place of a SET", subject(seq(attribute(idCommonName, printable("a"))))},
		{"rdn-two", accept, "-", section, "two attributes in one relative distinguished name", subject(set(attribute(idCommonName, printable("a")), attribute(idUnit, printable("a"))))},
		{"rdn-unsorted", malformed, "der", "X.690 §11.6", "two attributes that are not in order", subject(set(attribute(idUnit, printable("a")), attribute(idCommonName, printable("a"))))},
		{"rdn-type-twice", malformed, "name-repeated-type", section, "an attribute type twice in one relative distinguished name", subject(set(attribute(idUnit, printable("a")), attribute(idUnit, printable("b"))))},
		{"attribute-trailing", malformed, "name-attribute", section, "a third element in an attribute", subject(set(seq(oid(idCommonName), printable("a"), null)))},
		{"attribute-no-value", malformed, "name-attribute", section, "an attribute without a value", subject(set(seq(oid(idCommonName))))},
		{"attribute-unknown", accept, "-", section, "an attribute type that nobody knows", subject(rdn(idPrivate, utf8String("a")), rdn(idCommonName, printable("b")))},
		{"attributes-65", malformed, "name-attributes", "a bound of the reader", "65 attributes", subject(many...)},
		{"cn-64-characters", accept, "-", bounds, "64 characters of two octets each", cn(utf8String(strings.Repeat("é", 64)))},
		{"cn-65-characters", nonconforming, "name-upper-bound", bounds, "65 characters", cn(utf8String(strings.Repeat("a", 65)))},
		{"cn-empty", malformed, "name-empty-value", bounds, "a common name of no characters", cn(utf8String(""))},
		{"cn-asterisk", malformed, "der", "X.680 §41.4", "an asterisk in a PrintableString", cn(printable("*.corpus.test"))},
		{"cn-at", malformed, "der", "X.680 §41.4", "an at sign in a PrintableString", cn(printable("a@corpus.test"))},
		{"cn-underscore", malformed, "der", "X.680 §41.4", "an underscore in a PrintableString", cn(printable("a_b"))},
		{"cn-utf8-broken", malformed, "der", "X.690 §8.23", "octets that are not UTF-8", cn(tlv(tagUTF8, []byte{'a', 0xc3, 0x28}))},
		{"cn-utf8-overlong", malformed, "der", "X.690 §8.23", "UTF-8 that is longer than it needs to be", cn(tlv(tagUTF8, []byte{0xc0, 0xaf}))},
		{"cn-utf8-surrogate", malformed, "der", "X.690 §8.23", "a surrogate in UTF-8", cn(tlv(tagUTF8, []byte{0xed, 0xa0, 0x80}))},
		{"cn-nul", nonconforming, "name-control", section, "a NUL, where some readers end the name", cn(utf8String("good.test\x00.evil.test"))},
		{"cn-newline", nonconforming, "name-control", section, "a line feed", cn(utf8String("a\nb"))},
		{"cn-ia5", malformed, "name-string-type", bounds, "an IA5String as common name", cn(text(tagIA5, "a"))},
		{"cn-octets", malformed, "name-string-type", bounds, "an OCTET STRING as common name", cn(octets([]byte("a")))},
		{"cn-teletex", nonconforming, "name-string-old", section, "a TeletexString", cn(text(tagTeletex, "a"))},
		{"cn-bmp", nonconforming, "name-string-old", section, "a BMPString", cn(text(tagBMP, "\x00a"))},
		{"cn-universal", unread, "name-string-old", section, "a UniversalString", cn(text(tagUniversal, "\x00\x00\x00a"))},
		{"cn-bmp-odd", malformed, "der", "X.690 §8.23", "an odd number of octets in a BMPString", cn(text(tagBMP, "\x00a\x00"))},
		{"country-lower", accept, "-", bounds, "small letters, which ISO 3166 does not use and no rule forbids", subject(rdn(idCountry, printable("ch")))},
		{"country-three", malformed, "name-country", bounds, "three letters", subject(rdn(idCountry, printable("CHE")))},
		{"country-digits", nonconforming, "name-country", bounds, "two digits", subject(rdn(idCountry, printable("41")))},
		{"country-utf8", malformed, "name-string-type", bounds, "a UTF8String as country", subject(rdn(idCountry, utf8String("CH")))},
		{"domain-components", accept, "-", "RFC 4519 §2.4", "domain components", subject(rdn(idDomain, text(tagIA5, "test")), rdn(idDomain, text(tagIA5, "corpus")))},
		{"domain-component-utf8", malformed, "name-string-type", "RFC 4519 §2.4", "a UTF8String as domain component", subject(rdn(idDomain, utf8String("test")))},
		{"email-attribute-utf8", malformed, "name-string-type", bounds, "a UTF8String as e-mail address", subject(rdn(idEmailAddress, utf8String("a@corpus.test")))},
		{"serial-attribute-utf8", malformed, "name-string-type", bounds, "a UTF8String as serialNumber", subject(rdn(idSerialNumber, utf8String("7")))},
		{"organization-65", nonconforming, "name-upper-bound", bounds, "an organization of 65 characters", subject(rdn(idOrganization, printable(strings.Repeat("o", 65))))},
		{"issuer-rdn-empty", malformed, "name-rdn", section, "the issuer has a relative distinguished name without attributes", func(d *draft) { d.issuer = seq(set()) }},
		{"issuer-country-three", malformed, "name-country", bounds, "the issuer's country has three letters", func(d *draft) { d.issuer = seq(rdn(idCountry, printable("CHE"))) }},
	}
}
