package main

// extensionCases are about the list of extensions, and about those that are neither usages nor names of the subject.
func extensionCases() []certCase {
	const section, field = "RFC 5280 §4.2", "RFC 5280 §4.1.2.9"
	add := func(e extension) func(*draft) {
		return func(d *draft) { d.extensions = append(d.extensions, e) }
	}
	put := func(id string, value []byte) func(*draft) {
		return func(d *draft) { d.put(id, value) }
	}
	wrap := func(around func(list []byte) []byte) func(*draft) {
		return func(d *draft) { d.wrap = around }
	}
	many := func(d *draft) {
		for i := range 60 {
			d.extensions = append(d.extensions, extension{idPrivate + "." + string(rune('1'+i/10)) + string(rune('0'+i%10)), nil, null, nil})
		}
	}
	return append([]certCase{
		{"extension-unknown", accept, "-", section, "an unknown extension that is not critical", add(extension{idPrivate, nil, null, nil})},
		{"extension-unknown-bytes", accept, "-", section, "an unknown extension whose value is no DER", add(extension{idPrivate, nil, []byte("text"), nil})},
		{"extension-unknown-critical", malformed, "extension-critical", section, "an unknown extension that is critical", add(extension{idPrivate, isTrue, null, nil})},
		{"extension-twice", malformed, "extension-repeated", section, "an extension stands twice", func(d *draft) { d.extensions = append(d.extensions, d.extensions[0]) }},
		{"extension-unknown-twice", malformed, "extension-repeated", section, "an unknown extension stands twice", func(d *draft) {
			d.extensions = append(d.extensions, extension{idPrivate, nil, null, nil}, extension{idPrivate, nil, octets(), nil})
		}},
		{"extension-critical-false", malformed, "extension-default", "X.690 §11.5", "critical FALSE is the default and must not be encoded", add(extension{idPrivate, isFalse, null, nil})},
		{"extension-critical-01", malformed, "der", "X.690 §11.1", "TRUE that is not FF", add(extension{idPrivate, unhex("010101"), null, nil})},
		{"extension-trailing", malformed, "extension-fields", "RFC 5280 §4.1", "a fourth element in an extension", add(extension{idPrivate, nil, null, null})},
		{"extension-no-value", malformed, "extension-fields", "RFC 5280 §4.1", "an extension without a value", wrap(func(list []byte) []byte { return explicit(3, seq(list, seq(oid(idPrivate)))) })},
		{"extension-order", malformed, "extension-fields", "RFC 5280 §4.1", "critical after the value", add(extension{idPrivate, nil, null, isTrue})},
		{"extension-sequence-value", malformed, "extension-fields", "RFC 5280 §4.1", "a value that is no OCTET STRING", wrap(func(list []byte) []byte { return explicit(3, seq(list, seq(oid(idPrivate), seq()))) })},
		{"extension-ber-inside", malformed, "extension-der", "RFC 5280 §4.2", "BER in the value of a known extension", put(idExtKeyUsage, join([]byte{0x30, 0x80}, oid(idServerAuth), []byte{0, 0}))},
		{"extension-empty-value", malformed, "extension-der", "RFC 5280 §4.2", "a known extension without a value inside", put(idExtKeyUsage, nil)},
		{"extensions-64", accept, "-", "a bound of the reader", "as many extensions as are read", func(d *draft) {
			many(d)
			d.extensions = d.extensions[:64]
		}},
		{"extensions-66", malformed, "extensions-count", "a bound of the reader", "66 extensions", many},
		{"extensions-empty", malformed, "extensions-fields", field, "a list without extensions", wrap(func([]byte) []byte { return explicit(3, seq()) })},
		{"extensions-two-lists", malformed, "extensions-fields", field, "two lists of extensions", wrap(func(list []byte) []byte { return explicit(3, seq(list), seq(list)) })},
		{"extensions-set", malformed, "extensions-fields", field, "a SET of extensions", wrap(func(list []byte) []byte { _, rest := first(list); return explicit(3, set(list[:len(list)-len(rest)])) })},
		{"extensions-implicit", malformed, "extensions-fields", field, "the list without its SEQUENCE", wrap(func(list []byte) []byte { return explicit(3, list) })},
	}, identifierCases(put)...)
}

