package chain_test

import "testing"

// with sets an extension, written in hexadecimal.
func with(oid string, critical []byte, value string) func(*draft) {
	return func(d *draft) { d.set(oid, critical, unhex(value)) }
}

func TestExtensions(t *testing.T) {
	checkDrafts(t, leafDraft, []draftCase{
		{"an unknown extension", with(oidPrivate, nil, "0500"), "", 0},
		{"an unknown extension that is no DER", with(oidPrivate, nil, "ff"), "", 0},
		{"an unknown critical extension", with(oidPrivate, isTrue, "0500"), "extension-critical", malformed},
		{"critical FALSE", with(oidPrivate, isFalse, "0500"), "extension-default", malformed},
		{"critical 01", with(oidPrivate, unhex("010101"), "0500"), "der", malformed},
		{"something after the value", func(d *draft) { d.get(oidBasic).tail = null }, "extension-fields", malformed},
		{"one twice", func(d *draft) { d.extensions = append(d.extensions, *d.get(oidEKU)) }, "extension-repeated", malformed},
		{"an unknown one twice", func(d *draft) {
			d.extensions = append(d.extensions, draftExtension{oidPrivate, nil, null, nil}, draftExtension{oidPrivate, nil, null, nil})
		}, "extension-repeated", malformed},
		{"a value that is a string", func(d *draft) {
			d.wrap = func(list []byte) []byte { return tlv(0xa3, seq(list, seq(text(0x06, oidPrivate), utf8("a")))) }
		}, "extension-fields", malformed},
		{"65 of them", func(d *draft) {
			for i := range 65 {
				d.extensions = append(d.extensions, draftExtension{oidPrivate + string(rune('0'+i)), nil, null, nil})
			}
		}, "extensions-count", malformed},
	})
}

func TestUsages(t *testing.T) {
	checkDrafts(t, leafDraft, []draftCase{
		{"a key usage that is not critical", with(oidKeyUsage, nil, "03020780"), "", 0},
		{"all nine key usages but those of a CA", with(oidKeyUsage, isTrue, "030307 8880"), "", 0},
		{"no key usage", func(d *draft) { d.drop(oidKeyUsage) }, "", 0},
		{"a key usage without bits", with(oidKeyUsage, isTrue, "030100"), "key-usage-empty", nonconforming},
		{"a key usage with trailing zero bits", with(oidKeyUsage, isTrue, "03020080"), "key-usage-bits", malformed},
		{"a key usage with a trailing zero octet", with(oidKeyUsage, isTrue, "0303078000"), "key-usage-bits", malformed},
		{"a key usage of zero bits", with(oidKeyUsage, isTrue, "03020700"), "key-usage-bits", malformed},
		{"a key usage with padding set", with(oidKeyUsage, isTrue, "03020781"), "extension-der", malformed},
		{"a tenth key usage", with(oidKeyUsage, isTrue, "030306 8040"), "key-usage-unknown", nonconforming},
		{"something after the key usage", with(oidKeyUsage, isTrue, "03020780 0500"), "extension-der", malformed},
		{"a key usage that is no BIT STRING", with(oidKeyUsage, isTrue, "04020780"), "key-usage", malformed},
		{"an EC key that enciphers", with(oidKeyUsage, isTrue, "030205a0"), "key-usage-algorithm", nonconforming},
		{"a leaf that signs certificates", with(oidKeyUsage, isTrue, "03020284"), "key-usage-ca", nonconforming},
		{"no extended key usage", with(oidEKU, nil, "3000"), "ext-key-usage-empty", malformed},
		{"an extended key usage that is a number", with(oidEKU, nil, "3003020101"), "ext-key-usage", malformed},
		{"any extended key usage", with(oidEKU, nil, "300606 04 551d2500"), "", 0},
		{"any extended key usage, critical", with(oidEKU, isTrue, "300606 04 551d2500"), "ext-key-usage-any", nonconforming},
		{"a critical extended key usage", with(oidEKU, isTrue, "300a06082b06010505070301"), "", 0},
		{"no basic constraints", func(d *draft) { d.drop(oidBasic) }, "", 0},
		{"cA FALSE", with(oidBasic, isTrue, "3003010100"), "basic-constraints-default", malformed},
		{"something after the basic constraints", with(oidBasic, isTrue, "3000 0500"), "extension-der", malformed},
		{"something in the basic constraints", with(oidBasic, isTrue, "30020500"), "basic-constraints", malformed},
		{"a path length without cA", with(oidBasic, isTrue, "3003020100"), "path-length-ca", nonconforming},
		{"a negative path length", with(oidBasic, isTrue, "30060101ff0201ff"), "basic-constraints-path-length", malformed},
	})
	checkDrafts(t, caDraft, []draftCase{
		{"no path length", with(oidBasic, isTrue, "30030101ff"), "", 0},
		{"basic constraints that are not critical", with(oidBasic, nil, "30030101ff"), "basic-constraints-critical", nonconforming},
		{"no key usage", func(d *draft) { d.drop(oidKeyUsage); d.set(oidBasic, isTrue, unhex("30030101ff")) }, "key-usage-missing", nonconforming},
		{"a path length without keyCertSign", with(oidKeyUsage, isTrue, "03020102"), "path-length-ca", nonconforming},
		{"no subject key identifier", func(d *draft) { d.drop(oidSKI) }, "subject-key-id-missing", nonconforming},
	})
}

