package main

import "slices"

// list is a revocation list of whose parts a case changes one before it is signed.
type list struct {
	version    []byte
	inner      []byte // tbsCertList's signature; nil for the key's
	issuer     []byte
	thisUpdate []byte
	nextUpdate []byte
	entries    []byte
	extensions []extension
	field      func(list []byte) []byte // crlExtensions around its list; nil for [0]
	tail       []byte                   // after the last field of tbsCertList

	key       key
	outer     []byte // signatureAlgorithm; nil for the key's
	unused    byte
	signature []byte
	end       []byte // after signatureValue
}

// listCase changes one thing in a good list.
type listCase struct {
	name    string
	verdict verdict
	rule    string
	section string
	what    string
	change  func(*list)
}

func listDraft() *list {
	return &list{
		version:    number(1),
		issuer:     intermediateCA.name,
		thisUpdate: text(tagUTCTime, "300615110000Z"),
		nextUpdate: text(tagUTCTime, "300616110000Z"),
		entries:    seq(entry(7), entry(8, extension{idReasonCode, nil, tlv(tagEnumerated, []byte{1}), nil})),
		extensions: []extension{
			{idAuthorityKeyID, nil, seq(implicit(0, keyID(intermediateCA.key)...)), nil},
			{idCRLNumber, nil, number(4711), nil},
		},
		key: intermediateCA.key,
	}
}

// entry is a revoked certificate.
func entry(serial int64, extensions ...extension) []byte {
	var list []byte
	for _, e := range extensions {
		list = append(list, e.encode()...)
	}
	if list != nil {
		list = seq(list)
	}
	return seq(number(serial), text(tagUTCTime, "300614080000Z"), list)
}

func (l *list) sign() []byte {
	var extensions []byte
	for _, e := range l.extensions {
		extensions = append(extensions, e.encode()...)
	}
	inner, outer, field := l.inner, l.outer, explicit(0, seq(extensions))
	if inner == nil {
		inner = l.key.algorithm()
	}
	if outer == nil {
		outer = l.key.algorithm()
	}
	if l.field != nil {
		field = l.field(extensions)
	}
	tbs := seq(l.version, inner, l.issuer, l.thisUpdate, l.nextUpdate, l.entries, field, l.tail)
	signature := l.signature
	if signature == nil {
		signature = l.key.sign(tbs)
	}
	return seq(tbs, outer, bits(l.unused, signature...), l.end)
}

func (l *list) put(id string, critical, value []byte) {
	for i := range l.extensions {
		if l.extensions[i].id == id {
			l.extensions[i] = extension{id, critical, value, nil}
			return
		}
	}
	l.extensions = append(l.extensions, extension{id, critical, value, nil})
}

func listCases() []listCase {
	return slices.Concat(listFieldCases(), entryCases(), listExtensionCases())
}

// revocationLists returns the corpus of certificate revocation lists.
func revocationLists() *folder {
	f := newFolder("crl", "verdict", "anyone", "issued", "rule", "section", "what")
	for _, c := range listCases() {
		l := listDraft()
		c.change(l)
		f.add(c.name+".pem", encode("X509 CRL", l.sign()), row(c.verdict, c.rule, c.section, c.what)...)
	}
	return f
}

