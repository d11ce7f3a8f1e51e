package main

import "strings"

// proofCases are about the proof that the requester has the private key.
func proofCases() []requestCase {
	const signature, algorithm = "signature does not verify", "signatureAlgorithm"
	other := newP256("another requester")
	rsa := rsa2048()
	ed := newEd25519("requester Ed25519")
	signed := func(by func(message []byte) []byte) func(*request) {
		return func(r *request) { r.signature = by(r.info()) }
	}
	use := func(k key) func(*request) {
		return func(r *request) { r.key = k }
	}
	return []requestCase{
		{"proof-other-key", "reject", signature, "", "RFC 2986 §3", "signed with another key", signed(other.sign)},
		{"proof-other-text", "reject", signature, "", "RFC 2986 §3", "the signature of another request", signed(func([]byte) []byte { return requester.sign([]byte("another request")) })},
		{"proof-zero", "reject", signature, "", "RFC 2986 §3", "r and s are zero", signed(func([]byte) []byte { return seq(number(0), number(0)) })},
		{"proof-empty", "reject", signature, "", "RFC 2986 §3", "an empty signature", signed(func([]byte) []byte { return []byte{} })},
		{"proof-trailing", "reject", signature, "", "RFC 2986 §3", "an octet after r and s", signed(func(message []byte) []byte { return append(requester.sign(message), 0) })},
		{"proof-raw", "reject", signature, "", "RFC 5758 §3.2", "r and s as 64 octets", signed(func([]byte) []byte { return join(seed("r"), seed("s")) })},
		{"proof-ed25519-zero", "reject", signature, "", "RFC 8032 §5.1.7", "an Ed25519 signature of zeros", use(as{key: ed, signature: func([]byte) []byte { return make([]byte, 64) }})},
		{"proof-certificate", "reject", signature, "", "RFC 2986 §3", "the signature covers the whole request", signed(func(message []byte) []byte { return requester.sign(seq(message)) })},
		{"algorithm-rsa-for-ec", "reject", algorithm, "", "RFC 5280 §4.1.1.2", "an RSA algorithm with an EC key", func(r *request) { r.outer = seq(oid(idSHA256RSA), null) }},
		{"algorithm-ec-for-ed25519", "reject", algorithm, "", "RFC 5280 §4.1.1.2", "ECDSA with an Ed25519 key", func(r *request) { r.key, r.outer = ed, seq(oid(idECDSASHA256)) }},
		{"algorithm-unknown", "reject", algorithm, "", "RFC 5280 §4.1.1.2", "an algorithm that nobody knows", func(r *request) { r.outer = seq(oid(idPrivate)) }},
		{"algorithm-ecdsa-sha1", "reject", algorithm, "", "RFC 9155", "ECDSA with SHA-1", use(newEC("requester", curve256, idP256, hash1, idECDSASHA1))},
		{"algorithm-rsa-sha1", "reject", algorithm, "", "RFC 9155", "RSA with SHA-1", use(rsa.with(hash1, seq(oid(idSHA1RSA), null)))},
		{"algorithm-rsa-md5", "reject", algorithm, "", "RFC 6151", "RSA with MD5", use(rsa.with(hashMD5, seq(oid(idMD5RSA), null)))},
		{"algorithm-rsa-parameters", "reject", algorithm, "", "RFC 4055 §5", "RSA with an INTEGER as parameters", use(rsa.with(hash256, seq(oid(idSHA256RSA), number(1))))},
		{"algorithm-pss-defaults", "reject", algorithm, "", "RFC 4055 §3.1", "RSASSA-PSS with the defaults, which are SHA-1", use(rsa.withPSS(hash1, 20, pssIdentifier()))},
		{"algorithm-pss-salt", "reject", algorithm, "", "RFC 4055 §3.1", "a salt that is longer than the hash", use(rsa.withPSS(hash256, 64, pssIdentifier(pssFields(idSHA256, 64))))},
		{"algorithm-ed25519-null", "reject", algorithm, "", "RFC 8410 §3", "Ed25519 with NULL parameters", func(r *request) { r.key, r.outer = ed, seq(oid(idEd25519), null) }},
	}
}

