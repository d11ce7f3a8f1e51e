package main

import "slices"

// verdict is what RFC 5280 has a certificate or a revocation list be.
type verdict string

const (
	accept        verdict = "accept"
	nonconforming verdict = "nonconforming" // it reads in one way only, but a CA must not issue it
	malformed     verdict = "malformed"     // readers can differ on what it says, or must refuse it
	unread        verdict = "unread"        // nonconforming, and of a kind that is not read at all
)

// certCase changes one thing in a good certificate.
type certCase struct {
	name    string
	verdict verdict
	rule    string // of the finding, as the product names it
	section string // of the document that the rule is from
	what    string
	change  func(*draft)
}

// row returns the columns of a case in an index.
func row(v verdict, rule, section, what string) []string {
	anyone, issued := "accept", "accept"
	if v != accept {
		issued = "reject"
	}
	if v == malformed || v == unread {
		anyone = "reject"
	}
	if v == unread {
		v = nonconforming
	}
	return []string{string(v), anyone, issued, rule, section, what}
}

// certGroup is cases that change the same good certificate.
type certGroup struct {
	prefix string
	from   func() *draft
	cases  []certCase
}

func certificateCases() []certGroup {
	return []certGroup{
		{"leaf", leafDraft, slices.Concat(fieldCases(), signatureCases(), timeCases(), nameCases(), keyCases(), extensionCases(), usageCases(), altNameCases())},
		{"ca", intermediateDraft, slices.Concat(issuerCases(), constraintCases(), policyCases())},
		{"root", rootDraft, rootCases()},
	}
}

// certificates returns the corpus of single certificates.
func certificates() *folder {
	f := newFolder("certs", "verdict", "anyone", "issued", "rule", "section", "what")
	for _, group := range certificateCases() {
		for _, c := range group.cases {
			d := group.from()
			c.change(d)
			f.add(group.prefix+"-"+c.name+".pem", certificatePEM(d.sign()), row(c.verdict, c.rule, c.section, c.what)...)
		}
	}
	return f
}

func none(*draft) {}

// fieldCases are about the fields of Certificate and TBSCertificate.
func fieldCases() []certCase {
	const serial = "RFC 5280 §4.1.2.2"
	return []certCase{
		{"good", accept, "-", "RFC 5280", "nothing is wrong with it", none},
		{"serial-20-octets", accept, "-", serial, "the longest serial number", func(d *draft) { d.serial = tlv(tagInteger, []byte{0x7f}, make([]byte, 19)) }},
		{"serial-one", accept, "-", serial, "the smallest serial number", func(d *draft) { d.serial = number(1) }},
		{"serial-160-bits", nonconforming, "serial-length", serial, "160 bits need 21 octets", func(d *draft) { d.serial = tlv(tagInteger, []byte{0, 0x80}, make([]byte, 19)) }},
		{"serial-32-octets", nonconforming, "serial-length", serial, "32 octets", func(d *draft) { d.serial = tlv(tagInteger, []byte{1}, make([]byte, 31)) }},
		{"serial-zero", nonconforming, "serial-zero", serial, "zero is not positive", func(d *draft) { d.serial = number(0) }},
		{"serial-negative", malformed, "serial-positive", serial, "a negative serial number", func(d *draft) { d.serial = number(-2) }},
		{"serial-negative-20-octets", malformed, "serial-positive", serial, "160 bits without the octet for the sign", func(d *draft) { d.serial = tlv(tagInteger, []byte{0x80}, make([]byte, 19)) }},
		{"serial-padded", malformed, "der", "X.690 §8.3.2", "leading zero octets", func(d *draft) { d.serial = unhex("0203000007") }},
		{"serial-padded-negative", malformed, "der", "X.690 §8.3.2", "leading FF octets", func(d *draft) { d.serial = unhex("0202ff87") }},
		{"serial-empty", malformed, "der", "X.690 §8.3.1", "an INTEGER without contents", func(d *draft) { d.serial = unhex("0200") }},
		{"serial-octets", malformed, "tbs-fields", "RFC 5280 §4.1", "an OCTET STRING as serial number", func(d *draft) { d.serial = octets([]byte{7}) }},
		{"serial-missing", malformed, "tbs-fields", "RFC 5280 §4.1", "no serial number", func(d *draft) { d.serial = nil }},

		{"version-1-encoded", malformed, "version-default", "X.690 §11.5", "version 1 is the default and must not be encoded", func(d *draft) { d.version, d.extensions = unhex("a003020100"), nil }},
		{"version-1", nonconforming, "authority-key-id-missing", "RFC 5280 §4.2.1.1", "version 1, which cannot have the extensions that a CA must write", func(d *draft) { d.version, d.extensions = nil, nil }},
		{"version-1-extensions", malformed, "extensions-version", "RFC 5280 §4.1.2.9", "extensions in version 1", func(d *draft) { d.version = nil }},
		{"version-2-extensions", malformed, "extensions-version", "RFC 5280 §4.1.2.9", "extensions in version 2", func(d *draft) { d.version = unhex("a003020101") }},
		{"version-4", malformed, "version", "RFC 5280 §4.1.2.1", "a version that does not exist", func(d *draft) { d.version = unhex("a003020103") }},
		{"version-negative", malformed, "version", "RFC 5280 §4.1.2.1", "a negative version", func(d *draft) { d.version = unhex("a0030201ff") }},
		{"version-two-numbers", malformed, "version", "RFC 5280 §4.1.2.1", "two numbers in the version", func(d *draft) { d.version = unhex("a006020102020102") }},
		{"version-huge", malformed, "version", "RFC 5280 §4.1.2.1", "a version of five octets", func(d *draft) { d.version = unhex("a00702050100000002") }},
		{"version-untagged", malformed, "tbs-fields", "RFC 5280 §4.1", "the version without its tag", func(d *draft) { d.version = number(2) }},

		{"trailing-certificate", malformed, "certificate-fields", "RFC 5280 §4.1", "a fourth element in Certificate", func(d *draft) { d.end = null }},
		{"trailing-tbs", malformed, "tbs-trailing", "RFC 5280 §4.1", "an element after the extensions", func(d *draft) { d.tail = null }},
		{"trailing-extensions-twice", malformed, "tbs-trailing", "RFC 5280 §4.1", "the extensions stand twice", func(d *draft) { d.tail = explicit(3, seq(extension{idPrivate, nil, null, nil}.encode())) }},
		{"subject-missing", malformed, "tbs-fields", "RFC 5280 §4.1", "no subject", func(d *draft) { d.subject = nil }},
		{"unique-id-issuer", nonconforming, "unique-id", "RFC 5280 §4.1.2.8", "issuerUniqueID, which a CA must not generate", func(d *draft) { d.uniqueIDs = implicit(1, 0, 1, 2) }},
		{"unique-id-subject", nonconforming, "unique-id", "RFC 5280 §4.1.2.8", "subjectUniqueID, which a CA must not generate", func(d *draft) { d.uniqueIDs = implicit(2, 0, 1, 2) }},
		{"unique-ids-order", malformed, "tbs-trailing", "RFC 5280 §4.1", "a unique identifier after the extensions", func(d *draft) { d.tail = implicit(2, 0, 1, 2) }},
	}
}

