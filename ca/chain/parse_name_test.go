package chain_test

import (
	"bytes"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	subject := func(rdns ...[]byte) func(*draft) { return func(d *draft) { d.subject = seq(rdns...) } }
	cn := func(tag byte, value string) func(*draft) { return subject(rdn(oidCommonName, text(tag, value))) }
	set := func(parts ...[]byte) []byte { return tlv(0x31, parts...) }
	pair := func(oid string, value []byte) []byte { return seq(text(0x06, oid), value) }
	checkDrafts(t, leafDraft, []draftCase{
		{"a common name of 64 characters", cn(0x0c, strings.Repeat("ä", 64)), "", 0},
		{"a common name of 65 characters", cn(0x0c, strings.Repeat("a", 65)), "name-upper-bound", nonconforming},
		{"an empty common name", cn(0x0c, ""), "name-empty-value", malformed},
		{"a PrintableString with an asterisk", cn(0x13, "*.example.test"), "der", malformed},
		{"invalid UTF-8", cn(0x0c, "\xc3"), "der", malformed},
		{"NUL in a common name", cn(0x0c, "example.test\x00.evil.test"), "name-control", nonconforming},
		{"a line end in a common name", cn(0x0c, "a\nb"), "name-control", nonconforming},
		{"a BMPString", cn(0x1e, "\x00a"), "name-string-old", nonconforming},
		{"a TeletexString", cn(0x14, "a"), "name-string-old", nonconforming},
		{"an IA5String as common name", cn(0x16, "a"), "name-string-type", malformed},
		{"a constructed common name", cn(0x2c, "\x0c\x01a"), "der", malformed},
		{"a country", subject(rdn(oidCountry, text(0x13, "DE"))), "", 0},
		{"a country of three letters", subject(rdn(oidCountry, text(0x13, "DEU"))), "name-country", malformed},
		{"a country of digits", subject(rdn(oidCountry, text(0x13, "49"))), "name-country", nonconforming},
		{"a country as UTF8String", subject(rdn(oidCountry, utf8("DE"))), "name-string-type", malformed},
		{"an e-mail address", subject(rdn("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01", text(0x16, "a@example.test"))), "", 0},
		{"an e-mail address as UTF8String", subject(rdn("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01", utf8("a@example.test"))), "name-string-type", malformed},
		{"an unknown attribute", subject(rdn(oidPrivate, utf8(strings.Repeat("a", 1000)))), "", 0},
		{"two attributes in one name", subject(set(pair(oidCommonName, utf8("a")), pair(oidOrganization, utf8("a")))), "", 0},
		{"two attributes out of order", subject(set(pair(oidOrganization, utf8("a")), pair(oidCommonName, utf8("a")))), "der", malformed},
		{"one type twice in one name", subject(set(pair(oidCommonName, utf8("a")), pair(oidCommonName, utf8("b")))), "name-repeated-type", malformed},
		{"one type twice in two names", subject(rdn(oidOrganization, utf8("a")), rdn(oidOrganization, utf8("b"))), "", 0},
		{"an empty relative name", subject(set()), "name-rdn", malformed},
		{"an attribute with two values", subject(set(seq(text(0x06, oidCommonName), utf8("a"), utf8("b")))), "name-attribute", malformed},
		{"an attribute without a value", subject(set(seq(text(0x06, oidCommonName)))), "name-attribute", malformed},
		{"a name of SEQUENCEs", subject(seq(pair(oidCommonName, utf8("a")))), "name-rdn", malformed},
		{"64 attributes", subject(bytes.Repeat(rdn(oidPrivate, utf8("a")), 64)), "", 0},
		{"65 attributes", subject(bytes.Repeat(rdn(oidPrivate, utf8("a")), 65)), "name-attributes", malformed},
		{"an empty issuer", func(d *draft) { d.issuer = seq() }, "issuer-empty", malformed},
		{"a bad issuer", func(d *draft) { d.issuer = seq(rdn(oidCommonName, utf8(""))) }, "name-empty-value", malformed},
	})
}

func TestSubjectAndAlternativeNames(t *testing.T) {
	checkDrafts(t, leafDraft, []draftCase{
		{"an empty subject with a critical SAN", func(d *draft) { d.subject = seq(); d.get(oidSAN).critical = isTrue }, "", 0},
		{"an empty subject with a SAN that is not", func(d *draft) { d.subject = seq() }, "san-critical", nonconforming},
		{"an empty subject without a SAN", func(d *draft) { d.subject = seq(); d.drop(oidSAN) }, "subject-empty", malformed},
		{"a subject without a SAN", func(d *draft) { d.drop(oidSAN) }, "", 0},
		{"a subject with a critical SAN", func(d *draft) { d.get(oidSAN).critical = isTrue }, "", 0},
	})
	d := caDraft()
	d.subject = seq()
	d.set(oidSAN, isTrue, names(uri("spiffe://example.test")))
	wantRules(t, d, "subject-empty-ca")
}

// sanCase is one subject alternative name.
type sanCase struct {
	name     string
	san      []byte
	rule     string
	severity int
}