// attributeCases are about attributes and the extensions that are asked for.
func attributeCases() []requestCase {
	const extension, attributes = "extensionRequest", "attributes"
	around := func(change func(request []byte) []byte) func(*request) {
		return func(r *request) { r.attributes = change }
	}
	ask := func(id string, critical, value []byte) func(*request) {
		return func(r *request) { r.put(id, critical, value) }
	}
	names := seq(oid(idSubjectAltName), octets(seq(dns("web.corpus.test"))))
	requestOf := func(values ...[]byte) func([]byte) []byte {
		return func([]byte) []byte { return seq(oid(idExtensionRequest), set(values...)) }
	}
	return []requestCase{
		{"extensions-empty", "accept", "", "", "RFC 5280 §4.1.2.9", "a request for no extension, which is not allowed and common", func(r *request) { r.extensions = nil }},
		{"extensions-no-value", "reject", attributes, "", "RFC 2985 §5.4.2", "an extension request without a value", around(requestOf())},
		{"extensions-two-values", "reject", extension, "", "RFC 2985 §5.4.2", "two values, of which some read the first only", around(requestOf(seq(names), seq(seq(oid(idSubjectAltName), octets(seq(dns("www.corpus.test")))))))},
		{"extensions-two-attributes", "reject", attributes, "", "X.501 §8.2", "two extension requests", around(func(request []byte) []byte { return join(request, request) })},
		{"extensions-microsoft", "reject", attributes, "", "RFC 2985 §5.4.2", "extensions in Microsoft's attribute", around(func(request []byte) []byte { return seq(oid(idMicrosoftRequest), set(seq(names))) })},
		{"extension-twice", "reject", extension, "", "RFC 5280 §4.2", "an extension stands twice", around(requestOf(seq(names, names)))},
		{"extension-trailing", "reject", extension, "", "RFC 5280 §4.1", "a fourth element in an extension", func(r *request) { r.extensions[0].tail = null }},
		{"extension-critical-false", "reject", extension, "EncodedDefaults", "X.690 §11.5", "critical FALSE is the default and must not be encoded; old releases of certmonger do", func(r *request) { r.extensions[0].critical = isFalse }},
		{"extension-unknown", "reject", extension, "Extensions", "a policy", "an extension that nobody knows", ask(idPrivate, nil, null)},
		{"extension-name-constraints", "reject", extension, "", "RFC 5280 §4.2.1.10", "name constraints", ask(idNameConstraints, isTrue, seq(explicit(0, seq(dns("corpus.test")))))},
		{"extension-policies", "reject", extension, "", "RFC 5280 §4.2.1.4", "certificate policies", ask(idPolicies, nil, seq(seq(oid(idAnyPolicy))))},
		{"extension-ski", "accept", "", "", "RFC 5280 §4.2.1.2", "a subject key identifier, which is ignored", ask(idSubjectKeyID, nil, octets([]byte{1, 2, 3}))},
		{"extension-ski-malformed", "reject", "subjectKeyIdentifier", "", "RFC 5280 §4.2.1.2", "a subject key identifier that is none", ask(idSubjectKeyID, nil, seq())},
		{"extension-aki-malformed", "reject", "authorityKeyIdentifier", "", "RFC 5280 §4.2.1.1", "BER in an authority key identifier", ask(idAuthorityKeyID, nil, indefinite(tagSequence))},
		{"ca-true", "reject", extension, "CA", "RFC 5280 §4.2.1.9", "a CA certificate", ask(idBasicConstraints, isTrue, seq(isTrue))},
		{"ca-path-length", "reject", "basicConstraints", "", "RFC 5280 §4.2.1.9", "a path length without cA", ask(idBasicConstraints, isTrue, seq(number(0)))},
		{"ca-false-encoded", "reject", extension, "EncodedDefaults", "X.690 §11.5", "cA FALSE is the default and must not be encoded", ask(idBasicConstraints, isTrue, seq(isFalse))},
		{"ca-not", "accept", "", "", "RFC 5280 §4.2.1.9", "no CA certificate", ask(idBasicConstraints, isTrue, seq())},
		{"ku", "accept", "", "", "RFC 5280 §4.2.1.3", "a key usage", ask(idKeyUsage, isTrue, bits(5, 0xa0))},
		{"ku-cert-sign", "reject", extension, "CA", "RFC 5280 §4.2.1.3", "keyCertSign", ask(idKeyUsage, isTrue, bits(2, 0x84))},
		{"ku-crl-sign", "reject", extension, "CA", "RFC 5280 §4.2.1.3", "cRLSign", ask(idKeyUsage, isTrue, bits(1, 0x82))},
		{"ku-zeros", "reject", "keyUsage", "", "X.690 §11.2.2", "trailing zero bits", ask(idKeyUsage, isTrue, bits(0, 0x80))},
		{"ku-empty", "reject", "keyUsage", "", "RFC 5280 §4.2.1.3", "no bit set", ask(idKeyUsage, isTrue, bits(0))},
		{"ku-bit-9", "reject", "keyUsage", "", "RFC 5280 §4.2.1.3", "a bit that is not defined", ask(idKeyUsage, isTrue, bits(6, 0x80, 0x40))},
		{"eku", "accept", "", "", "RFC 5280 §4.2.1.12", "server and client", ask(idExtKeyUsage, nil, seq(oid(idServerAuth), oid(idClientAuth)))},
		{"eku-any", "reject", "extKeyUsage", "", "RFC 5280 §4.2.1.12", "any usage", ask(idExtKeyUsage, nil, seq(oid(idAnyUsage)))},
		{"eku-empty", "reject", "extKeyUsage", "", "RFC 5280 §4.2.1.12", "no usage", ask(idExtKeyUsage, nil, seq())},
		{"attribute-challenge", "accept", "", "", "RFC 2985 §5.4.1", "a challenge password, which is ignored and never shown", around(func(request []byte) []byte {
			return join(seq(oid(idChallenge), set(utf8String("corpus-challenge"))), request)
		})},
		{"attribute-unknown", "accept", "", "", "RFC 2986 §4.1", "an attribute that is ignored", around(func(request []byte) []byte { return join(seq(oid(idUnstructuredName), set(utf8String("a"))), request) })},
		{"attributes-unsorted", "accept", "", "", "X.690 §11.6", "two attributes that are not in order, as crypto/x509 writes them; nothing depends on it", around(func(request []byte) []byte {
			return join(request, seq(oid(idChallenge), set(utf8String("corpus-challenge"))))
		})},
		{"attribute-no-values", "reject", attributes, "", "RFC 2986 §4.1", "an attribute without values", around(func(request []byte) []byte { return join(seq(oid(idUnstructuredName), set()), request) })},
		{"attribute-trailing", "reject", attributes, "", "RFC 2986 §4.1", "a third element in an attribute", around(func(request []byte) []byte {
			return join(seq(oid(idUnstructuredName), set(utf8String("a")), null), request)
		})},
	}
}

