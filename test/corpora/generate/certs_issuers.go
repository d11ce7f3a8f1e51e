package main

import "strings"

// issuerCases are about what an intermediate CA certificate has to have.
func issuerCases() []certCase {
	const usage, basic = "RFC 5280 §4.2.1.3", "RFC 5280 §4.2.1.9"
	return []certCase{
		{"good", accept, "-", "RFC 5280", "nothing is wrong with it", none},
		{"no-path-length", accept, "-", basic, "no path length", func(d *draft) { d.put(idBasicConstraints, seq(isTrue)) }},
		{"cert-sign-alone", accept, "-", usage, "keyCertSign and no cRLSign", func(d *draft) { d.put(idKeyUsage, bits(2, 0x04)) }},
		{"subject-empty", nonconforming, "subject-empty-ca", "RFC 5280 §4.1.2.6", "a CA without a subject", func(d *draft) {
			d.subject = seq()
			d.extensions = append(d.extensions, extension{idSubjectAltName, isTrue, seq(dns("ca.corpus.test")), nil})
		}},
		{"bc-not-critical", nonconforming, "basic-constraints-critical", basic, "basic constraints that are not critical", func(d *draft) { d.mark(idBasicConstraints, nil) }},
		{"ku-missing", nonconforming, "key-usage-missing", usage, "no key usage", func(d *draft) {
			d.drop(idKeyUsage)
			d.put(idBasicConstraints, seq(isTrue))
		}},
		{"path-length-no-cert-sign", nonconforming, "path-length-ca", basic, "a path length without keyCertSign", func(d *draft) { d.put(idKeyUsage, bits(1, 0x02)) }},
		{"path-length-negative", malformed, "basic-constraints-path-length", basic, "a negative path length", func(d *draft) { d.put(idBasicConstraints, seq(isTrue, number(-1))) }},
		{"path-length-padded", malformed, "extension-der", "X.690 §8.3.2", "a padded path length", func(d *draft) { d.put(idBasicConstraints, seq(isTrue, unhex("02020000"))) }},
		{"ski-missing", nonconforming, "subject-key-id-missing", "RFC 5280 §4.2.1.2", "no subject key identifier", func(d *draft) { d.drop(idSubjectKeyID) }},
		{"aki-missing", nonconforming, "authority-key-id-missing", "RFC 5280 §4.2.1.1", "no authority key identifier", func(d *draft) { d.drop(idAuthorityKeyID) }},
		{"spiffe-trust-domain", accept, "-", "X509-SVID §4.1", "the SPIFFE ID of a trust domain", func(d *draft) { d.put(idSubjectAltName, seq(uri("spiffe://corpus.test"))) }},
	}
}

// rootCases are about self-signed certificates.
func rootCases() []certCase {
	return []certCase{
		{"good", accept, "-", "RFC 5280", "nothing is wrong with it", none},
		{"no-aki", accept, "-", "RFC 5280 §4.2.1.1", "a self-signed certificate may lack the authority key identifier", func(d *draft) { d.drop(idAuthorityKeyID) }},
		{"version-1", accept, "-", "RFC 5280 §6.1.1 (d)", "a trust anchor of version 1, as old ones are", func(d *draft) { d.version, d.extensions = nil, nil }},
		{"no-ski", nonconforming, "subject-key-id-missing", "RFC 5280 §4.2.1.2", "no subject key identifier", func(d *draft) { d.drop(idSubjectKeyID) }},
	}
}

