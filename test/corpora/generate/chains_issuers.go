package main

// linkChains are those whose certificates do not follow from each other.
func linkChains() []chainCase {
	const name, key, signature = "RFC 5280 §4.1.2.4", "RFC 5280 §4.2.1.1", "RFC 5280 §6.1.3 (a)(1)"
	other := newP256("another intermediate")
	return []chainCase{
		{"signed-by-another", signature, 1, "RFC 5280 §6.1.3", "the leaf was signed with another key", func(h *hierarchy) { h.leaf.key = other }},
		{"signed-another-text", signature, 1, "RFC 5280 §6.1.3", "the signature of another certificate", func(h *hierarchy) { h.leaf.signature = intermediateCA.key.sign([]byte("another")) }},
		{"signed-by-itself", signature, 1, "RFC 5280 §6.1.3", "the leaf was signed with its own key", func(h *hierarchy) { h.leaf.key = leafKey }},
		{"issuer-signed-by-another", signature, 2, "RFC 5280 §6.1.3", "the intermediate was signed with another key", func(h *hierarchy) { h.issuers[0].key = other }},
		{"issuer-sha1", "RFC 5280 §4.1.1.2", 2, "RFC 9155", "the intermediate was signed with SHA-1", func(h *hierarchy) {
			h.issuers[0].key = newEC("root", curve256, idP256, hash1, idECDSASHA1)
		}},
		{"issuer-name-other", name, 1, name, "the leaf names another issuer", func(h *hierarchy) { h.leaf.issuer = commonName("Corpus Another") }},
		{"issuer-name-type", name, 1, name, "the issuer's name in another string type", func(h *hierarchy) {
			h.leaf.issuer = seq(rdn(idOrganization, printable("Example")), rdn(idCommonName, printable("Corpus Intermediate")))
		}},
		{"issuer-name-case", name, 1, name, "the issuer's name in other letters", func(h *hierarchy) {
			h.leaf.issuer = seq(rdn(idOrganization, utf8String("EXAMPLE")), rdn(idCommonName, utf8String("Corpus Intermediate")))
		}},
		{"issuer-name-order", name, 1, name, "the issuer's name from behind", func(h *hierarchy) {
			h.leaf.issuer = seq(rdn(idCommonName, utf8String("Corpus Intermediate")), rdn(idOrganization, utf8String("Example")))
		}},
		{"issuer-key-id-other", key, 1, key, "the leaf has another authority key identifier", func(h *hierarchy) { h.leaf.put(idAuthorityKeyID, seq(implicit(0, keyID(rootCA.key)...))) }},
		{"issuer-key-id-cut", key, 1, key, "the authority key identifier is cut short", func(h *hierarchy) { h.leaf.put(idAuthorityKeyID, seq(implicit(0, keyID(intermediateCA.key)[:8]...))) }},
		{"issuer-renewed", signature, 1, "RFC 5280 §6.1.3", "an intermediate of the same name and identifier and another key", func(h *hierarchy) {
			h.issuers[0].spki = other.spki()
		}},
	}
}