// requestNameCases are about the subject alternative names that are asked for.
func requestNameCases() []requestCase {
	const field, section = "subjectAltName", "RFC 5280 §4.2.1.6"
	san := func(names ...[]byte) func(*request) {
		return func(r *request) { r.put(idSubjectAltName, nil, seq(names...)); r.subject = seq() }
	}
	many := make([][]byte, 101)
	for i := range many {
		many[i] = dns("h" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10)) + ".corpus.test")
	}
	cases := []requestCase{
		{"san-spiffe", "accept", "", "", "X509-SVID §2", "a SPIFFE ID", san(uri("spiffe://corpus.test/ns/shop/sa/cart"))},
		{"san-100", "accept", "", "", "a bound of the reader", "a hundred names", san(many[:100]...)},
		{"san-101", "reject", field, "MaxNames", "a bound of the reader", "a hundred and one names", san(many...)},
		{"san-empty", "reject", field, "", section, "no name", san()},
		{"san-trailing", "reject", field, "", section, "an element after the list", func(r *request) { r.put(idSubjectAltName, nil, join(seq(dns("a.test")), null)) }},
		{"san-unknown", "reject", field, "", section, "a kind of name that does not exist", san(dns("a.test"), implicit(9, 1))},
		{"san-other-name", "reject", field, "", section, "an otherName, which Go drops", san(dns("a.test"), otherName(oid(idPrivate), explicit(0, utf8String("a"))))},
		{"san-directory-name", "reject", field, "", section, "a directoryName, which Go drops", san(dns("a.test"), directory(commonName("a")))},
		{"san-registered-id", "reject", field, "", section, "a registeredID, which Go drops", san(dns("a.test"), tlv(0x88, arcs(idPrivate)))},
		{"san-dns-constructed", "reject", field, "", section, "a constructed dNSName", san(tlv(0xa2, text(tagIA5, "a.test")))},
		{"san-email", "reject", field, "Emails", "a policy", "an e-mail address", san(email("a@corpus.test"))},
		{"san-email-broken", "reject", field, "", section, "an e-mail address that is none", san(email("corpus.test"))},
		{"san-wildcard", "reject", field, "Wildcards", "RFC 6125 §6.4.3", "a wildcard", san(dns("*.corpus.test"))},
		{"san-wildcard-alone", "reject", field, "", "RFC 6125 §6.4.3", "a wildcard and nothing else", san(dns("*"))},
		{"san-wildcard-top", "reject", field, "", "RFC 6125 §6.4.3", "a wildcard before a top-level domain", san(dns("*.test"))},
		{"san-wildcard-middle", "reject", field, "", "RFC 6125 §6.4.3", "a wildcard in another place", san(dns("www.*.corpus.test"))},
		{"ip-v6", "accept", "", "", section, "an IPv6 address", san(ip(0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))},
		{"ip-3-octets", "reject", field, "", section, "three octets", san(ip(192, 0, 2))},
		{"ip-mask", "reject", field, "", section, "address and mask", san(ip(192, 0, 2, 0, 255, 255, 255, 0))},
		{"ip-unspecified", "reject", field, "", "a policy", "0.0.0.0", san(ip(0, 0, 0, 0))},
		{"ip-multicast", "reject", field, "", "a policy", "a multicast address", san(ip(224, 0, 0, 1))},
		{"ip-mapped", "reject", field, "", "RFC 4291 §2.5.5.2", "an IPv4 address in 16 octets", san(ip(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1))},
	}
	for _, c := range []struct{ name, verdict, value, what string }{
		{"upper-case", "accept", "WWW.Corpus.Test", "capitals"},
		{"a-label", "accept", "xn--bcher-kva.test", "an internationalized label"},
		{"empty", "reject", "", "an empty name"},
		{"space", "reject", " ", "a blank"},
		{"nul", "reject", "good.test\x00.evil.test", "a NUL"},
		{"trailing-dot", "reject", "www.corpus.test.", "a dot at the end"},
		{"leading-dot", "reject", ".corpus.test", "a dot at the start"},
		{"two-dots", "reject", "www..test", "an empty label"},
		{"label-64", "reject", strings.Repeat("l", 64) + ".test", "a label of 64 octets"},
		{"254", "reject", strings.Repeat(strings.Repeat("l", 63)+".", 3) + strings.Repeat("l", 62), "254 octets"},
		{"underscore", "reject", "_acme.corpus.test", "an underscore"},
		{"hyphen", "reject", "-www.test", "a label that starts with a hyphen"},
		{"utf8", "reject", "bücher.test", "octets that are not ASCII"},
		{"address", "reject", "192.0.2.7", "an IP address as dNSName"},
		{"address-hex", "reject", "0x7f000001", "an IP address in hexadecimal, as browsers read it"},
		{"a-label-broken", "reject", "xn--0.test", "a label that starts as an internationalized one and is none"},
		{"comma", "reject", "a.test,b.test", "two names in one"},
	} {
		cases = append(cases, requestCase{"dns-" + c.name, c.verdict, fieldOf(c.verdict, field), "", section, c.what, san(dns(c.value))})
	}
	for _, c := range []struct{ name, verdict, value, what string }{
		{"https", "accept", "https://www.corpus.test/a", "a URI of the web"},
		{"relative", "reject", "/a", "no scheme"},
		{"empty", "reject", "", "nothing"},
		{"space", "reject", "https://www.corpus.test/a b", "a blank"},
		{"user", "reject", "https://a:b@www.corpus.test/", "a user and a password"},
		{"host", "reject", "https://-bad-.test/", "a host that is none"},
		{"nul", "reject", "spiffe://corpus.test/a\x00b", "a NUL"},
		{"spiffe-upper-case", "reject", "spiffe://Corpus.Test/a", "a trust domain with capitals"},
		{"spiffe-dots", "reject", "spiffe://corpus.test/a/../b", "a segment of two dots"},
		{"spiffe-slash", "reject", "spiffe://corpus.test/a/", "a slash at the end"},
		{"spiffe-query", "reject", "spiffe://corpus.test/a?b", "a query"},
		{"spiffe-port", "reject", "spiffe://corpus.test:1/a", "a port"},
		{"long", "reject", "https://www.corpus.test/" + strings.Repeat("a", 2030), "more than 2048 octets"},
	} {
		cases = append(cases, requestCase{"uri-" + c.name, c.verdict, fieldOf(c.verdict, field), "", section, c.what, san(uri(c.value))})
	}
	return append(cases, requestCase{"uri-two-spiffe", "reject", field, "", "X509-SVID §2", "two SPIFFE IDs", san(uri("spiffe://corpus.test/a"), uri("spiffe://corpus.test/b"))})
}