// signatureCases are about the algorithm and the form of the signature.
func signatureCases() []certCase {
	const algorithm = "RFC 5280 §4.1.1.2"
	p384 := newEC("signer P-384", curve384, idP384, hash384, idECDSASHA384)
	ed := newEd25519("signer Ed25519")
	ecdsa := intermediateCA.key
	identified := func(parts ...[]byte) func(*draft) {
		return func(d *draft) { d.key = as{key: d.key, identifier: seq(parts...)} }
	}
	// value replaces an ECDSA signature by one of the given form
	value := func(parts ...[]byte) func(*draft) {
		return func(d *draft) { d.signature = seq(parts...) }
	}
	r, s := number(0x1234567), number(0x7654321)
	cases := []certCase{
		{"signed-p384", accept, "-", "RFC 5758 §3.2", "ECDSA with SHA-384", func(d *draft) { d.key = p384 }},
		{"signed-ed25519", accept, "-", "RFC 8410 §3", "Ed25519", func(d *draft) { d.key = ed }},
		{"signed-rsa", accept, "-", "RFC 4055 §5", "RSA with SHA-256", func(d *draft) { d.key = rsa2048() }},
		{"signed-rsa-sha512", accept, "-", "RFC 4055 §5", "RSA with SHA-512", func(d *draft) { d.key = rsa2048().with(hash512, seq(oid(idSHA512RSA), null)) }},
		{"signed-pss", accept, "-", "RFC 4055 §3.1", "RSASSA-PSS with SHA-256 throughout and a salt of 32 octets", func(d *draft) { d.key = rsa2048().withPSS(hash256, 32, pssIdentifier(pssFields(idSHA256, 32))) }},

		{"algorithms-differ", malformed, "algorithm-mismatch", algorithm, "the outer algorithm is SHA-384, the inner SHA-256", func(d *draft) { d.outer = seq(oid(idECDSASHA384)) }},
		{"algorithms-differ-null", malformed, "algorithm-mismatch", algorithm, "the outer algorithm has NULL parameters, the inner none", func(d *draft) { d.outer = seq(oid(idECDSASHA256), null) }},
		{"algorithm-trailing", malformed, "algorithm-fields", algorithm, "an element after the parameters", func(d *draft) {
			d.key = rsa2048().with(hash256, seq(oid(idSHA256RSA), null, null))
		}},
		{"algorithm-empty", malformed, "algorithm-fields", algorithm, "an algorithm without an identifier", identified()},
		{"algorithm-unknown", nonconforming, "signature-unknown", algorithm, "an algorithm that nobody knows", identified(oid(idPrivate))},
		{"ecdsa-null", malformed, "signature-parameters", "RFC 5758 §3.2", "ECDSA with NULL parameters", identified(oid(idECDSASHA256), null)},
		{"ed25519-null", malformed, "signature-parameters", "RFC 8410 §3", "Ed25519 with NULL parameters", func(d *draft) { d.key = as{key: ed, identifier: seq(oid(idEd25519), null)} }},
		{"rsa-without-null", nonconforming, "signature-parameters", "RFC 4055 §5", "RSA without parameters, which readers take and CAs must not write", func(d *draft) {
			d.key = rsa2048().with(hash256, seq(oid(idSHA256RSA)))
		}},
		{"rsa-parameters", malformed, "signature-parameters", "RFC 4055 §5", "RSA with an INTEGER as parameters", func(d *draft) {
			d.key = rsa2048().with(hash256, seq(oid(idSHA256RSA), number(1)))
		}},
		{"rsa-sha1", nonconforming, "signature-weak", "RFC 9155", "RSA with SHA-1", func(d *draft) { d.key = rsa2048().with(hash1, seq(oid(idSHA1RSA), null)) }},
		{"rsa-md5", nonconforming, "signature-weak", "RFC 6151", "RSA with MD5", func(d *draft) { d.key = rsa2048().with(hashMD5, seq(oid(idMD5RSA), null)) }},
		{"ecdsa-sha1", nonconforming, "signature-weak", "RFC 9155", "ECDSA with SHA-1", func(d *draft) { d.key = newEC("intermediate", curve256, idP256, hash1, idECDSASHA1) }},
		{"pss-defaults", nonconforming, "pss-parameters", "RFC 4055 §3.1", "RSASSA-PSS with the defaults, which are SHA-1", func(d *draft) { d.key = rsa2048().withPSS(hash1, 20, pssIdentifier()) }},
		{"pss-default-encoded", malformed, "pss-default", "X.690 §11.5", "the default trailer field is encoded", func(d *draft) {
			d.key = rsa2048().withPSS(hash256, 32, pssIdentifier(pssFields(idSHA256, 32), explicit(3, number(1))))
		}},
		{"pss-salt", nonconforming, "pss-parameters", "RFC 4055 §3.1", "a salt that is longer than the hash", func(d *draft) {
			d.key = rsa2048().withPSS(hash256, 48, pssIdentifier(pssFields(idSHA256, 48)))
		}},
		{"pss-trailing", malformed, "pss-parameters", "RFC 4055 §3.1", "a fifth parameter", func(d *draft) {
			d.key = rsa2048().withPSS(hash256, 32, pssIdentifier(pssFields(idSHA256, 32), explicit(4, number(1))))
		}},
		{"pss-parameters-missing", malformed, "pss-parameters", "RFC 4055 §3.1", "RSASSA-PSS without parameters", func(d *draft) { d.key = rsa2048().withPSS(hash256, 32, seq(oid(idPSS))) }},

		{"signature-unused-bits", malformed, "signature-octets", "RFC 5280 §4.1.1.3", "the signature is not whole octets", func(d *draft) {
			d.unused, d.signature = 1, append(ecdsa.sign(d.tbs()), 0x80)
		}},
		{"signature-empty", malformed, "signature-octets", "RFC 5280 §4.1.1.3", "no signature", func(d *draft) { d.signature = []byte{} }},
		{"signature-zero", malformed, "signature-form", "RFC 5758 §3.2", "r is zero", value(number(0), s)},
		{"signature-negative", malformed, "signature-form", "RFC 5758 §3.2", "s is negative", value(r, number(-5))},
		{"signature-three", malformed, "signature-form", "RFC 5758 §3.2", "three numbers", value(r, s, s)},
		{"signature-one", malformed, "signature-form", "RFC 5758 §3.2", "one number", value(r)},
		{"signature-padded", malformed, "signature-form", "X.690 §8.3.2", "r has leading zeros", value(unhex("02020005"), s)},
		{"signature-trailing", malformed, "signature-form", "RFC 5758 §3.2", "octets after r and s", func(d *draft) { d.signature = append(ecdsa.sign(d.tbs()), 0) }},
		{"signature-raw", malformed, "signature-form", "RFC 5758 §3.2", "r and s as 64 octets, as JOSE writes them", func(d *draft) { d.signature = join(seed("r"), seed("s")) }},
		{"signature-ed25519-short", malformed, "signature-form", "RFC 8410 §6", "63 octets of an Ed25519 signature", func(d *draft) {
			d.key = as{key: ed, signature: func(message []byte) []byte { return ed.sign(message)[:63] }}
		}},
	}
	return cases
}