// constraintCases are about name constraints.
func constraintCases() []certCase {
	const section = "RFC 5280 §4.2.1.10"
	constrain := func(value []byte) func(*draft) {
		return func(d *draft) { d.extensions = append(d.extensions, extension{idNameConstraints, isTrue, value, nil}) }
	}
	permitted := func(base []byte, distance ...[]byte) func(*draft) {
		return constrain(seq(explicit(0, seq(base, join(distance...)))))
	}
	cases := []certCase{
		{"nc-both", accept, "-", section, "a permitted and an excluded subtree", constrain(seq(explicit(0, seq(dns("corpus.test"))), explicit(1, seq(dns("secret.corpus.test")))))},
		{"nc-directory", accept, "-", section, "a directoryName", permitted(directory(seq(rdn(idOrganization, utf8String("Example")))))},
		{"nc-empty", malformed, "name-constraints-empty", section, "no constraint", constrain(seq())},
		{"nc-subtrees-empty", malformed, "name-constraints-subtree", section, "a list of no subtrees", constrain(seq(explicit(0)))},
		{"nc-trailing", malformed, "name-constraints", section, "a third field", constrain(seq(explicit(0, seq(dns("corpus.test"))), explicit(2, seq(dns("corpus.test")))))},
		{"nc-not-critical", nonconforming, "name-constraints-critical", section, "it has to be critical", func(d *draft) { d.put(idNameConstraints, seq(explicit(0, seq(dns("corpus.test"))))) }},
		{"nc-minimum-default", malformed, "name-constraints-subtree", "X.690 §11.5", "a minimum of zero is the default and must not be encoded", permitted(dns("corpus.test"), implicit(0, 0))},
		{"nc-minimum", malformed, "name-constraints-subtree", section, "a minimum of one", permitted(dns("corpus.test"), implicit(0, 1))},
		{"nc-maximum", malformed, "name-constraints-subtree", section, "a maximum", permitted(dns("corpus.test"), implicit(1, 3))},
	}
	for _, c := range []struct {
		name string
		verdict
		base []byte
		what string
	}{
		{"dns", accept, dns("corpus.test"), "a domain"},
		{"dns-all", accept, dns(""), "every domain"},
		{"ip", accept, ip(192, 0, 2, 0, 255, 255, 255, 0), "a network"},
		{"ip-all", accept, ip(make([]byte, 32)...), "every IPv6 address"},
		{"uri-host", accept, uri("corpus.test"), "the host of a URI"},
		{"uri-domain", accept, uri(".corpus.test"), "the domain of a URI"},
		{"email", accept, email("a@corpus.test"), "a mailbox"},
		{"email-host", accept, email("corpus.test"), "the host of a mailbox"},
		{"dns-space", malformed, dns("corpus .test"), "a blank in a domain"},
		{"ip-no-mask", malformed, ip(192, 0, 2, 0), "an address without a mask"},
		{"ip-mask-holes", malformed, ip(192, 0, 2, 0, 255, 0, 255, 0), "a mask with holes"},
		{"uri-scheme", malformed, uri("https://corpus.test/"), "a URI in the place of a host"},
		{"uri-address", malformed, uri(""), "an empty host"},
		{"email-broken", malformed, email("a b@corpus.test"), "a mailbox that is none"},
		{"unknown-kind", malformed, implicit(9, 1), "a kind of name that does not exist"},
	} {
		rule := ruleOf(c.verdict, "name-form")
		if c.name == "unknown-kind" {
			rule = "name-unknown"
		}
		cases = append(cases, certCase{"nc-" + c.name, c.verdict, rule, section, c.what, permitted(c.base)})
	}
	return append(cases, certCase{"nc-leaf", nonconforming, "ca-only", section, "name constraints in a certificate that is no CA's", func(d *draft) {
		notAuthority(d)
		constrain(seq(explicit(0, seq(dns("corpus.test")))))(d)
	}})
}

// notAuthority makes a leaf of a CA certificate.
func notAuthority(d *draft) {
	d.put(idKeyUsage, bits(7, 0x80))
	d.put(idBasicConstraints, seq())
}

