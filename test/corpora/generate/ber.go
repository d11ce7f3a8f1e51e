package main

import "slices"

// berCase is a certificate in some encoding. The strict reader takes DER only; the tolerant one takes BER outside tbsCertificate.
type berCase struct {
	name             string
	strict, tolerant string
	der              string // the case that it is after normalisation
	section          string // of X.690, that the refusal names
	what             string
	encoding         []byte
}

// parts are the three elements of a certificate.
type parts struct{ tbs, algorithm, signature []byte }

func (d *draft) parts() parts {
	_, contents := split(d.sign())
	var p parts
	p.tbs, contents = first(contents)
	p.algorithm, p.signature = first(contents)
	return p
}

func (p parts) list() []byte { return join(p.tbs, p.algorithm, p.signature) }

// long returns an element whose length takes the given number of octets in the long form.
func long(tag byte, octets int, contents []byte) []byte {
	n := len(contents)
	encoded := make([]byte, octets)
	for i := octets - 1; i >= 0; i-- {
		encoded[i] = byte(n)
		n >>= 8
	}
	return join([]byte{tag, 0x80 | byte(octets)}, encoded, contents)
}

// indefinite returns an element of indefinite length.
func indefinite(tag byte, contents ...[]byte) []byte {
	return join([]byte{tag, 0x80}, join(contents...), []byte{0, 0})
}

// contents returns what an element holds.
func contents(element []byte) []byte {
	_, c := split(element)
	return c
}

// berCases returns the corpus of encodings.
func berCases() *folder {
	f := newFolder("ber", "strict", "tolerant", "der", "section", "what")
	for _, c := range slices.Concat(outsideCases(), insideCases(), brokenCases()) {
		der := c.der
		if der == "" {
			der = "-"
		} else {
			der += ".der"
		}
		f.add(c.name+".der", c.encoding, c.strict, c.tolerant, der, c.section, c.what)
	}
	return f
}

// outsideCases are BER outside of what is signed, in which readers agree.
func outsideCases() []berCase {
	ec := leafDraft().parts()
	pkcs1 := leafDraft()
	pkcs1.key = rsa2048()
	rsa := pkcs1.parts()
	pss := leafDraft()
	pss.key = rsa2048().withPSS(hash256, 32, pssIdentifier(pssFields(idSHA256, 32)))
	pssParts := pss.parts()
	ecdsaID, value := contents(ec.algorithm), contents(ec.signature)
	algorithm := func(encoding []byte) []byte { return seq(ec.tbs, encoding, ec.signature) }
	signature := func(encoding []byte) []byte { return seq(ec.tbs, ec.algorithm, encoding) }
	rsaAlgorithm := func(encoding []byte) []byte { return seq(rsa.tbs, encoding, rsa.signature) }
	fields := join(indefinite(0xa0, indefinite(tagSequence, oid(idSHA256), null)), indefinite(0xa1, indefinite(tagSequence, oid(idMGF1),
		indefinite(tagSequence, oid(idSHA256), null))), indefinite(0xa2, long(tagInteger, 2, []byte{32})))
	tolerated := func(name, der, what string, encoding []byte) berCase {
		return berCase{name, "reject", "accept", der, "-", what, encoding}
	}
	return []berCase{
		{"der-ec", "accept", "accept", "der-ec", "-", "DER", seq(ec.list())},
		{"der-rsa", "accept", "accept", "der-rsa", "-", "DER, with NULL parameters", seq(rsa.list())},
		{"der-pss", "accept", "accept", "der-pss", "-", "DER, with nested parameters", seq(pssParts.list())},
		tolerated("outer-length-3", "der-ec", "an octet too many in the outer length", long(tagSequence, 3, ec.list())),
		tolerated("outer-length-4", "der-ec", "two octets too many in the outer length", long(tagSequence, 4, ec.list())),
		tolerated("outer-indefinite", "der-ec", "an indefinite outer length", indefinite(tagSequence, ec.list())),
		tolerated("outer-indefinite-rsa", "der-rsa", "an indefinite outer length", indefinite(tagSequence, rsa.list())),
		tolerated("algorithm-length", "der-ec", "the length of signatureAlgorithm in long form", algorithm(long(tagSequence, 1, ecdsaID))),
		tolerated("algorithm-length-4", "der-ec", "the same in four octets", algorithm(long(tagSequence, 4, ecdsaID))),
		tolerated("algorithm-indefinite", "der-ec", "signatureAlgorithm of indefinite length", algorithm(indefinite(tagSequence, ecdsaID))),
		tolerated("algorithm-oid-length", "der-ec", "the length of its identifier in long form", algorithm(seq(long(tagOID, 1, contents(ecdsaID))))),
		tolerated("algorithm-null-length", "der-rsa", "the length of its NULL in long form", rsaAlgorithm(seq(oid(idSHA256RSA), long(0x05, 1, nil)))),
		tolerated("algorithm-nested", "der-pss", "indefinite lengths in its parameters, down to the last", seq(pssParts.tbs, indefinite(tagSequence, oid(idPSS),
			indefinite(tagSequence, fields)), pssParts.signature)),
		tolerated("signature-length", "der-ec", "the length of signatureValue in long form", signature(long(tagBits, 1, value))),
		tolerated("signature-length-4", "der-ec", "the same in four octets", signature(long(tagBits, 4, value))),
		tolerated("everything", "der-ec", "all of it at once", indefinite(tagSequence, ec.tbs, indefinite(tagSequence, long(tagOID, 2, contents(ecdsaID))), long(tagBits, 2, value))),
	}
}

