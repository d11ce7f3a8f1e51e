package main

import "strings"

// altNameCases are about the subject alternative names.
func altNameCases() []certCase {
	const section = "RFC 5280 §4.2.1.6"
	san := func(names ...[]byte) func(*draft) {
		return func(d *draft) { d.put(idSubjectAltName, seq(names...)) }
	}
	label := strings.Repeat("l", 63)
	cases := []certCase{
		{"san-missing", accept, "-", section, "no alternative names beside a subject", func(d *draft) { d.drop(idSubjectAltName) }},
		{"san-critical", accept, "-", section, "critical beside a subject", func(d *draft) { d.mark(idSubjectAltName, isTrue) }},
		{"san-empty", malformed, "san-empty", section, "no name", san()},
		{"san-after", malformed, "extension-der", section, "an element after the list", func(d *draft) { d.put(idSubjectAltName, join(seq(dns("a.test")), null)) }},
		{"san-set", malformed, "san", section, "a SET of names", func(d *draft) { d.put(idSubjectAltName, set(dns("a.test"))) }},
		{"san-unknown-kind", malformed, "name-unknown", section, "a kind of name that does not exist, which some readers pass over", san(dns("a.test"), implicit(9, 1))},
		{"san-universal-tag", malformed, "name-unknown", section, "a name with a universal tag", san(text(tagIA5, "a.test"))},
		{"dns-constructed", malformed, "name-unknown", section, "a constructed dNSName", san(tlv(0xa2, text(tagIA5, "a.test")))},
		{"other-name", accept, "-", section, "an otherName", san(dns("a.test"), otherName(oid(idPrivate), explicit(0, utf8String("a"))))},
		{"other-name-no-value", malformed, "name-form", section, "an otherName without a value", san(otherName(oid(idPrivate)))},
		{"other-name-two-values", malformed, "name-form", section, "an otherName of two values", san(otherName(oid(idPrivate), explicit(0, null, null)))},
		{"directory-name", accept, "-", section, "a directoryName", san(directory(commonName("a")))},
		{"directory-name-implicit", malformed, "name-form", section, "a directoryName without the tag of its CHOICE", san(tlv(0xa4, rdn(idCommonName, printable("a"))))},
		{"directory-name-rdn-empty", malformed, "name-rdn", "RFC 5280 §4.1.2.4", "a directoryName with an empty relative distinguished name", san(directory(seq(set())))},
		{"registered-id", accept, "-", section, "a registeredID", san(tlv(0x88, arcs(idPrivate)))},
		{"registered-id-empty", malformed, "name-registered-id", section, "an empty registeredID", san(tlv(0x88))},
		{"edi-party", accept, "-", section, "an ediPartyName", san(explicit(5, explicit(1, utf8String("a"))))},
		{"edi-party-no-name", malformed, "name-form", section, "an ediPartyName without partyName", san(explicit(5, explicit(0, utf8String("a"))))},
		{"ip-v6", accept, "-", section, "an IPv6 address", san(ip(0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))},
		{"ip-3-octets", malformed, "name-ip", section, "three octets", san(ip(192, 0, 2))},
		{"ip-5-octets", malformed, "name-ip", section, "five octets", san(ip(192, 0, 2, 1, 1))},
		{"ip-empty", malformed, "name-ip", section, "no octets", san(ip())},
		{"ip-mask", malformed, "name-ip", section, "address and mask, which are for name constraints", san(ip(192, 0, 2, 0, 255, 255, 255, 0))},
		{"ip-text", malformed, "name-ip", section, "the text form", san(text(0x87, "192.0.2.1"))},
	}
	for _, c := range []struct {
		name string
		verdict
		value, section, what string
	}{
		{"upper-case", accept, "WWW.Corpus.Test", "RFC 4343", "capitals, which compare as small letters do"},
		{"one-label", accept, "localhost", "RFC 1034 §3.5", "one label"},
		{"label-63", accept, label + ".test", "RFC 1035 §2.3.4", "the longest label"},
		{"253", accept, strings.Repeat(label+".", 3) + label[:61], "RFC 1035 §2.3.4", "the longest name"},
		{"digits", accept, "1.2.3.corpus", "RFC 1123 §2.1", "labels of digits before one with letters"},
		{"wildcard", accept, "*.corpus.test", "RFC 6125 §6.4.3", "a wildcard in the place of the leftmost label"},
		{"a-label", accept, "xn--bcher-kva.test", "RFC 5890 §2.3.2.1", "an internationalized label"},
		{"wildcard-alone", nonconforming, "*", "RFC 6125 §6.4.3", "a wildcard and nothing else"},
		{"wildcard-middle", nonconforming, "www.*.test", "RFC 6125 §6.4.3", "a wildcard in another place"},
		{"wildcard-part", nonconforming, "w*.corpus.test", "RFC 6125 §6.4.3", "a wildcard that is a part of a label"},
		{"wildcard-two", nonconforming, "*.*.corpus.test", "RFC 6125 §6.4.3", "two wildcards"},
		{"address", nonconforming, "192.0.2.7", section, "an IP address as dNSName"},
		{"number-last", nonconforming, "corpus.7", "RFC 1123 §2.1", "a number as last label, as in an IP address"},
		{"a-label-broken", nonconforming, "xn--0.test", "RFC 5890 §2.3.2.1", "a label that starts as an internationalized one and is none"},
		{"empty", malformed, "", section, "an empty name"},
		{"space", malformed, " ", section, "a name of one blank"},
		{"inner-space", malformed, "www corpus.test", "RFC 1034 §3.5", "a blank inside"},
		{"trailing-dot", malformed, "www.corpus.test.", "RFC 1034 §3.5", "a dot at the end"},
		{"leading-dot", malformed, ".corpus.test", "RFC 1034 §3.5", "a dot at the start, which is for name constraints"},
		{"two-dots", malformed, "www..test", "RFC 1034 §3.5", "an empty label"},
		{"label-64", malformed, label + "l.test", "RFC 1035 §2.3.4", "a label of 64 octets"},
		{"254", malformed, strings.Repeat(label+".", 3) + label[:62], "RFC 1035 §2.3.4", "254 octets"},
		{"hyphen-first", malformed, "-www.test", "RFC 1034 §3.5", "a label that starts with a hyphen"},
		{"hyphen-last", malformed, "www-.test", "RFC 1034 §3.5", "a label that ends with a hyphen"},
		{"underscore", malformed, "_acme.corpus.test", "RFC 1034 §3.5", "an underscore"},
		{"nul", malformed, "good.test\x00.evil.test", "RFC 1034 §3.5", "a NUL, where some readers end the name"},
		{"newline", malformed, "www.test\n", "RFC 1034 §3.5", "a line feed"},
		{"utf8", malformed, "bücher.test", section, "octets that are not ASCII"},
		{"comma", malformed, "a.test,b.test", "RFC 1034 §3.5", "two names in one"},
		{"url", malformed, "https://www.test", "RFC 1034 §3.5", "a URL"},
	} {
		cases = append(cases, certCase{"dns-" + c.name, c.verdict, ruleOf(c.verdict, "name-dns"), c.section, c.what, san(dns(c.value))})
	}
	return append(cases, append(uriCases(san), emailCases(san)...)...)
}