func TestKeyIdentifiers(t *testing.T) {
	checkDrafts(t, leafDraft, []draftCase{
		{"no subject key identifier in a leaf", func(d *draft) { d.drop(oidSKI) }, "", 0},
		{"a critical subject key identifier", with(oidSKI, isTrue, "040101"), "extension-critical", nonconforming},
		{"an empty subject key identifier", with(oidSKI, nil, "0400"), "subject-key-id-empty", nonconforming},
		{"a subject key identifier that is a SEQUENCE", with(oidSKI, nil, "3000"), "subject-key-id", malformed},
		{"no authority key identifier", func(d *draft) { d.drop(oidAKI) }, "authority-key-id-missing", nonconforming},
		{"no authority key identifier, self-issued", func(d *draft) { d.drop(oidAKI); d.issuer = d.subject }, "", 0},
		{"an empty authority key identifier", with(oidAKI, nil, "3000"), "authority-key-id-missing", nonconforming},
		{"a critical authority key identifier", with(oidAKI, isTrue, "3003800101"), "extension-critical", nonconforming},
		{"a constructed keyIdentifier", with(oidAKI, nil, "3005a003040101"), "authority-key-id", malformed},
		{"something in the authority key identifier", with(oidAKI, nil, "30058001010500"), "authority-key-id", malformed},
		{"an issuer and a serial", with(oidAKI, nil, "300b 800101 a103820161 820101"), "", 0},
		{"an issuer alone", with(oidAKI, nil, "3008 800101 a103820161"), "authority-key-id-pair", malformed},
		{"a serial alone", with(oidAKI, nil, "3006 800101 820101"), "authority-key-id-pair", malformed},
		{"a serial with leading zeros", with(oidAKI, nil, "300c 800101 a103820161 82020001"), "authority-key-id-serial", malformed},
		{"an empty issuer", with(oidAKI, nil, "3008 800101 a100 820101"), "names-empty", malformed},
	})
}