// insideCases are BER in what is signed: some readers verify the octets as they came, others their DER.
func insideCases() []berCase {
	good := leafDraft()
	tbs := good.tbs()
	// over signs the octets themselves, der the DER that they stand for
	over := func(encoding []byte) []byte { return good.around(encoding) }
	der := func(encoding []byte) []byte {
		return seq(encoding, good.key.algorithm(), bits(0, good.key.sign(tbs)...))
	}
	change := func(change func(*draft)) []byte {
		d := leafDraft()
		change(d)
		return d.sign()
	}
	value := func(id string, value []byte) []byte { return change(func(d *draft) { d.put(id, value) }) }
	inside := func(name, section, what string, encoding []byte) berCase {
		return berCase{name, "reject", "reject", "", section, what, encoding}
	}
	p := leafDraft()
	spki := contents(leafKey.spki())
	spkiAlgorithm, point := first(spki)
	return []berCase{
		inside("tbs-indefinite", "X.690 §10.1", "tbsCertificate of indefinite length, signed as it is", over(indefinite(tagSequence, contents(tbs)))),
		inside("tbs-indefinite-der", "X.690 §10.1", "the same, its DER signed", der(indefinite(tagSequence, contents(tbs)))),
		inside("tbs-length", "X.690 §10.1", "an octet too many in its length, signed as it is", over(long(tagSequence, 3, contents(tbs)))),
		inside("tbs-length-der", "X.690 §10.1", "the same, its DER signed", der(long(tagSequence, 3, contents(tbs)))),
		inside("tbs-version-length", "X.690 §10.1", "the length of the version in long form", change(func(d *draft) { d.version = long(0xa0, 1, number(2)) })),
		inside("tbs-serial-length", "X.690 §10.1", "the length of the serial number in long form", change(func(d *draft) { d.serial = long(tagInteger, 1, []byte{7}) })),
		inside("tbs-algorithm-indefinite", "X.690 §10.1", "the inner signature algorithm of indefinite length", change(func(d *draft) { d.inner = indefinite(tagSequence, oid(idECDSASHA256)) })),
		inside("tbs-issuer-indefinite", "X.690 §10.1", "the issuer of indefinite length", change(func(d *draft) { d.issuer = indefinite(tagSequence, contents(d.issuer)) })),
		inside("tbs-validity-indefinite", "X.690 §10.1", "the validity of indefinite length", change(func(d *draft) { d.validity = indefinite(tagSequence, contents(d.validity)) })),
		inside("tbs-subject-segments", "X.690 §10.2", "a common name in segments", change(func(d *draft) {
			d.subject = seq(rdn(idCommonName, tlv(0x20|tagUTF8, utf8String("leaf"), utf8String(".corpus.test"))))
		})),
		inside("tbs-key-segments", "X.690 §10.2", "subjectPublicKey in segments", change(func(d *draft) {
			d.spki = seq(spkiAlgorithm, tlv(0x20|tagBits, point))
		})),
		inside("tbs-extensions-indefinite", "X.690 §10.1", "the list of extensions of indefinite length", change(func(d *draft) {
			d.wrap = func(list []byte) []byte { return indefinite(0xa3, indefinite(tagSequence, list)) }
		})),
		inside("tbs-extension-segments", "X.690 §10.2", "extnValue in segments", change(func(d *draft) {
			d.wrap = func(list []byte) []byte {
				return explicit(3, seq(list, seq(oid(idPrivate), tlv(0x20|tagOctets, octets([]byte{5}), octets([]byte{0})))))
			}
		})),
		inside("tbs-boolean", "X.690 §11.1", "critical TRUE as 01", change(func(d *draft) { d.extensions[0].critical = unhex("010101") })),
		inside("tbs-set-order", "X.690 §11.6", "a SET OF that is not in order", change(func(d *draft) {
			d.subject = seq(set(attribute(idUnit, printable("a")), attribute(idCommonName, printable("a"))))
		})),
		inside("tbs-value-indefinite", "-", "BER in the value of the alternative names", value(idSubjectAltName, indefinite(tagSequence, contents(p.get(idSubjectAltName).value)))),
		inside("tbs-value-length", "-", "a length in long form in the value of key usage", value(idKeyUsage, long(tagBits, 1, []byte{7, 0x80}))),
		inside("tbs-value-boolean", "-", "cA TRUE as 01", value(idBasicConstraints, seq(unhex("010101")))),
		inside("tbs-value-padding", "-", "unused bits of key usage that are set", value(idKeyUsage, bits(7, 0x81))),
	}
}