func fieldOf(verdict, field string) string {
	if verdict == "accept" {
		return ""
	}
	return field
}

// subjectCases are about the subject, which is never copied to a certificate.
func subjectCases() []requestCase {
	const field, section = "subject", "RFC 5280 §4.1.2.4"
	subject := func(rdns ...[]byte) func(*request) {
		return func(r *request) { r.subject = seq(rdns...) }
	}
	cn := func(value string) []byte { return rdn(idCommonName, utf8String(value)) }
	return []requestCase{
		{"subject-empty", "accept", "", "", section, "an empty subject", subject()},
		{"subject-organization-empty", "accept", "", "", "RFC 5280 Appendix A.1", "an empty organization, as Istio's agents send it", subject(rdn(idOrganization, utf8String("")))},
		{"subject-cn-64", "accept", "", "", "RFC 5280 Appendix A.1", "64 characters", subject(cn(strings.Repeat("a", 64)))},
		{"subject-cn-65", "reject", field, "", "RFC 5280 Appendix A.1", "65 characters", subject(cn(strings.Repeat("a", 65)))},
		{"subject-cn-empty", "reject", field, "", "RFC 5280 Appendix A.1", "an empty common name", subject(cn(""))},
		{"subject-cn-two", "reject", field, "", section, "two common names", subject(cn("web.corpus.test"), cn("www.corpus.test"))},
		{"subject-cn-stray", "reject", field, "StrayCommonName", "RFC 6125 §6.4.4", "a host name as common name that is not among the alternative names", subject(cn("other.corpus.test"))},
		{"subject-cn-stray-address", "reject", field, "StrayCommonName", "RFC 6125 §6.4.4", "an address as common name that is not among the alternative names", subject(cn("192.0.2.99"))},
		{"subject-masters", "reject", field, "", "Kubernetes", "the group system:masters", subject(rdn(idOrganization, utf8String("system:masters")))},
		{"subject-masters-case", "reject", field, "", "Kubernetes", "the same in other letters", subject(rdn(idOrganization, utf8String(" System:Masters")))},
		{"subject-system", "reject", field, "SystemSubjects", "Kubernetes", "a user of Kubernetes' own", subject(cn("system:node:a"))},
		{"subject-nul", "reject", field, "", section, "a NUL", subject(cn("a\x00b"))},
		{"subject-newline", "reject", field, "", section, "a line feed", subject(cn("a\nb"))},
		{"subject-bmp", "reject", field, "", section, "a BMPString", subject(rdn(idCommonName, text(tagBMP, "\x00a")))},
		{"subject-printable-at", "reject", "strict DER", "", "X.680 §41.4", "an at sign in a PrintableString", subject(rdn(idCommonName, printable("a@b")))},
		{"subject-utf8-broken", "reject", "strict DER", "", "X.690 §8.23", "octets that are not UTF-8", subject(rdn(idCommonName, tlv(tagUTF8, []byte{0xc3, 0x28})))},
		{"subject-country-three", "reject", field, "", "RFC 5280 Appendix A.1", "a country of three letters", subject(rdn(idCountry, printable("CHE")))},
		{"subject-rdn-empty", "reject", field, "", section, "an empty relative distinguished name", subject(set())},
		{"subject-rdn-twice", "reject", field, "", section, "a type twice in one relative distinguished name", subject(set(attribute(idUnit, printable("a")), attribute(idUnit, printable("b"))))},
		{"subject-trailing", "reject", field, "", section, "a third element in an attribute", subject(set(seq(oid(idCommonName), printable("a"), null)))},
	}
}