func checkSANs(t *testing.T, cases []sanCase) {
	t.Helper()
	var drafts []draftCase
	for _, test := range cases {
		drafts = append(drafts, draftCase{test.name, func(d *draft) { d.set(oidSAN, nil, names(test.san)) }, test.rule, [...]severity{0, nonconforming, malformed}[test.severity]})
	}
	checkDrafts(t, leafDraft, drafts)
}

func TestDNSNames(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Repeat(label+".", 3)
	checkSANs(t, []sanCase{
		{"one label", dns("localhost"), "", 0},
		{"digits and hyphens", dns("1-a.0.example.test"), "", 0},
		{"capitals", dns("A.Example.Test"), "", 0},
		{"a label of 63", dns(label + ".test"), "", 0},
		{"253 characters", dns(long + strings.Repeat("a", 61)), "", 0},
		{"a wildcard", dns("*.example.test"), "", 0},
		{"an international label", dns("xn--mnchen-3ya.test"), "", 0},
		{"an international label in capitals", dns("XN--MNCHEN-3YA.test"), "", 0},
		{"an international label without basic letters", dns("xn--fiqs8s"), "", 0},
		{"nothing", dns(""), "name-dns", 2},
		{"a blank", dns(" "), "name-dns", 2},
		{"a blank inside", dns("a b.test"), "name-dns", 2},
		{"NUL", dns("example.test\x00.evil.test"), "name-dns", 2},
		{"a leading period", dns(".example.test"), "name-dns", 2},
		{"a trailing period", dns("example.test."), "name-dns", 2},
		{"an empty label", dns("a..test"), "name-dns", 2},
		{"a label of 64", dns(label + "a.test"), "name-dns", 2},
		{"254 characters", dns(long + strings.Repeat("a", 62)), "name-dns", 2},
		{"a leading hyphen", dns("-a.test"), "name-dns", 2},
		{"a trailing hyphen", dns("a-.test"), "name-dns", 2},
		{"an underscore", dns("a_b.test"), "name-dns", 2},
		{"UTF-8", dns("münchen.test"), "name-dns", 2},
		{"a port", dns("example.test:443"), "name-dns", 2},
		{"IPv6", dns("2001:db8::1"), "name-dns", 2},
		{"a wildcard below nothing", dns("*."), "name-dns", 2},
		{"a wildcard with a bad rest", dns("*.a_b"), "name-dns", 2},
		{"a bare wildcard", dns("*"), "name-dns", 1},
		{"a wildcard in the middle", dns("a.*.test"), "name-dns", 1},
		{"a wildcard in part of a label", dns("a*.example.test"), "name-dns", 1},
		{"two wildcards", dns("*.*.test"), "name-dns", 1},
		{"IPv4", dns("192.0.2.7"), "name-dns", 1},
		{"IPv4 under a wildcard", dns("*.0.2.7"), "name-dns", 1},
		{"a number", dns("127"), "name-dns", 1},
		{"xn-- that does not decode", dns("xn--a-0.test"), "name-dns", 1},
		{"xn-- of ASCII only", dns("xn--abc-.test"), "name-dns", 2},
		{"xn-- beyond Unicode", dns("xn--99999999.test"), "name-dns", 1},
		{"a constructed dNSName", tlv(0xa2, text(0x16, "leaf.example.test")), "name-unknown", 2},
	})
}