// identifierCases are about key identifiers and where to find lists and issuers.
func identifierCases(put func(id string, value []byte) func(*draft)) []certCase {
	const authority, subject, points, access = "RFC 5280 §4.2.1.1", "RFC 5280 §4.2.1.2", "RFC 5280 §4.2.1.13", "RFC 5280 §4.2.2.1"
	mark := func(id string, value []byte) func(*draft) {
		return func(d *draft) { d.extensions = append(d.extensions, extension{id, isTrue, value, nil}) }
	}
	location := uri("http://crl.corpus.test/1.crl")
	full := explicit(0, explicit(0, location))
	return []certCase{
		{"aki-missing", nonconforming, "authority-key-id-missing", authority, "no authority key identifier", func(d *draft) { d.drop(idAuthorityKeyID) }},
		{"aki-empty", nonconforming, "authority-key-id-missing", authority, "an authority key identifier of nothing", put(idAuthorityKeyID, seq())},
		{"aki-critical", unread, "extension-critical", authority, "it must not be critical", func(d *draft) { d.mark(idAuthorityKeyID, isTrue) }},
		{"aki-issuer-serial", accept, "-", authority, "key identifier, issuer and serial number", put(idAuthorityKeyID, seq(implicit(0, keyID(intermediateCA.key)...), explicit(1, directory(rootCA.name)), implicit(2, 7)))},
		{"aki-no-key", nonconforming, "authority-key-id-missing", authority, "issuer and serial number, and no key identifier", put(idAuthorityKeyID, seq(explicit(1, directory(rootCA.name)), implicit(2, 7)))},
		{"aki-issuer-alone", malformed, "authority-key-id-pair", authority, "an issuer without a serial number", put(idAuthorityKeyID, seq(implicit(0, keyID(intermediateCA.key)...), explicit(1, directory(rootCA.name))))},
		{"aki-serial-padded", malformed, "authority-key-id-serial", "X.690 §8.3.2", "a padded serial number", put(idAuthorityKeyID, seq(implicit(0, 1, 2, 3), explicit(1, directory(rootCA.name)), implicit(2, 0, 7)))},
		{"aki-trailing", malformed, "authority-key-id", authority, "a fourth field", put(idAuthorityKeyID, seq(implicit(0, 1, 2, 3), implicit(3, 7)))},
		{"aki-after", malformed, "extension-der", authority, "an element after it in the extension's value", put(idAuthorityKeyID, join(seq(implicit(0, 1, 2, 3)), null))},
		{"ski-missing", accept, "-", subject, "no subject key identifier, which a leaf should have and need not", func(d *draft) { d.drop(idSubjectKeyID) }},
		{"ski-critical", unread, "extension-critical", subject, "it must not be critical", func(d *draft) { d.mark(idSubjectKeyID, isTrue) }},
		{"ski-empty", nonconforming, "subject-key-id-empty", subject, "an identifier of no octets", put(idSubjectKeyID, octets())},
		{"ski-bits", malformed, "subject-key-id", subject, "a BIT STRING as identifier", put(idSubjectKeyID, bits(0, 1, 2))},

		{"crldp", accept, "-", points, "one distribution point", put(idCRLPoints, seq(seq(full)))},
		{"crldp-issuer", accept, "-", points, "a distribution point with a cRLIssuer and reasons", put(idCRLPoints, seq(seq(full, implicit(1, 6, 0x40), explicit(2, directory(rootCA.name)))))},
		{"crldp-empty", malformed, "distribution-points-empty", points, "no distribution point", put(idCRLPoints, seq())},
		{"crldp-point-empty", malformed, "distribution-point-empty", points, "a distribution point of nothing", put(idCRLPoints, seq(seq()))},
		{"crldp-reasons-alone", nonconforming, "distribution-point-reasons", points, "reasons and neither a name nor an issuer", put(idCRLPoints, seq(seq(implicit(1, 6, 0x40))))},
		{"crldp-reasons-zeros", malformed, "distribution-point-reasons", "X.690 §11.2.2", "trailing zero bits in the reasons", put(idCRLPoints, seq(seq(full, implicit(1, 0, 0x40))))},
		{"crldp-relative", unread, "distribution-point-name-relative", points, "a relative name, which a CA should not use", put(idCRLPoints, seq(seq(explicit(0, explicit(1, attribute(idCommonName, printable("1")))))))},
		{"crldp-two-names", malformed, "distribution-point-name", points, "a full and a relative name", put(idCRLPoints, seq(seq(explicit(0, explicit(0, location), explicit(1, attribute(idCommonName, printable("1")))))))},
		{"crldp-names-empty", malformed, "names-empty", points, "a full name of no names", put(idCRLPoints, seq(seq(explicit(0, explicit(0)))))},
		{"crldp-uri-relative", malformed, "name-uri", "RFC 5280 §4.2.1.6", "a location without a scheme", put(idCRLPoints, seq(seq(explicit(0, explicit(0, uri("/1.crl"))))))},
		{"freshest-critical", nonconforming, "extension-critical", "RFC 5280 §4.2.1.15", "it must not be critical", mark(idFreshestCRL, seq(seq(full)))},

		{"aia", accept, "-", access, "an OCSP responder and the issuer's certificate", put(idAuthorityAccess, seq(seq(oid(idOCSP), uri("http://ocsp.corpus.test")), seq(oid(idCAIssuers), uri("http://ca.corpus.test/i.cer"))))},
		{"aia-empty", malformed, "info-access-empty", access, "no access description", put(idAuthorityAccess, seq())},
		{"aia-critical", unread, "extension-critical", access, "it must not be critical", mark(idAuthorityAccess, seq(seq(oid(idOCSP), uri("http://ocsp.corpus.test"))))},
		{"aia-no-location", malformed, "info-access+name-form", access, "a method without a location", put(idAuthorityAccess, seq(seq(oid(idOCSP))))},
		{"aia-two-locations", malformed, "info-access", access, "a method with two locations", put(idAuthorityAccess, seq(seq(oid(idOCSP), uri("http://a.corpus.test"), uri("http://b.corpus.test"))))},
		{"sia-critical", nonconforming, "extension-critical", "RFC 5280 §4.2.2.2", "it must not be critical", mark(idSubjectAccess, seq(seq(oid(idPrivate), uri("http://a.corpus.test"))))},
		{"ian", accept, "-", "RFC 5280 §4.2.1.7", "an alternative name of the issuer", put(idIssuerAltName, seq(uri("http://ca.corpus.test")))},
		{"ian-empty", malformed, "ian-empty", "RFC 5280 §4.2.1.7", "no name", put(idIssuerAltName, seq())},
	}
}