func TestPolicies(t *testing.T) {
	const (
		policy = "06062b0601040101"
		cps    = "301606082b06010505070201160a687474703a2f2f612f62"
	)
	notice := func(tag byte, value string) func(*draft) {
		return func(d *draft) {
			qualifier := seq(unhex("06082b06010505070202"), seq(text(tag, value)))
			d.set(oidPolicies, nil, seq(seq(unhex(policy), seq(qualifier))))
		}
	}
	checkDrafts(t, leafDraft, []draftCase{
		{"a policy", with(oidPolicies, nil, "300a3008"+policy), "", 0},
		{"a policy with a pointer", with(oidPolicies, nil, "30243022"+policy+"3018"+cps), "", 0},
		{"a policy with a notice", notice(0x0c, "hello"), "", 0},
		{"a notice that is a VisibleString", notice(0x1a, "hello"), "policy-text-type", nonconforming},
		{"a notice that is a PrintableString", notice(0x13, "hello"), "policy-notice", malformed},
		{"no policies", with(oidPolicies, nil, "3000"), "policies-empty", malformed},
		{"a policy twice", with(oidPolicies, nil, "30143008"+policy+"3008"+policy), "policies-repeated", malformed},
		{"no qualifiers", with(oidPolicies, nil, "300c300a"+policy+"3000"), "policy-qualifiers", malformed},
		{"something after the qualifiers", with(oidPolicies, nil, "30263024"+policy+"3018"+cps+"0500"), "policy-qualifiers", malformed},
		{"something that is no policy", with(oidPolicies, nil, "30020500"), "policies", malformed},
		{"inhibit anyPolicy of a leaf", with(oidInhibit, isTrue, "020100"), "ca-only", nonconforming},
		{"policy constraints of a leaf", with(oidConstraints, isTrue, "3003800100"), "ca-only", nonconforming},
	})
	checkDrafts(t, caDraft, []draftCase{
		{"policy mappings", with(oidMappings, isTrue, "300a 3008 06022a03 06022a04"), "", 0},
		{"no policy mappings", with(oidMappings, isTrue, "3000"), "policy-mappings-empty", malformed},
		{"a policy mapping of three", with(oidMappings, isTrue, "300e 300c 06022a03 06022a04 06022a05"), "policy-mappings", malformed},
		{"a mapping from anyPolicy", with(oidMappings, isTrue, "300c 300a 0604551d2000 06022a04"), "policy-mappings-any", nonconforming},
		{"policy constraints", with(oidConstraints, isTrue, "3006 800100 810100"), "", 0},
		{"policy constraints that are not critical", with(oidConstraints, nil, "3003 800100"), "policy-constraints-critical", nonconforming},
		{"no policy constraints", with(oidConstraints, isTrue, "3000"), "policy-constraints-empty", malformed},
		{"a negative policy constraint", with(oidConstraints, isTrue, "3003 8001ff"), "policy-constraints", malformed},
		{"a policy constraint with leading zeros", with(oidConstraints, isTrue, "3004 80020001"), "policy-constraints", malformed},
		{"something in the policy constraints", with(oidConstraints, isTrue, "3006 800100 820100"), "policy-constraints", malformed},
		{"inhibit anyPolicy", with(oidInhibit, isTrue, "020100"), "", 0},
		{"inhibit anyPolicy that is not critical", with(oidInhibit, nil, "020100"), "inhibit-any-policy-critical", nonconforming},
		{"a negative inhibit anyPolicy", with(oidInhibit, isTrue, "0201ff"), "inhibit-any-policy", malformed},
	})
}

func TestNameConstraints(t *testing.T) {
	permit := func(base []byte, rest ...[]byte) func(*draft) {
		return func(d *draft) { d.set(oidNC, isTrue, seq(tlv(0xa0, seq(append([][]byte{base}, rest...)...)))) }
	}
	checkDrafts(t, caDraft, []draftCase{
		{"a domain", permit(dns("example.test")), "", 0},
		{"every domain", permit(dns("")), "", 0},
		{"hosts below a domain", permit(uri(".example.test")), "", 0},
		{"a mailbox", permit(text(0x81, "a@example.test")), "", 0},
		{"an IPv4 range", permit(unhex("8708 c0000200 ffffff00")), "", 0},
		{"an IPv6 range", permit(unhex("8720 20010db8000000000000000000000000 ffffffff000000000000000000000000")), "", 0},
		{"a directory name", permit(tlv(0xa4, seq(rdn(oidOrganization, utf8("a"))))), "", 0},
		{"excluded and permitted", with(oidNC, isTrue, "300e a0053003820161 a1053003820162"), "", 0},
		{"not critical", with(oidNC, nil, "3007 a0053003820161"), "name-constraints-critical", nonconforming},
		{"no constraints", with(oidNC, isTrue, "3000"), "name-constraints-empty", malformed},
		{"an empty list", with(oidNC, isTrue, "3009 a0053003820161 a100"), "name-constraints-subtree", malformed},
		{"something after them", with(oidNC, isTrue, "3009 a0053003820161 0500"), "name-constraints", malformed},
		{"the wrong order", with(oidNC, isTrue, "300e a1053003820161 a0053003820162"), "name-constraints", malformed},
		{"an address alone", permit(unhex("8704 c0000200")), "name-form", malformed},
		{"a mask with holes", permit(unhex("8708 c0000200 ff00ff00")), "name-form", malformed},
		{"a domain with a blank", permit(dns("a b")), "name-form", malformed},
		{"a URI as a host", permit(uri("https://example.test")), "name-form", malformed},
		{"a minimum of zero", permit(dns("example.test"), unhex("800100")), "name-constraints-subtree", malformed},
		{"a maximum", permit(dns("example.test"), unhex("810101")), "name-constraints-subtree", malformed},
	})
	checkDrafts(t, leafDraft, []draftCase{
		{"in a leaf", with(oidNC, isTrue, "3007 a0053003820161"), "ca-only", nonconforming},
	})
}