func TestURIs(t *testing.T) {
	checkSANs(t, []sanCase{
		{"https", uri("https://example.test:443/a?b=c#d"), "", 0},
		{"an IPv4 host", uri("https://192.0.2.7/"), "", 0},
		{"an IPv6 host", uri("https://[2001:db8::1]:8443/"), "", 0},
		{"a URN", uri("urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), "", 0},
		{"an escape", uri("https://example.test/%C3%A4"), "", 0},
		{"a relative URI", uri("/just/path"), "name-uri", 2},
		{"a network path", uri("//example.test/a"), "name-uri", 2},
		{"nothing", uri(""), "name-uri", 2},
		{"a host alone", uri("example.test"), "name-uri", 2},
		{"a scheme alone", uri("https:"), "name-uri", 2},
		{"a scheme that starts with a digit", uri("1a:b"), "name-uri", 2},
		{"a blank", uri("https://example.test/a b"), "name-uri", 2},
		{"UTF-8", uri("https://example.test/ä"), "name-uri", 2},
		{"a bad escape", uri("https://example.test/%zz"), "name-uri", 2},
		{"a constructed URI", tlv(0xa6, text(0x16, "https://example.test")), "name-unknown", 2},
		{"no host", uri("https:///a"), "name-uri", 1},
		{"a port that is none", uri("https://example.test:http/"), "name-uri", 1},
		{"a SPIFFE ID", uri("spiffe://example.test/a"), "", 0},
		{"a trust domain with an underscore", uri("spiffe://a_b/a"), "", 0},
		{"a SPIFFE ID in capitals", uri("SPIFFE://example.test/a"), "spiffe-id", 1},
		{"a trust domain in capitals", uri("spiffe://Example.test/a"), "spiffe-id", 1},
		{"a SPIFFE ID with an escape", uri("spiffe://example.test/%61"), "spiffe-id", 1},
		{"a SPIFFE ID with dots", uri("spiffe://example.test/a/../b"), "spiffe-id", 1},
		{"a SPIFFE ID with a trailing slash", uri("spiffe://example.test/a/"), "spiffe-id", 1},
		{"a SPIFFE ID with a query", uri("spiffe://example.test/a?b"), "spiffe-id", 1},
		{"a SPIFFE ID with a port", uri("spiffe://example.test:80/a"), "spiffe-id", 1},
		{"a SPIFFE ID without a path", uri("spiffe://example.test"), "spiffe-path", 1},
		{"a SPIFFE ID of 2048", uri("spiffe://example.test/" + strings.Repeat("a", 2026)), "", 0},
		{"a SPIFFE ID of 2049", uri("spiffe://example.test/" + strings.Repeat("a", 2027)), "spiffe-id", 1},
	})
	d := leafDraft()
	d.set(oidSAN, nil, names(uri("spiffe://td/a"), uri("spiffe://td/b")))
	wantRules(t, d, "spiffe-one-uri")
	d = caDraft()
	d.set(oidSAN, nil, names(uri("spiffe://td")))
	wantRules(t, d)
}

func TestOtherNames(t *testing.T) {
	mail := func(address string) []byte { return text(0x81, address) }
	checkSANs(t, []sanCase{
		{"a mailbox", mail("first.last+tag@example.test"), "", 0},
		{"a quoted local part", mail(`"a b\"c"@example.test`), "", 0},
		{"an address literal", mail("a@[192.0.2.7]"), "", 0},
		{"an IPv6 address literal", mail("a@[IPv6:2001:db8::1]"), "", 0},
		{"no at sign", mail("notamailbox"), "name-mailbox", 2},
		{"no local part", mail("@example.test"), "name-mailbox", 2},
		{"no domain", mail("a@"), "name-mailbox", 2},
		{"two periods", mail("a..b@example.test"), "name-mailbox", 2},
		{"a display name", mail("A <a@example.test>"), "name-mailbox", 2},
		{"two at signs", mail("a@b@example.test"), "name-mailbox", 2},
		{"a bad domain", mail("a@-example.test"), "name-mailbox", 2},
		{"a long local part", mail(strings.Repeat("a", 65) + "@example.test"), "name-mailbox", 2},
		{"UTF-8 in a mailbox", mail("ä@example.test"), "name-mailbox", 2},
		{"IPv4", unhex("8704 c0000207"), "", 0},
		{"IPv6", unhex("8710 20010db8 00000000 00000000 00000001"), "", 0},
		{"five octets of IP", unhex("8705 c000020700"), "name-ip", 2},
		{"an address and a mask", unhex("8708 c0000207 ffffffff"), "name-ip", 2},
		{"no octets of IP", unhex("8700"), "name-ip", 2},
		{"a directoryName", tlv(0xa4, seq(rdn(oidCommonName, utf8("a")))), "", 0},
		{"a directoryName that is implicit", tlv(0xa4, rdn(oidCommonName, utf8("a"))), "name-form", 2},
		{"a directoryName with a bad attribute", tlv(0xa4, seq(rdn(oidCommonName, utf8("")))), "name-empty-value", 2},
		{"an otherName", tlv(0xa0, text(0x06, oidPrivate), tlv(0xa0, utf8("a"))), "", 0},
		{"an otherName with two values", tlv(0xa0, text(0x06, oidPrivate), tlv(0xa0, utf8("a"), utf8("b"))), "name-form", 2},
		{"an otherName without a value", tlv(0xa0, text(0x06, oidPrivate)), "name-form", 2},
		{"an otherName that is not explicit", tlv(0xa0, text(0x06, oidPrivate), utf8("a")), "name-form", 2},
		{"a registeredID", text(0x88, oidPrivate), "", 0},
		{"a registeredID cut short", unhex("8802 2a86"), "name-registered-id", 2},
		{"an ediPartyName", tlv(0xa5, tlv(0xa1, utf8("a"))), "", 0},
		{"an ediPartyName without a party", tlv(0xa5, tlv(0xa0, utf8("a"))), "name-form", 2},
		{"an x400Address", tlv(0xa3, seq()), "", 0},
		{"a name of kind 9", unhex("890161"), "name-unknown", 2},
		{"a name that is a universal string", utf8("a"), "name-unknown", 2},
	})
	checkDrafts(t, leafDraft, []draftCase{
		{"no names", func(d *draft) { d.set(oidSAN, nil, names()) }, "san-empty", malformed},
		{"something after the names", func(d *draft) { d.get(oidSAN).value = append(names(dns("a")), null...) }, "extension-der", malformed},
		{"names in a SET", func(d *draft) { d.get(oidSAN).value = tlv(0x31, dns("a")) }, "san", malformed},
		{"BER names", func(d *draft) { d.get(oidSAN).value = unhex("3080 820161 0000") }, "extension-der", malformed},
	})
}