// usageCases are about key usage, extended key usage and basic constraints of a leaf.
func usageCases() []certCase {
	const usage, extended, basic = "RFC 5280 §4.2.1.3", "RFC 5280 §4.2.1.12", "RFC 5280 §4.2.1.9"
	put := func(id string, value []byte) func(*draft) {
		return func(d *draft) { d.put(id, value) }
	}
	return []certCase{
		{"ku-missing", accept, "-", usage, "no key usage: the key may be used for anything", func(d *draft) { d.drop(idKeyUsage) }},
		{"ku-not-critical", accept, "-", usage, "it should be critical, and need not be", func(d *draft) { d.mark(idKeyUsage, nil) }},
		{"ku-decipher-only", accept, "-", usage, "keyAgreement and decipherOnly: two octets", put(idKeyUsage, bits(7, 0x08, 0x80))},
		{"ku-empty", nonconforming, "key-usage-empty", usage, "no bit set", put(idKeyUsage, bits(0))},
		{"ku-zeros", malformed, "key-usage-bits", "X.690 §11.2.2", "trailing zero bits", put(idKeyUsage, bits(0, 0x80))},
		{"ku-zero-octet", malformed, "key-usage-bits", "X.690 §11.2.2", "a trailing zero octet", put(idKeyUsage, bits(7, 0x80, 0x00))},
		{"ku-padding", malformed, "extension-der", "X.690 §11.2.1", "an unused bit that is set", put(idKeyUsage, bits(7, 0x81))},
		{"ku-unused-8", malformed, "extension-der", "X.690 §8.6.2.2", "eight unused bits", put(idKeyUsage, bits(8, 0x80))},
		{"ku-unknown-bit", nonconforming, "key-usage-unknown", usage, "bit 9, which is not defined", put(idKeyUsage, bits(6, 0x80, 0x40))},
		{"ku-cert-sign", nonconforming, "key-usage-ca", usage, "keyCertSign in a leaf", put(idKeyUsage, bits(2, 0x84))},
		{"ku-octets", malformed, "key-usage", usage, "an OCTET STRING", put(idKeyUsage, octets([]byte{0x80}))},
		{"ku-after", malformed, "extension-der", usage, "an element after it in the extension's value", put(idKeyUsage, join(bits(7, 0x80), null))},
		{"eku-missing", accept, "-", extended, "no extended key usage", func(d *draft) { d.drop(idExtKeyUsage) }},
		{"eku-critical", accept, "-", extended, "it may be critical", func(d *draft) { d.mark(idExtKeyUsage, isTrue) }},
		{"eku-any", accept, "-", extended, "any usage, not critical", put(idExtKeyUsage, seq(oid(idAnyUsage)))},
		{"eku-any-critical", nonconforming, "ext-key-usage-any", extended, "any usage, critical", func(d *draft) {
			d.put(idExtKeyUsage, seq(oid(idAnyUsage)))
			d.mark(idExtKeyUsage, isTrue)
		}},
		{"eku-empty", malformed, "ext-key-usage-empty", extended, "no usage", put(idExtKeyUsage, seq())},
		{"eku-string", malformed, "ext-key-usage", extended, "a usage that is no identifier", put(idExtKeyUsage, seq(printable("serverAuth")))},
		{"eku-after", malformed, "extension-der", extended, "an element after it in the extension's value", put(idExtKeyUsage, join(seq(oid(idServerAuth)), null))},
		{"eku-oid-padded", malformed, "extension-der", "X.690 §8.19.2", "an arc with leading zeros", put(idExtKeyUsage, seq(tlv(tagOID, []byte{0x2b, 0x80, 0x06})))},
		{"bc-missing", accept, "-", basic, "no basic constraints", func(d *draft) { d.drop(idBasicConstraints) }},
		{"bc-false", malformed, "basic-constraints-default", "X.690 §11.5", "cA FALSE is the default and must not be encoded", put(idBasicConstraints, seq(isFalse))},
		{"bc-path-length", nonconforming, "path-length-ca", basic, "a path length in a leaf", put(idBasicConstraints, seq(number(0)))},
		{"bc-trailing", malformed, "basic-constraints", basic, "a third element", put(idBasicConstraints, seq(isTrue, number(0), null))},
		{"bc-after", malformed, "extension-der", basic, "an element after it in the extension's value", put(idBasicConstraints, join(seq(), null))},
		{"bc-order", malformed, "basic-constraints", basic, "the path length before cA", put(idBasicConstraints, seq(number(0), isTrue))},
		{"bc-true-01", malformed, "extension-der", "X.690 §11.1", "TRUE that is not FF", put(idBasicConstraints, seq(unhex("010101")))},
		{"bc-set", malformed, "basic-constraints", basic, "a SET", put(idBasicConstraints, set())},
	}
}
