package main

import "bytes"

// brokenCases are neither DER nor tolerable BER, wherever the fault is.
func brokenCases() []berCase {
	ec := leafDraft().parts()
	rsaDraft := leafDraft()
	rsaDraft.key = rsa2048()
	rsa := rsaDraft.parts()
	good := seq(ec.list())
	value := contents(ec.signature)
	half := len(value) / 2
	ecdsaID := contents(ec.algorithm)
	broken := func(name, section, what string, encoding []byte) berCase {
		return berCase{name, "reject", "reject", "", section, what, encoding}
	}
	signature := func(encoding []byte) []byte { return seq(ec.tbs, ec.algorithm, encoding) }
	algorithm := func(encoding []byte) []byte { return seq(ec.tbs, encoding, ec.signature) }
	return []berCase{
		broken("signature-segments-1", "X.690 §10.2", "signatureValue in one segment", signature(tlv(0x20|tagBits, ec.signature))),
		broken("signature-segments-2", "X.690 §10.2", "signatureValue in two segments", signature(tlv(0x20|tagBits, bits(0, value[1:half]...), bits(0, value[half:]...)))),
		broken("signature-segments-indefinite", "X.690 §10.2", "the same in an indefinite length", signature(indefinite(0x20|tagBits, bits(0, value[1:half]...), bits(0, value[half:]...)))),
		broken("signature-indefinite", "X.690 §10.2", "a primitive signatureValue of indefinite length", signature(indefinite(tagBits, value))),
		broken("signature-octets", "-", "an OCTET STRING as signatureValue", signature(octets(value))),
		broken("signature-unused-set", "X.690 §11.2.1", "unused bits that are set", signature(long(tagBits, 1, join([]byte{1}, value[1:], []byte{1})))),
		broken("signature-no-count", "X.690 §8.6.2.3", "a BIT STRING of no octets", signature(long(tagBits, 1, nil))),
		broken("algorithm-oid-segments", "X.690 §10.2", "a constructed identifier", algorithm(seq(tlv(0x20|tagOID, contents(ecdsaID))))),
		broken("algorithm-oid-padded", "X.690 §8.19.2", "an arc with leading zeros", algorithm(long(tagSequence, 1, tlv(tagOID, []byte{0x2a, 0x80, 0x86, 0x48})))),
		broken("algorithm-end-within", "X.690 §8.1.5", "end-of-contents octets within a definite length", algorithm(seq(ecdsaID, []byte{0, 0}))),
		broken("algorithm-null-contents", "X.690 §8.8.2", "a NULL with contents", seq(rsa.tbs, indefinite(tagSequence, oid(idSHA256RSA), unhex("050100")), rsa.signature)),
		broken("algorithm-primitive", "X.690 §8.9.1", "a primitive SEQUENCE", algorithm(tlv(0x10, ecdsaID))),
		broken("algorithm-indefinite-primitive", "X.690 §8.1.3.2", "an identifier of indefinite length", algorithm(seq(indefinite(tagOID, contents(ecdsaID))))),
		broken("algorithm-not-closed", "X.690 §8.1", "an indefinite length without its end", algorithm(join([]byte{0x30, 0x80}, ecdsaID))),
		broken("algorithm-17-levels", "-", "17 levels of indefinite lengths", algorithm(join(bytes.Repeat([]byte{0x30, 0x80}, 17), bytes.Repeat([]byte{0, 0}, 17)))),
		broken("outer-set", "X.690 §8.9.1", "a SET around it", tlv(tagSet, ec.list())),
		broken("outer-primitive", "X.690 §8.9.1", "a primitive SEQUENCE around it", tlv(0x10, ec.list())),
		broken("outer-fourth", "-", "a fourth element", seq(ec.list(), null)),
		broken("outer-fourth-indefinite", "X.690 §8.1.5", "a fourth element in an indefinite length", indefinite(tagSequence, ec.list(), null)),
		broken("outer-end-within", "X.690 §8.1", "end-of-contents octets within the definite outer length", seq(ec.list(), []byte{0, 0})),
		broken("outer-end-missing", "X.690 §8.1.5", "no end-of-contents octets", join([]byte{0x30, 0x80}, ec.list())),
		broken("outer-end-half", "X.690 §8.1.5", "one end-of-contents octet", join([]byte{0x30, 0x80}, ec.list(), []byte{0})),
		broken("outer-end-length", "X.690 §8.1.5", "end-of-contents octets with a length of one", join([]byte{0x30, 0x80}, ec.list(), []byte{0, 1, 0})),
		broken("outer-end-twice", "X.690 §8.1", "end-of-contents octets twice", join(indefinite(tagSequence, ec.list()), []byte{0, 0})),
		broken("trailing-octet", "X.690 §8.1", "an octet after it", join(good, []byte{0})),
		broken("trailing-newline", "X.690 §8.1", "a line feed after it", join(good, []byte{'\n'})),
		broken("trailing-second", "X.690 §8.1", "another certificate after it", join(good, good)),
		broken("trailing-indefinite", "X.690 §8.1", "an octet after the end-of-contents octets", join(indefinite(tagSequence, ec.list()), []byte{7})),
		broken("length-ff", "X.690 §8.1.3.5", "the reserved length octet", join([]byte{0x30, 0xff}, ec.list())),
		broken("length-5-octets", "X.690 §8.1.3.5", "a length of five octets", long(tagSequence, 5, ec.list())),
		broken("length-8-octets", "X.690 §8.1.3.5", "a length of eight octets, all FF", join([]byte{0x30, 0x88}, bytes.Repeat([]byte{0xff}, 8), ec.list())),
		broken("length-2-gib", "X.690 §8.1.3", "a length of 2 GiB", join([]byte{0x30, 0x84, 0x7f, 0xff, 0xff, 0xff}, ec.list())),
		broken("length-4-gib", "X.690 §8.1.3", "a length of 4 GiB", join([]byte{0x30, 0x84, 0xff, 0xff, 0xff, 0xff}, ec.list())),
		broken("length-cut", "X.690 §8.1.3.5", "the input ends in its length", []byte{0x30, 0x84, 0, 0}),
		broken("length-one-more", "X.690 §8.1.3", "the outer length is one too many", join([]byte{0x30, 0x82, byte((len(ec.list()) + 1) >> 8), byte(len(ec.list()) + 1)}, ec.list())),
		broken("length-one-less", "X.690 §8.1", "the outer length is one too few", join([]byte{0x30, 0x82, byte((len(ec.list()) - 1) >> 8), byte(len(ec.list()) - 1)}, ec.list())),
		broken("cut-tbs", "X.690 §8.1.3", "the first half", good[:len(good)/2]),
		broken("cut-last", "X.690 §8.1.3", "all but the last octet", good[:len(good)-1]),
		broken("cut-indefinite", "X.690 §8.1.3", "the first half, of indefinite length", indefinite(tagSequence, ec.list())[:len(good)/2]),
		broken("tag-high", "X.690 §8.1.2.4", "a tag number above 30", join([]byte{0x30, 0x80}, []byte{0x7f, 0x81, 0x01, 0x00}, ec.list())),
		broken("nested-4", "X.690 §10.1", "30 80 four times, closed", join(bytes.Repeat([]byte{0x30, 0x80}, 4), bytes.Repeat([]byte{0, 0}, 4))),
		broken("nested-64", "X.690 §10.1", "30 80 64 times, closed", join(bytes.Repeat([]byte{0x30, 0x80}, 64), bytes.Repeat([]byte{0, 0}, 64))),
		broken("nothing-inside", "X.690 §8.9.1", "an indefinite length of nothing", unhex("3080 0000")),
	}
}