// policyCases are about certificate policies and what constrains them.
func policyCases() []certCase {
	const policies, mappings, constraints, inhibit = "RFC 5280 §4.2.1.4", "RFC 5280 §4.2.1.5", "RFC 5280 §4.2.1.11", "RFC 5280 §4.2.1.14"
	add := func(id string, critical, value []byte) func(*draft) {
		return func(d *draft) { d.extensions = append(d.extensions, extension{id, critical, value, nil}) }
	}
	one, two := oid(idPrivate+".1"), oid(idPrivate+".2")
	qualified := func(parts ...[]byte) func(*draft) {
		return add(idPolicies, nil, seq(seq(one, seq(parts...))))
	}
	notice := func(parts ...[]byte) func(*draft) { return qualified(seq(oid(idNotice), seq(parts...))) }
	on := func(change func(*draft)) func(*draft) {
		return func(d *draft) {
			notAuthority(d)
			change(d)
		}
	}
	return []certCase{
		{"policies", accept, "-", policies, "two policies", add(idPolicies, nil, seq(seq(one), seq(two)))},
		{"policies-any", accept, "-", policies, "any policy", add(idPolicies, nil, seq(seq(oid(idAnyPolicy))))},
		{"policies-cps", accept, "-", policies, "a pointer to a practice statement", qualified(seq(oid(idCPS), text(tagIA5, "http://ca.corpus.test/cps")))},
		{"policies-notice", accept, "-", policies, "a notice", notice(seq(utf8String("Example"), seq(number(1))), utf8String("For tests."))},
		{"policies-empty", malformed, "policies-empty", policies, "no policy", add(idPolicies, nil, seq())},
		{"policies-twice", malformed, "policies-repeated", policies, "a policy stands twice", add(idPolicies, nil, seq(seq(one), seq(one)))},
		{"policies-qualifiers-empty", malformed, "policy-qualifiers", policies, "a list of no qualifiers", qualified()},
		{"policies-cps-utf8", malformed, "policy-qualifiers", policies, "a pointer that is a UTF8String", qualified(seq(oid(idCPS), utf8String("http://ca.corpus.test/cps")))},
		{"policies-trailing", malformed, "policy-qualifiers", policies, "a third element in a policy", add(idPolicies, nil, seq(seq(one, seq(seq(oid(idCPS), text(tagIA5, "http://a.test"))), null)))},
		{"policies-notice-long", nonconforming, "policy-text-length", policies, "a notice of 201 characters", notice(utf8String(strings.Repeat("n", 201)))},
		{"policies-notice-visible", nonconforming, "policy-text-type", policies, "a VisibleString, which a CA must not use", notice(text(tagVisible, "For tests."))},
		{"policies-notice-printable", malformed, "policy-notice", policies, "a PrintableString, which is no DisplayText", notice(printable("For tests."))},
		{"mappings", accept, "-", mappings, "a mapping", add(idPolicyMappings, isTrue, seq(seq(one, two)))},
		{"mappings-empty", malformed, "policy-mappings-empty", mappings, "no mapping", add(idPolicyMappings, isTrue, seq())},
		{"mappings-one", malformed, "policy-mappings", mappings, "a mapping of one policy", add(idPolicyMappings, isTrue, seq(seq(one)))},
		{"mappings-any", nonconforming, "policy-mappings-any", mappings, "a mapping to any policy", add(idPolicyMappings, isTrue, seq(seq(one, oid(idAnyPolicy))))},
		{"mappings-leaf", nonconforming, "ca-only", mappings, "mappings in a certificate that is no CA's", on(add(idPolicyMappings, isTrue, seq(seq(one, two))))},
		{"policy-constraints", accept, "-", constraints, "an explicit policy is required", add(idPolicyConstraints, isTrue, seq(implicit(0, 0)))},
		{"policy-constraints-empty", malformed, "policy-constraints-empty", constraints, "no constraint", add(idPolicyConstraints, isTrue, seq())},
		{"policy-constraints-negative", malformed, "policy-constraints", constraints, "a negative number", add(idPolicyConstraints, isTrue, seq(implicit(1, 0xff)))},
		{"policy-constraints-padded", malformed, "policy-constraints", "X.690 §8.3.2", "a padded number", add(idPolicyConstraints, isTrue, seq(implicit(1, 0, 1)))},
		{"policy-constraints-trailing", malformed, "policy-constraints", constraints, "a third field", add(idPolicyConstraints, isTrue, seq(implicit(0, 0), implicit(2, 0)))},
		{"policy-constraints-not-critical", nonconforming, "policy-constraints-critical", constraints, "it has to be critical", add(idPolicyConstraints, nil, seq(implicit(0, 0)))},
		{"policy-constraints-leaf", nonconforming, "ca-only", constraints, "policy constraints in a certificate that is no CA's", on(add(idPolicyConstraints, isTrue, seq(implicit(0, 0))))},
		{"inhibit-any", accept, "-", inhibit, "any policy is inhibited", add(idInhibitAny, isTrue, number(0))},
		{"inhibit-any-negative", malformed, "inhibit-any-policy", inhibit, "a negative number", add(idInhibitAny, isTrue, number(-1))},
		{"inhibit-any-not-critical", nonconforming, "inhibit-any-policy-critical", inhibit, "it has to be critical", add(idInhibitAny, nil, number(0))},
		{"inhibit-any-leaf", nonconforming, "ca-only", inhibit, "inhibit anyPolicy in a certificate that is no CA's", on(add(idInhibitAny, isTrue, number(0)))},
	}
}