func listFieldCases() []listCase {
	const fields, this, next = "RFC 5280 §5.1", "RFC 5280 §5.1.2.4", "RFC 5280 §5.1.2.5"
	ed := newEd25519("signer Ed25519")
	return []listCase{
		{"good", accept, "-", fields, "nothing is wrong with it", func(*list) {}},
		{"nothing-revoked", accept, "-", "RFC 5280 §5.1.2.6", "no entry", func(l *list) { l.entries = nil }},
		{"ed25519", accept, "-", "RFC 8410 §3", "signed with Ed25519", func(l *list) { l.key = ed }},
		{"version-1", malformed, "crl-version", "RFC 5280 §5.1.2.1", "version 1, which has no extensions", func(l *list) {
			l.version, l.field = nil, func([]byte) []byte { return nil }
			l.entries = seq(entry(7))
		}},
		{"version-1-encoded", malformed, "crl-version", "RFC 5280 §5.1.2.1", "the version as 0", func(l *list) { l.version = number(0) }},
		{"version-3", malformed, "crl-version", "RFC 5280 §5.1.2.1", "a version that does not exist", func(l *list) { l.version = number(2) }},
		{"trailing", malformed, "crl-fields", fields, "a fourth element", func(l *list) { l.end = null }},
		{"trailing-tbs", malformed, "crl-trailing", fields, "an element after the extensions", func(l *list) { l.tail = null }},
		{"algorithms-differ", malformed, "algorithm-mismatch", "RFC 5280 §5.1.1.2", "the outer algorithm is not the inner one", func(l *list) { l.outer = seq(oid(idECDSASHA384)) }},
		{"sha1", nonconforming, "signature-weak", "RFC 9155", "RSA with SHA-1", func(l *list) { l.key = rsa2048().with(hash1, seq(oid(idSHA1RSA), null)) }},
		{"signature-unused-bits", malformed, "signature-octets", "RFC 5280 §5.1.1.3", "a signature that is not whole octets", func(l *list) {
			l.unused, l.signature = 1, append(l.key.sign(nil), 0x80)
		}},
		{"issuer-empty", malformed, "issuer-empty", "RFC 5280 §5.1.2.3", "an empty issuer", func(l *list) { l.issuer = seq() }},
		{"issuer-rdn-empty", malformed, "name-rdn", "RFC 5280 §4.1.2.4", "an empty relative distinguished name", func(l *list) { l.issuer = seq(set()) }},
		{"this-update-generalized", nonconforming, "time-generalized", this, "GeneralizedTime before 2050", func(l *list) { l.thisUpdate = text(tagGeneralizedTime, "20300615110000Z") }},
		{"this-update-missing", malformed, "time-type", this, "no thisUpdate", func(l *list) { l.thisUpdate, l.nextUpdate = nil, nil }},
		{"this-update-no-seconds", malformed, "der", "X.690 §11.8", "UTCTime without seconds", func(l *list) { l.thisUpdate = text(tagUTCTime, "3006151100Z") }},
		{"next-update-missing", malformed, "crl-next-update", next, "no nextUpdate", func(l *list) { l.nextUpdate = nil }},
		{"next-update-before", malformed, "crl-update-order", next, "nextUpdate is before thisUpdate", func(l *list) { l.nextUpdate = text(tagUTCTime, "300614110000Z") }},
		{"next-update-fraction", malformed, "time-fraction", next, "a fraction of a second", func(l *list) { l.nextUpdate = text(tagGeneralizedTime, "20500101000000.5Z") }},
		{"next-update-2050", accept, "-", next, "GeneralizedTime from 2050 on", func(l *list) { l.nextUpdate = text(tagGeneralizedTime, "20500101000000Z") }},
	}
}