// issuerChains are those with an issuer that must not issue, or not this.
func issuerChains() []chainCase {
	const basic, usage, validity = "RFC 5280 §4.2.1.9", "RFC 5280 §4.2.1.3", "RFC 5280 §6.1.3 (a)(2)"
	issuer := func(change func(*draft)) func(*hierarchy) {
		return func(h *hierarchy) { change(h.issuers[0]) }
	}
	add := func(id string, critical, value []byte) func(*hierarchy) {
		return issuer(func(d *draft) { d.extensions = append(d.extensions, extension{id, critical, value, nil}) })
	}
	anchor := func(change func(*draft)) func(*hierarchy) {
		return func(h *hierarchy) {
			root := rootDraft()
			change(root)
			h.anchors = [][]byte{root.sign()}
		}
	}
	return []chainCase{
		{"issuer-not-ca", basic, 2, basic, "the intermediate is no CA", issuer(func(d *draft) {
			d.put(idBasicConstraints, seq())
			d.put(idKeyUsage, bits(7, 0x80))
		})},
		{"issuer-no-constraints", basic, 2, basic, "the intermediate has no basic constraints", issuer(func(d *draft) { d.drop(idBasicConstraints) })},
		{"issuer-no-cert-sign", usage, 2, usage, "the intermediate may not sign certificates", issuer(func(d *draft) {
			d.put(idKeyUsage, bits(1, 0x02))
			d.put(idBasicConstraints, seq(isTrue))
		})},
		{"issuer-no-key-usage", usage, 2, usage, "the intermediate has no key usage", issuer(func(d *draft) {
			d.drop(idKeyUsage)
			d.put(idBasicConstraints, seq(isTrue))
		})},
		{"issuer-weak-key", "an issuer's key is strong", 2, "RFC 9325 §4.5", "the intermediate has an RSA key of 1024 bits", func(h *hierarchy) {
			a := authority{intermediateCA.name, rsa1024()}
			h.issuedBy(a)
			h.issuers = []*draft{authorityDraft(a, rootCA, 0)}
		}},
		{"issuer-version-1", "RFC 5280 §4.1.2.1", 2, "RFC 5280 §6.1.4 (k)", "an intermediate of version 1", func(h *hierarchy) {
			h.issuers[0].version, h.issuers[0].extensions = nil, nil
			h.anchors = [][]byte{rootWithoutKeyID()}
		}},
		{"issuer-no-key-id", "RFC 5280 §4.2.1.2", 2, "RFC 5280 §4.2.1.2", "the intermediate has no subject key identifier, and the leaf no authority key identifier", func(h *hierarchy) {
			h.issuers[0].drop(idSubjectKeyID)
		}},
		{"issuer-expired", validity, 2, "RFC 5280 §6.1.3", "the intermediate has expired", func(h *hierarchy) {
			h.issuers[0].validity = times(authorityFrom, "300615115959Z")
		}},
		{"issuer-not-yet", validity, 2, "RFC 5280 §6.1.3", "the intermediate is not yet valid", func(h *hierarchy) {
			h.issuers[0].validity = times("300615120001Z", authorityTo)
		}},
		{"issuer-ends-first", "a leaf outlives no issuer", 1, "RFC 5280 §6.1.3", "the leaf ends a second after the intermediate", issuer(func(d *draft) { d.validity = times(authorityFrom, "300616115959Z") })},
		{"issuer-starts-later", "a leaf is not older than its issuers", 1, "RFC 5280 §6.1.3", "the leaf starts a second before the intermediate", issuer(func(d *draft) { d.validity = times("300615110001Z", authorityTo) })},
		{"path-length-intermediate", basic, 3, basic, "an intermediate with path length 0 over another", func(h *hierarchy) {
			h.issuedBy(subordinateCA)
			h.issuers = []*draft{authorityDraft(subordinateCA, intermediateCA, 0), intermediateDraft()}
		}},
		{"path-length-root", basic, 3, basic, "a root with path length 0 over an intermediate", func(h *hierarchy) { h.anchors = [][]byte{authorityDraft(rootCA, rootCA, 0).sign()} }},
		{"anchor-expired", validity, 3, "RFC 5280 §6.1.3", "the anchor has expired", anchor(func(d *draft) { d.validity = times(authorityFrom, "300615115959Z") })},
		{"anchor-ends-first", "a leaf outlives no issuer", 1, "RFC 5280 §6.1.3", "the leaf ends a second after the anchor", anchor(func(d *draft) { d.validity = times(authorityFrom, "300616115959Z") })},
		{"anchor-no-cert-sign", usage, 3, usage, "the anchor may not sign certificates", anchor(func(d *draft) { d.put(idKeyUsage, bits(1, 0x02)) })},
		{"constraint-dns", "RFC 5280 §4.2.1.10", 1, "RFC 5280 §4.2.1.10", "names outside of what the intermediate may certify", func(h *hierarchy) {
			h.serve()
			add(idNameConstraints, isTrue, seq(explicit(0, seq(dns("other.test")))))(h)
		}},
		{"constraint-excluded", "RFC 5280 §4.2.1.10", 1, "RFC 5280 §4.2.1.10", "a name that the intermediate must not certify", func(h *hierarchy) {
			h.serve()
			add(idNameConstraints, isTrue, seq(explicit(1, seq(dns("b.corpus.test")))))(h)
		}},
		{"constraint-ip", "RFC 5280 §4.2.1.10", 1, "RFC 5280 §4.2.1.10", "an address outside of the intermediate's network", func(h *hierarchy) {
			h.serve()
			add(idNameConstraints, isTrue, seq(explicit(0, seq(ip(198, 51, 100, 0, 255, 255, 255, 0)))))(h)
		}},
		{"constraint-uri", "RFC 5280 §4.2.1.10", 1, "RFC 5280 §4.2.1.10", "a SPIFFE ID of another trust domain than the intermediate's", add(idNameConstraints, isTrue, seq(explicit(0, seq(uri("other.test")))))},
		{"constraint-anchor", "RFC 5280 §4.2.1.10", 1, "RFC 5937 §3.2", "a SPIFFE ID of another trust domain than the anchor's", anchor(func(d *draft) {
			d.extensions = append(d.extensions, extension{idNameConstraints, isTrue, seq(explicit(0, seq(uri("other.test")))), nil})
		})},
		{"purpose-of-issuer", "RFC 5280 §4.2.1.12", 2, "RFC 5280 §4.2.1.12", "an intermediate for clients over a leaf for servers", add(idExtKeyUsage, nil, seq(oid(idClientAuth)))},
		{"policy-required", "RFC 5280 §6.1.3 (f)", 1, "RFC 5280 §4.2.1.11", "an intermediate that requires a policy over a leaf without one", add(idPolicyConstraints, isTrue, seq(implicit(0, 0)))},
	}
}

