package main

import "slices"

// clock is the time for which chains are verified; everything good is valid then.
const clock = "2030-06-15T12:00:00Z"

// The validities of good certificates, as UTCTime.
const (
	leafFrom, leafTo           = "300615110000Z", "300616120000Z"
	authorityFrom, authorityTo = "260101000000Z", "360101000000Z"
)

// draft is a certificate of whose parts a case changes one before it is signed. Each part is a whole element, or several.
type draft struct {
	version    []byte
	serial     []byte
	inner      []byte // tbsCertificate's signature; nil for the key's
	issuer     []byte
	validity   []byte
	subject    []byte
	spki       []byte
	uniqueIDs  []byte
	extensions []extension
	wrap       func(list []byte) []byte // the field around the list of extensions; nil for [3]
	tail       []byte                   // after the last field of tbsCertificate

	key       key    // the issuer's
	outer     []byte // signatureAlgorithm; nil for the key's
	unused    byte   // unused bits of signatureValue
	signature []byte // nil for a good one
	end       []byte // after signatureValue
}

type extension struct {
	id       string
	critical []byte // the BOOLEAN, or nothing
	value    []byte // what extnValue holds
	tail     []byte // after extnValue
}

func (e extension) encode() []byte { return seq(oid(e.id), e.critical, octets(e.value), e.tail) }

// authority is a CA of the corpora.
type authority struct {
	name []byte
	key  key
}

var (
	rootCA         = authority{commonName("Corpus Root"), newP256("root")}
	intermediateCA = authority{seq(rdn(idOrganization, utf8String("Example")), rdn(idCommonName, utf8String("Corpus Intermediate"))), newP256("intermediate")}
	leafKey        = newP256("leaf")
)

// leafDraft is a leaf of intermediateCA in which there is nothing to find.
func leafDraft() *draft {
	return &draft{
		version:  unhex("a003020102"),
		serial:   tlv(tagInteger, []byte{0x4c}, seed("serial of the leaf")[:15]),
		issuer:   intermediateCA.name,
		validity: times(leafFrom, leafTo),
		subject:  seq(rdn(idOrganization, printable("Example")), rdn(idCommonName, utf8String("leaf.corpus.test"))),
		spki:     leafKey.spki(),
		extensions: []extension{
			{idKeyUsage, isTrue, bits(7, 0x80), nil},
			{idExtKeyUsage, nil, seq(oid(idServerAuth), oid(idClientAuth)), nil},
			{idBasicConstraints, isTrue, seq(), nil},
			{idSubjectKeyID, nil, octets(keyID(leafKey)), nil},
			{idAuthorityKeyID, nil, seq(implicit(0, keyID(intermediateCA.key)...)), nil},
			{idSubjectAltName, nil, seq(dns("leaf.corpus.test"), ip(192, 0, 2, 7), uri("spiffe://corpus.test/ns/shop/sa/cart")), nil},
		},
		key: intermediateCA.key,
	}
}

// authorityDraft is a CA certificate, self-signed if it is its own issuer.
func authorityDraft(subject, issuer authority, pathLength int64) *draft {
	constraints := seq(isTrue)
	if pathLength >= 0 {
		constraints = seq(isTrue, number(pathLength))
	}
	return &draft{
		version:  unhex("a003020102"),
		serial:   number(4096 + int64(len(subject.name))),
		issuer:   issuer.name,
		validity: times(authorityFrom, authorityTo),
		subject:  subject.name,
		spki:     subject.key.spki(),
		extensions: []extension{
			{idKeyUsage, isTrue, bits(1, 0x06), nil},
			{idBasicConstraints, isTrue, constraints, nil},
			{idSubjectKeyID, nil, octets(keyID(subject.key)), nil},
			{idAuthorityKeyID, nil, seq(implicit(0, keyID(issuer.key)...)), nil},
		},
		key: issuer.key,
	}
}

func rootDraft() *draft         { return authorityDraft(rootCA, rootCA, -1) }
func intermediateDraft() *draft { return authorityDraft(intermediateCA, rootCA, 0) }

// put replaces the value of an extension, or adds a non-critical one.
func (d *draft) put(id string, value []byte) {
	for i := range d.extensions {
		if d.extensions[i].id == id {
			d.extensions[i].value = value
			return
		}
	}
	d.extensions = append(d.extensions, extension{id, nil, value, nil})
}

// mark sets the BOOLEAN of an extension, or takes it away.
func (d *draft) mark(id string, critical []byte) {
	for i := range d.extensions {
		if d.extensions[i].id == id {
			d.extensions[i].critical = critical
		}
	}
}

func (d *draft) drop(id string) {
	d.extensions = slices.DeleteFunc(d.extensions, func(e extension) bool { return e.id == id })
}

func (d *draft) get(id string) *extension {
	i := slices.IndexFunc(d.extensions, func(e extension) bool { return e.id == id })
	return &d.extensions[i]
}

// tbs returns the TBSCertificate.
func (d *draft) tbs() []byte {
	var list []byte
	for _, e := range d.extensions {
		list = append(list, e.encode()...)
	}
	inner := d.inner
	if inner == nil {
		inner = d.key.algorithm()
	}
	var extensions []byte
	switch {
	case d.wrap != nil:
		extensions = d.wrap(list)
	case len(list) > 0:
		extensions = explicit(3, seq(list))
	}
	return seq(d.version, d.serial, inner, d.issuer, d.validity, d.subject, d.spki, d.uniqueIDs, extensions, d.tail)
}

// sign returns the certificate.
func (d *draft) sign() []byte { return d.around(d.tbs()) }

// around returns a certificate with the given TBSCertificate.
func (d *draft) around(tbs []byte) []byte {
	outer, signature := d.outer, d.signature
	if outer == nil {
		outer = d.key.algorithm()
	}
	if signature == nil {
		signature = d.key.sign(tbs)
	}
	return seq(tbs, outer, bits(d.unused, signature...), d.end)
}