func entryCases() []listCase {
	const section, reason = "RFC 5280 §5.1.2.6", "RFC 5280 §5.3.1"
	entries := func(entries ...[]byte) func(*list) {
		return func(l *list) { l.entries = seq(entries...) }
	}
	code := func(code byte, critical []byte) extension {
		return extension{idReasonCode, critical, tlv(tagEnumerated, []byte{code}), nil}
	}
	when := func(value string) extension {
		return extension{idInvalidityDate, nil, text(tagGeneralizedTime, value), nil}
	}
	issuer := extension{idCertificateIssuer, isTrue, seq(directory(rootCA.name)), nil}
	return []listCase{
		{"entries-empty", nonconforming, "crl-entries-empty", section, "an empty list of entries, which has to be left out", entries()},
		{"entry-twice", nonconforming, "crl-entry-repeated", section, "a certificate stands twice", entries(entry(7), entry(7))},
		{"entry-serial-zero", nonconforming, "serial", "RFC 5280 §4.1.2.2", "a serial number of zero", entries(entry(0))},
		{"entry-serial-negative", nonconforming, "serial", "RFC 5280 §4.1.2.2", "a negative serial number", entries(entry(-7))},
		{"entry-serial-21-octets", nonconforming, "serial", "RFC 5280 §4.1.2.2", "a serial number of 21 octets", entries(seq(tlv(tagInteger, []byte{0, 0x80}, make([]byte, 19)), text(tagUTCTime, "300614080000Z")))},
		{"entry-no-serial", malformed, "crl-entry", section, "no serial number", entries(seq(text(tagUTCTime, "300614080000Z")))},
		{"entry-no-date", malformed, "time-type", section, "no revocation date", entries(seq(number(7)))},
		{"entry-trailing", malformed, "crl-entry", section, "an element after the extensions", entries(seq(number(7), text(tagUTCTime, "300614080000Z"), seq(code(1, nil).encode()), null))},
		{"entry-extensions-empty", malformed, "crl-entry", section, "an empty list of extensions", entries(seq(number(7), text(tagUTCTime, "300614080000Z"), seq()))},
		{"reason-unspecified", nonconforming, "crl-reason-unspecified", reason, "unspecified, which should be left out", entries(entry(7, code(0, nil)))},
		{"reason-7", malformed, "crl-reason", reason, "7, which is not used", entries(entry(7, code(7, nil)))},
		{"reason-11", malformed, "crl-reason", reason, "11, which does not exist", entries(entry(7, code(11, nil)))},
		{"reason-integer", malformed, "crl-reason", reason, "an INTEGER", entries(entry(7, extension{idReasonCode, nil, number(1), nil}))},
		{"reason-critical", nonconforming, "crl-reason-critical", reason, "it must not be critical", entries(entry(7, code(1, isTrue)))},
		{"reason-twice", malformed, "extension-repeated", "RFC 5280 §5.3", "two reasons", entries(entry(7, code(1, nil), code(4, nil)))},
		{"reason-remove", malformed, "crl-reason-remove", reason, "removeFromCRL in a list that is no delta", entries(entry(7, code(8, nil)))},
		{"invalidity-date", accept, "-", "RFC 5280 §5.3.2", "since when the key is suspect", entries(entry(7, code(1, nil), when("20300601000000Z")))},
		{"invalidity-date-fraction", malformed, "crl-invalidity", "RFC 5280 §5.3.2", "a fraction of a second", entries(entry(7, when("20300601000000.5Z")))},
		{"entry-critical-unknown", malformed, "crl-entry-critical", "RFC 5280 §5.3", "an unknown extension that is critical", entries(entry(7, extension{idPrivate, isTrue, null, nil}))},
		{"entry-unknown", accept, "-", "RFC 5280 §5.3", "an unknown extension that is not critical", entries(entry(7, extension{idPrivate, nil, null, nil}))},
		{"entry-issuer", malformed, "crl-entry-issuer", "RFC 5280 §5.3.3", "a certificate issuer in a list that is not indirect", entries(entry(7, issuer))},
		{"entry-issuer-indirect", accept, "-", "RFC 5280 §5.3.3", "a certificate issuer in an indirect list", func(l *list) {
			l.put(idIssuingPoint, isTrue, seq(implicit(4, 0xff)))
			l.entries = seq(entry(7, issuer), entry(8))
		}},
	}
}