func ruleOf(v verdict, rule string) string {
	if v == accept {
		return "-"
	}
	return rule
}

func uriCases(san func(...[]byte) func(*draft)) []certCase {
	const section, spiffe = "RFC 5280 §4.2.1.6", "SPIFFE-ID §2"
	var cases []certCase
	for _, c := range []struct {
		name string
		verdict
		value, section, what string
	}{
		{"https", accept, "https://www.corpus.test:8443/a?b=c#d", section, "a URI of the web"},
		{"address", accept, "https://[2001:db8::1]/", section, "an IPv6 address as host"},
		{"urn", accept, "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66", section, "a URN, which has no host"},
		{"relative", malformed, "/ns/shop/sa/cart", section, "no scheme"},
		{"empty", malformed, "", section, "nothing"},
		{"scheme-alone", malformed, "https:", section, "a scheme alone"},
		{"space", malformed, "https://www.corpus.test/a b", "RFC 3986 §2", "a blank"},
		{"utf8", malformed, "https://bücher.test/", "RFC 3986 §2", "octets that are not ASCII"},
		{"percent", malformed, "https://www.corpus.test/%zz", "RFC 3986 §2.1", "a percent sign without two digits"},
		{"nul", malformed, "https://www.corpus.test/\x00", "RFC 3986 §2", "a NUL"},
		{"no-host", nonconforming, "https:///a", section, "an empty host"},
		{"host-underscores", nonconforming, "https://-bad-.test/", section, "a host that is none"},
	} {
		cases = append(cases, certCase{"uri-" + c.name, c.verdict, ruleOf(c.verdict, "name-uri"), c.section, c.what, san(uri(c.value))})
	}
	for _, c := range []struct{ name, value, what string }{
		{"upper-case", "spiffe://Corpus.Test/a", "capitals in the trust domain"},
		{"scheme-upper-case", "SPIFFE://corpus.test/a", "capitals in the scheme"},
		{"port", "spiffe://corpus.test:8443/a", "a port"},
		{"query", "spiffe://corpus.test/a?b", "a query"},
		{"fragment", "spiffe://corpus.test/a#b", "a fragment"},
		{"slash-last", "spiffe://corpus.test/a/", "a slash at the end"},
		{"empty-segment", "spiffe://corpus.test/a//b", "an empty segment"},
		{"dots", "spiffe://corpus.test/a/../b", "a segment of two dots"},
		{"percent", "spiffe://corpus.test/a%2fb", "a percent-encoded character"},
		{"long", "spiffe://corpus.test/" + strings.Repeat("a", 2028), "2049 octets"},
	} {
		cases = append(cases, certCase{"spiffe-" + c.name, nonconforming, "spiffe-id", spiffe, c.what, san(uri(c.value))})
	}
	return append(cases,
		certCase{"spiffe-longest", accept, "-", "SPIFFE-ID §2.3", "2048 octets", san(uri("spiffe://corpus.test/" + strings.Repeat("a", 2027)))},
		certCase{"spiffe-no-path", nonconforming, "spiffe-path", "X509-SVID §4.1", "a trust domain names a CA, not a leaf", san(uri("spiffe://corpus.test"))},
		certCase{"spiffe-two", nonconforming, "spiffe-one-uri", "X509-SVID §2", "two SPIFFE IDs", san(uri("spiffe://corpus.test/a"), uri("spiffe://corpus.test/b"))},
		certCase{"spiffe-and-uri", nonconforming, "spiffe-one-uri", "X509-SVID §2", "a SPIFFE ID and another URI", san(uri("spiffe://corpus.test/a"), uri("https://www.corpus.test/"))},
	)
}