// rootWithoutKeyID is the root whose subject key identifier, which a version 1 certificate cannot refer to, is empty of one.
func rootWithoutKeyID() []byte {
	root := rootDraft()
	root.drop(idSubjectKeyID)
	root.drop(idAuthorityKeyID)
	return root.sign()
}

// shapeChains are those that are not one path from a leaf to a pinned anchor.
func shapeChains() []chainCase {
	const ends, below, twice, link = "a chain ends at a pinned trust anchor", "a chain ends below its trust anchor", "no certificate stands twice", "RFC 5280 §4.1.2.4"
	sent := func(sent func(leaf []byte, issuers [][]byte) [][]byte) func(*hierarchy) {
		return func(h *hierarchy) { h.sent = sent }
	}
	foreign := authorityDraft(subordinateCA, otherCA, 0).sign()
	return []chainCase{
		{"intermediate-missing", ends, 1, "RFC 5280 §6.1", "the intermediate is missing", sent(func(leaf []byte, _ [][]byte) [][]byte { return [][]byte{leaf} })},
		{"intermediate-twice", twice, 3, "RFC 5280 §6.1", "the intermediate stands twice", sent(func(leaf []byte, issuers [][]byte) [][]byte { return [][]byte{leaf, issuers[0], issuers[0]} })},
		{"root-included", below, 3, "RFC 5280 §6.1", "the trust anchor is part of the chain", sent(func(leaf []byte, issuers [][]byte) [][]byte { return [][]byte{leaf, issuers[0], rootDraft().sign()} })},
		{"issuer-first", "the serial is the reserved one", 1, "RFC 5280 §6.1", "the intermediate stands first", sent(func(leaf []byte, issuers [][]byte) [][]byte { return [][]byte{issuers[0], leaf} })},
		{"foreign-last", ends, 3, "RFC 5280 §6.1", "an intermediate of another root after it", sent(func(leaf []byte, issuers [][]byte) [][]byte { return [][]byte{leaf, issuers[0], foreign} })},
		{"foreign-between", link, 2, "RFC 5280 §6.1", "an intermediate of another root in it", sent(func(leaf []byte, issuers [][]byte) [][]byte { return [][]byte{leaf, foreign, issuers[0]} })},
		{"two-intermediates-swapped", ends, 3, "RFC 5280 §6.1", "two intermediates in the wrong order", func(h *hierarchy) {
			h.issuedBy(subordinateCA)
			h.issuers = []*draft{authorityDraft(subordinateCA, intermediateCA, 0), authorityDraft(intermediateCA, rootCA, 1)}
			h.sent = func(leaf []byte, issuers [][]byte) [][]byte { return [][]byte{leaf, issuers[1], issuers[0]} }
		}},
		{"leaf-twice", twice, 2, "RFC 5280 §6.1", "the leaf stands twice", sent(func(leaf []byte, issuers [][]byte) [][]byte { return [][]byte{leaf, leaf, issuers[0]} })},
		{"anchor-other", ends, 2, "RFC 5280 §6.1", "another root is trusted", func(h *hierarchy) { h.anchors = [][]byte{authorityDraft(otherCA, otherCA, -1).sign()} }},
		{"anchor-other-same-name", ends, 2, "RFC 5280 §6.1", "another root of the same name is trusted", func(h *hierarchy) { h.anchors = [][]byte{authorityDraft(strangerCA, strangerCA, -1).sign()} }},
		{"anchor-other-same-name-and-id", "RFC 5280 §6.1.3 (a)(1)", 2, "RFC 5280 §6.1.3", "another root of the same name and identifier is trusted", func(h *hierarchy) {
			root := authorityDraft(strangerCA, strangerCA, -1)
			root.put(idSubjectKeyID, octets(keyID(rootCA.key)))
			root.put(idAuthorityKeyID, seq(implicit(0, keyID(rootCA.key)...)))
			h.anchors = [][]byte{root.sign()}
		}},
		{"self-signed", ends, 1, "RFC 5280 §6.1", "a leaf that signed itself", func(h *hierarchy) {
			h.issuedBy(authority{commonName("leaf"), leafKey})
			h.leaf.subject, h.want.Subject = commonName("leaf"), commonName("leaf")
			h.leaf.mark(idSubjectAltName, nil)
			h.issuers = nil
		}},
		{"loop", below, 2, "RFC 5280 §6.1", "two authorities that certify each other, of which one is trusted: its certificate stands twice in the path", func(h *hierarchy) {
			h.issuers = []*draft{authorityDraft(intermediateCA, subordinateCA, -1), authorityDraft(subordinateCA, intermediateCA, -1)}
			h.anchors = [][]byte{h.issuers[0].sign()}
		}},
	}
}