func listExtensionCases() []listCase {
	const crlNumber, delta, scope = "RFC 5280 §5.2.3", "RFC 5280 §5.2.4", "RFC 5280 §5.2.5"
	put := func(id string, critical, value []byte) func(*list) {
		return func(l *list) { l.put(id, critical, value) }
	}
	drop := func(index int) func(*list) {
		return func(l *list) { l.extensions = append(l.extensions[:index:index], l.extensions[index+1:]...) }
	}
	point := explicit(0, explicit(0, uri("http://crl.corpus.test/1.crl")))
	return []listCase{
		{"aki-missing", nonconforming, "authority-key-id-missing", "RFC 5280 §5.2.1", "no authority key identifier", drop(0)},
		{"number-missing", malformed, "crl-number-missing", crlNumber, "no CRL number", drop(1)},
		{"number-negative", malformed, "crl-number", crlNumber, "a negative CRL number", put(idCRLNumber, nil, number(-1))},
		{"number-critical", malformed, "crl-number-critical", crlNumber, "it must not be critical", put(idCRLNumber, isTrue, number(1))},
		{"number-20-octets", accept, "-", crlNumber, "the longest CRL number", put(idCRLNumber, nil, tlv(tagInteger, []byte{0x7f}, make([]byte, 19)))},
		{"number-21-octets", nonconforming, "crl-number-length", crlNumber, "a CRL number of 21 octets", put(idCRLNumber, nil, tlv(tagInteger, []byte{1}, make([]byte, 20)))},
		{"extensions-missing", malformed, "crl-number-missing", crlNumber, "no extensions at all", func(l *list) { l.field = func([]byte) []byte { return nil } }},
		{"extensions-empty", malformed, "crl-number-missing+extensions-fields", "RFC 5280 §5.1.2.7", "an empty list of extensions", func(l *list) { l.field = func([]byte) []byte { return explicit(0, seq()) } }},
		{"extension-twice", malformed, "extension-repeated", "RFC 5280 §5.2", "an extension stands twice", func(l *list) { l.extensions = append(l.extensions, l.extensions[1]) }},
		{"extension-critical-unknown", malformed, "extension-critical", "RFC 5280 §5.2", "an unknown extension that is critical", put(idPrivate, isTrue, null)},
		{"extension-critical-false", malformed, "extension-default", "X.690 §11.5", "critical FALSE is the default and must not be encoded", put(idPrivate, isFalse, null)},
		{"extension-unknown", accept, "-", "RFC 5280 §5.2", "an unknown extension that is not critical", put(idPrivate, nil, null)},
		{"delta", accept, "-", delta, "a delta", put(idDeltaCRL, isTrue, number(4000))},
		{"delta-remove", accept, "-", delta, "an entry that is taken from the list again", func(l *list) {
			l.put(idDeltaCRL, isTrue, number(4000))
			l.entries = seq(entry(7, extension{idReasonCode, nil, tlv(tagEnumerated, []byte{8}), nil}))
		}},
		{"delta-not-critical", malformed, "crl-delta-critical", delta, "a delta that others take for a complete list", put(idDeltaCRL, nil, number(4000))},
		{"delta-base-newer", malformed, "crl-delta-base", delta, "a base that is newer than the delta", put(idDeltaCRL, isTrue, number(5000))},
		{"scope", accept, "-", scope, "a list of one distribution point for end entities", put(idIssuingPoint, isTrue, seq(point, implicit(1, 0xff)))},
		{"scope-not-critical", nonconforming, "crl-scope-critical", scope, "it has to be critical", put(idIssuingPoint, nil, seq(point))},
		{"scope-empty", nonconforming, "crl-scope-empty", scope, "nothing in it", put(idIssuingPoint, isTrue, seq())},
		{"scope-two-kinds", malformed, "crl-scope-only", scope, "only end entities and only CAs", put(idIssuingPoint, isTrue, seq(implicit(1, 0xff), implicit(2, 0xff)))},
		{"scope-false", malformed, "crl-scope-flag", "X.690 §11.5", "FALSE is the default and must not be encoded", put(idIssuingPoint, isTrue, seq(point, implicit(1, 0)))},
		{"scope-trailing", malformed, "crl-scope", scope, "a seventh field", put(idIssuingPoint, isTrue, seq(point, implicit(6, 0xff)))},
		{"freshest-critical", nonconforming, "extension-critical", "RFC 5280 §5.2.6", "it must not be critical", put(idFreshestCRL, isTrue, seq(seq(point)))},
		{"delta-freshest", nonconforming, "crl-delta-freshest", "RFC 5280 §5.2.6", "a delta that points to deltas", func(l *list) {
			l.put(idDeltaCRL, isTrue, number(4000))
			l.put(idFreshestCRL, nil, seq(seq(point)))
		}},
	}
}