func emailCases(san func(...[]byte) func(*draft)) []certCase {
	var cases []certCase
	for _, c := range []struct {
		name string
		verdict
		value, what string
	}{
		{"good", accept, "a.b+c@corpus.test", "a mailbox"},
		{"quoted", accept, `"a b"@corpus.test`, "a quoted local part"},
		{"literal", accept, "a@[192.0.2.1]", "an address in brackets as domain"},
		{"no-at", malformed, "corpus.test", "no at sign"},
		{"no-local", malformed, "@corpus.test", "no local part"},
		{"no-domain", malformed, "a@", "no domain"},
		{"two-at", malformed, "a@b@corpus.test", "two at signs"},
		{"utf8", malformed, "bücher@corpus.test", "octets that are not ASCII, which need RFC 9598"},
		{"display", malformed, "A B <a@corpus.test>", "a name around the mailbox"},
		{"dot-first", malformed, ".a@corpus.test", "a dot at the start"},
		{"local-65", malformed, strings.Repeat("a", 65) + "@corpus.test", "a local part of 65 octets"},
		{"empty", malformed, "", "nothing"},
	} {
		cases = append(cases, certCase{"email-" + c.name, c.verdict, ruleOf(c.verdict, "name-mailbox"), "RFC 5280 §4.2.1.6", c.what, san(email(c.value))})
	}
	return cases
}
