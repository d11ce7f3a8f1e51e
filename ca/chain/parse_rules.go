package chain

// acrossFields applies the rules that tie fields to each other, once all of them have been read.
func (in *inspection) acrossFields() {
	in.subjectRules()
	in.issuerRules()
	in.identifierRules()
	in.spiffeRules()
	if in.key == keyNoEncipherment && in.usage.enciphers {
		in.add(Nonconforming, "key-usage-algorithm", "RFC 8813 §3, RFC 9295 §3",
			"the key usage allows encipherment, which the key's algorithm cannot do")
	}
}

func (in *inspection) subjectRules() {
	if !in.subjectEmpty {
		return
	}
	switch {
	case !in.names.present:
		in.add(Malformed, "subject-empty", "RFC 5280 §4.1.2.6",
			"the subject is empty and there is no subject alternative name: the certificate names nobody")
	case !in.names.critical:
		in.add(Nonconforming, "san-critical", "RFC 5280 §4.2.1.6",
			"the subject is empty, so the subject alternative name extension has to be critical")
	}
	if in.usage.ca {
		in.add(Nonconforming, "subject-empty-ca", "RFC 5280 §4.1.2.6", "the subject of a CA certificate has to be populated")
	}
}

// issuerRules holds what a certificate may do against what it is.
func (in *inspection) issuerRules() {
	u := in.usage
	if u.certSign && !u.ca {
		in.add(Nonconforming, "key-usage-ca", "RFC 5280 §4.2.1.3",
			"the key usage allows keyCertSign, but the certificate is not a CA certificate")
	}
	if u.pathLength && !(u.ca && u.certSign) {
		in.add(Nonconforming, "path-length-ca", "RFC 5280 §4.2.1.9", "there is a path length without cA and keyCertSign")
	}
	if u.ca {
		if !u.constraintsMarks {
			in.add(Nonconforming, "basic-constraints-critical", "RFC 5280 §4.2.1.9",
				"the basic constraints of a CA certificate have to be critical")
		}
		if !u.hasKeyUsage {
			in.add(Nonconforming, "key-usage-missing", "RFC 5280 §4.2.1.3", "a CA certificate has to have a key usage")
		}
		return
	}
	for _, only := range [...]struct {
		present       bool
		name, section string
	}{
		{in.constraints.name, "name constraints", "RFC 5280 §4.2.1.10"},
		{in.constraints.policy, "policy constraints", "RFC 5280 §4.2.1.11"},
		{in.constraints.mappings, "policy mappings", "RFC 5280 §4.2.1.5"},
		{in.constraints.inhibit, "inhibit anyPolicy", "RFC 5280 §4.2.1.14"},
	} {
		if only.present {
			in.add(Nonconforming, "ca-only", only.section, "the %s extension is for CA certificates, and this is none", only.name)
		}
	}
}

func (in *inspection) identifierRules() {
	if !in.identifiers.authorityKey && !in.selfIssued {
		in.add(Nonconforming, "authority-key-id-missing", "RFC 5280 §4.2.1.1",
			"there is no authority key identifier with a keyIdentifier, which only a self-signed certificate may lack")
	}
	if in.usage.ca && !in.identifiers.subjectKey {
		in.add(Nonconforming, "subject-key-id-missing", "RFC 5280 §4.2.1.2", "a CA certificate has to have a subject key identifier")
	}
}

// spiffeRules applies those of the X.509-SVID specification that are about names alone; usages are for the checker of a chain.
func (in *inspection) spiffeRules() {
	if in.names.spiffe == 0 {
		return
	}
	if in.names.uris != 1 {
		in.add(Nonconforming, "spiffe-one-uri", "X509-SVID §2",
			"a certificate with a SPIFFE ID has to have exactly one URI, this one has %d", in.names.uris)
	}
	if in.names.noPath && !in.usage.ca {
		in.add(Nonconforming, "spiffe-path", "X509-SVID §4.1", "the SPIFFE ID of a leaf has to have a path; a trust domain alone names a CA")
	}
}