func TestDistributionPoints(t *testing.T) {
	const fullName = "a00d a00b 8609 687474703a2f2f612f"
	at := uri("http://a.test/crl")
	point := func(parts ...[]byte) func(*draft) { return func(d *draft) { d.set(oidCRLDP, nil, seq(seq(parts...))) } }
	full := tlv(0xa0, tlv(0xa0, at))
	checkDrafts(t, leafDraft, []draftCase{
		{"a point", point(full), "", 0},
		{"an LDAP location without a host", point(tlv(0xa0, tlv(0xa0, uri("ldap:///CN=a?certificateRevocationList")))), "", 0},
		{"reasons", point(full, unhex("81020640")), "", 0},
		{"an issuer", point(tlv(0xa2, tlv(0xa4, seq(rdn(oidCommonName, utf8("a")))))), "", 0},
		{"no points", with(oidCRLDP, nil, "3000"), "distribution-points-empty", malformed},
		{"an empty point", point(), "distribution-point-empty", malformed},
		{"reasons alone", point(unhex("81020640")), "distribution-point-reasons", nonconforming},
		{"reasons with trailing zeros", point(full, unhex("81020040")), "distribution-point-reasons", malformed},
		{"reasons that are no BIT STRING", point(full, unhex("8100")), "distribution-point-reasons", malformed},
		{"something in a point", point(full, null), "distribution-point", malformed},
		{"a point that is a string", with(oidCRLDP, nil, "30030c0161"), "distribution-points", malformed},
		{"an empty full name", point(tlv(0xa0, tlv(0xa0))), "names-empty", malformed},
		{"an empty name", point(tlv(0xa0)), "distribution-point-name", malformed},
		{"a full and a relative name", point(tlv(0xa0, tlv(0xa0, at), tlv(0xa1, seq(text(6, oidCommonName), utf8("a"))))), "distribution-point-name", malformed},
		{"a relative name", point(tlv(0xa0, tlv(0xa1, seq(text(6, oidCommonName), utf8("a"))))), "distribution-point-name-relative", nonconforming},
		{"a relative URI", point(tlv(0xa0, tlv(0xa0, uri("/crl")))), "name-uri", malformed},
		{"a freshest CRL", with(oidFreshest, nil, "3011 300f"+fullName), "", 0},
		{"a critical freshest CRL", with(oidFreshest, isTrue, "3011 300f"+fullName), "extension-critical", nonconforming},
	})
}

func TestInformationAccess(t *testing.T) {
	access := func(oid string, critical []byte, parts ...[]byte) func(*draft) {
		return func(d *draft) { d.set(oid, critical, seq(seq(parts...))) }
	}
	ocsp, at := unhex("06082b06010505073001"), uri("http://ocsp.example.test/")
	checkDrafts(t, leafDraft, []draftCase{
		{"an OCSP responder", access(oidAIA, nil, ocsp, at), "", 0},
		{"a directory name", access(oidAIA, nil, ocsp, tlv(0xa4, seq(rdn(oidCommonName, utf8("a"))))), "", 0},
		{"a subject's service", access(oidSIA, nil, unhex("06082b06010505073005"), at), "", 0},
		{"a critical one", access(oidAIA, isTrue, ocsp, at), "extension-critical", nonconforming},
		{"two locations", access(oidAIA, nil, ocsp, at, at), "info-access", malformed},
		{"no method", access(oidAIA, nil, at), "info-access", malformed},
		{"no description", with(oidAIA, nil, "3000"), "info-access-empty", malformed},
		{"a location with a blank", access(oidAIA, nil, ocsp, uri("http://a b/")), "name-uri", malformed},
		{"an issuer's names", func(d *draft) { d.set(oidIAN, nil, names(dns("ca.example.test"))) }, "", 0},
		{"no issuer's names", with(oidIAN, nil, "3000"), "ian-empty", malformed},
	})
}
