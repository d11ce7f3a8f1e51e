package main

import (
	"math/big"
	"sync"
)

// formCases are about the encoding and the fields of a request.
func formCases() []requestCase {
	const fields = "RFC 2986 §4"
	return []requestCase{
		{"good", "accept", "", "", fields, "nothing is wrong with it", func(*request) {}},
		{"version-1", "reject", "version", "", "RFC 2986 §4.1", "version 1, where 0 is the only one", func(r *request) { r.version = number(1) }},
		{"version-negative", "reject", "version", "", "RFC 2986 §4.1", "a negative version", func(r *request) { r.version = number(-1) }},
		{"version-huge", "reject", "version", "", "RFC 2986 §4.1", "2 to the power of 32, which is 0 in 32 bits", func(r *request) { r.version = number(1 << 32) }},
		{"version-padded", "reject", "strict DER", "", "X.690 §8.3.2", "a version with leading zeros", func(r *request) { r.version = unhex("02020000") }},
		{"version-missing", "reject", "version", "", "RFC 2986 §4.1", "no version", func(r *request) { r.version = nil }},
		{"subject-missing", "reject", "subjectPKInfo", "", fields, "no subject", func(r *request) { r.subject = nil }},
		{"trailing-request", "reject", "follows the signature", "", "RFC 2986 §4.2", "a fourth element in the request", func(r *request) { r.end = null }},
		{"trailing-info", "reject", "certificationRequestInfo", "", "RFC 2986 §4.1", "an element after the attributes", func(r *request) { r.tail = null }},
		{"attributes-twice", "reject", "certificationRequestInfo", "", "RFC 2986 §4.1", "the attributes stand twice", func(r *request) { r.tail = explicit(0) }},
		{"attributes-missing", "accept", "", "", "RFC 2986 §4.1", "no attributes, which is not allowed and common", func(r *request) { r.field = func([]byte) []byte { return nil } }},
		{"attributes-empty", "accept", "", "", "RFC 2986 §4.1", "an empty set of attributes", func(r *request) { r.attributes = func([]byte) []byte { return nil } }},
		{"attributes-explicit", "reject", "attributes", "", "RFC 2986 §4.1", "a SET within the tag", func(r *request) { r.field = func(attributes []byte) []byte { return explicit(0, set(attributes)) } }},
		{"attributes-primitive", "reject", "certificationRequestInfo", "", "RFC 2986 §4.1", "a primitive tag", func(r *request) { r.field = func(attributes []byte) []byte { return tlv(0x80, attributes) } }},
		{"attributes-tag-1", "reject", "certificationRequestInfo", "", "RFC 2986 §4.1", "another tag", func(r *request) { r.field = func(attributes []byte) []byte { return explicit(1, attributes) } }},
		{"ber-length", "reject", "strict DER", "", "X.690 §10.1", "a length in long form", func(r *request) { r.version = long(tagInteger, 1, []byte{0}) }},
		{"ber-indefinite", "reject", "strict DER", "", "X.690 §10.1", "an indefinite length", func(r *request) { r.subject = indefinite(tagSequence, contents(r.subject)) }},
		{"ber-boolean", "reject", "strict DER", "", "X.690 §11.1", "critical TRUE as 01", func(r *request) { r.extensions[0].critical = unhex("010101") }},
		{"algorithm-no-parameters", "reject", "signatureAlgorithm", "", "RFC 5758 §3.2", "ECDSA with NULL parameters", func(r *request) { r.outer = seq(oid(idECDSASHA256), null) }},
		{"algorithm-empty", "reject", "signatureAlgorithm", "", "RFC 5280 §4.1.1.2", "an algorithm without an identifier", func(r *request) { r.outer = seq() }},
		{"signature-missing", "reject", "signature", "", "RFC 2986 §4.2", "an OCTET STRING where the signature belongs", func(r *request) { r.end, r.outer = nil, join(r.key.algorithm(), octets([]byte{1})) }},
		{"signature-unused-bits", "reject", "signature", "", "RFC 2986 §4.2", "a signature that is not whole octets", func(r *request) { r.unused, r.signature = 1, append(r.key.sign(r.info()), 0x80) }},
	}
}

// requestKeyCases are about the key that is to be certified.
func requestKeyCases() []requestCase {
	const public, policy = "public key", "the key policy"
	use := func(k key) func(*request) {
		return func(r *request) { r.key = k }
	}
	// info shows another public key; what is signed is signed with the requester's, and the policy comes before the signature
	info := func(info []byte) func(*request) {
		return func(r *request) { r.key = as{key: requester, info: info} }
	}
	point := requester.point()
	off := append([]byte(nil), point...)
	off[64] ^= 1
	compressed := append([]byte{2 | point[64]&1}, point[1:33]...)
	ed := newEd25519("requester Ed25519")
	edInfo := func(octets []byte) []byte { return seq(seq(oid(idEd25519)), bits(0, octets...)) }
	smallOrder := make([]byte, 32)
	smallOrder[0] = 1
	loose := unhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f") // 2^255-18, which is 1
	rsa := rsa2048()
	return []requestCase{
		{"key-p384", "accept", "", "", policy, "P-384", use(newEC("requester P-384", curve384, idP384, hash384, idECDSASHA384))},
		{"key-p521", "accept", "", "", policy, "P-521", use(newEC("requester P-521", curve521, idP521, hash512, idECDSASHA512))},
		{"key-p384-sha256", "accept", "", "", policy, "P-384 with SHA-256", use(newEC("requester P-384", curve384, idP384, hash256, idECDSASHA256))},
		{"key-ed25519", "accept", "", "", policy, "Ed25519", use(ed)},
		{"key-rsa-2048", "accept", "", "", policy, "RSA of 2048 bits", use(rsa)},
		{"key-rsa-3072", "accept", "", "", policy, "RSA of 3072 bits", use(newRSA("RSA-3072", 3072, 65537))},
		{"key-rsa-pss", "accept", "", "", policy, "RSA with RSASSA-PSS", use(rsa.withPSS(hash256, 32, pssIdentifier(pssFields(idSHA256, 32))))},
		{"key-rsa-sha384", "accept", "", "", policy, "RSA with SHA-384", use(rsa.with(hash384, seq(oid(idSHA384RSA), null)))},
		{"key-p224", "reject", public, "", policy, "P-224", use(newEC("requester P-224", curve224, idP224, hash256, idECDSASHA256))},
		{"key-p192", "reject", public, "", policy, "P-192", info(ecInfo(oid(idP192), p192Base()))},
		{"key-secp256k1", "reject", public, "", policy, "secp256k1", info(ecInfo(oid(idSecp256k1), secp256k1Base()))},
		{"key-ed448", "reject", public, "", policy, "Ed448", info(seq(seq(oid(idEd448)), bits(0, join(seed("ed448"), seed("ed448 more"))[:57]...)))},
		{"key-x25519", "reject", public, "", policy, "X25519, which cannot sign", info(seq(seq(oid(idX25519)), bits(0, seed("x25519")...)))},
		{"key-dsa", "reject", public, "", policy, "DSA", info(seq(seq(oid(idDSA), seq(number(23), number(11), number(2))), bits(0, number(4)...)))},
		{"key-ml-dsa", "reject", public, "", policy, "ML-DSA-44", info(seq(seq(oid(idMLDSA44)), bits(0, make([]byte, 1312)...)))},
		{"key-rsa-512", "reject", public, "", policy, "RSA of 512 bits", use(newRSA("RSA-512", 512, 65537))},
		{"key-rsa-1024", "reject", public, "", policy, "RSA of 1024 bits", use(rsa1024())},
		{"key-rsa-2047", "reject", public, "", policy, "RSA of 2047 bits", use(rsa2047())},
		{"key-rsa-2056", "reject", public, "", policy, "RSA of 2056 bits", use(newRSA("RSA-2056", 2056, 65537))},
		{"key-rsa-8192", "reject", public, "", policy, "RSA of 8192 bits", info(rsaInfo(null, seq(integer(new(big.Int).SetBit(new(big.Int).SetBit(new(big.Int), 8191, 1), 0, 1)), number(65537))))},
		{"key-rsa-exponent-3", "reject", public, "", policy, "an exponent of 3", use(newRSA("RSA e 3", 2048, 3))},
		{"key-rsa-exponent-1", "reject", public, "", "RFC 8017 §3.1", "an exponent of 1", info(rsaInfo(null, seq(integer(rsa.modulus), number(1))))},
		{"key-rsa-exponent-33-bits", "reject", public, "", policy, "an exponent of 33 bits, which is 65537 in 32", info(rsaInfo(null, seq(integer(rsa.modulus), number(1<<32+65537))))},
		{"key-rsa-exponent-negative", "reject", public, "", "RFC 8017 §3.1", "a negative exponent", info(rsaInfo(null, seq(integer(rsa.modulus), number(-3))))},
		{"key-rsa-even", "reject", public, "", "RFC 8017 §3.1", "an even modulus", info(rsaInfo(null, seq(integer(new(big.Int).Sub(rsa.modulus, one)), number(65537))))},
		{"key-rsa-small-factor", "reject", public, "", "NIST SP 800-89 §5.3.3", "a modulus that 617 divides", use(smallFactorRSA())},
		{"key-rsa-roca", "reject", public, "", "CVE-2017-15361", "a modulus with the ROCA fingerprint", use(rocaRSA())},
		{"key-rsa-close", "reject", public, "", "CVE-2022-26320", "two primes that are close", use(closeRSA())},
		{"key-rsa-square", "reject", public, "", "FIPS 186-5 §A.1.1", "the square of a prime", info(rsaInfo(null, seq(integer(squareModulus()), number(65537))))},
		{"key-rsa-no-null", "reject", public, "", "RFC 3279 §2.3.1", "RSA without parameters", info(rsaInfo(nil, rsa.public()))},
		{"key-rsa-trailing", "reject", public, "", "RFC 8017 §A.1.1", "a third number", info(rsaInfo(null, seq(integer(rsa.modulus), number(65537), number(1))))},
		{"key-rsa-negative", "reject", public, "", "RFC 8017 §A.1.1", "a negative modulus", info(rsaInfo(null, seq(tlv(tagInteger, rsa.modulus.Bytes()), number(65537))))},
		{"key-rsa-ber", "reject", public, "", "X.690 §10.1", "BER in the key", info(rsaInfo(null, indefinite(tagSequence, contents(rsa.public()))))},
		{"key-ec-off-curve", "reject", public, "", "RFC 5480 §2.2", "a point that is not on the curve", info(ecInfo(oid(idP256), off))},
		{"key-ec-infinity", "reject", public, "", "RFC 5480 §2.2", "the point at infinity", info(ecInfo(oid(idP256), []byte{0}))},
		{"key-ec-compressed", "reject", public, "", "RFC 5480 §2.2", "a compressed point", info(ecInfo(oid(idP256), compressed))},
		{"key-ec-explicit", "reject", public, "", "CVE-2020-0601", "the curve's parameters spelled out", info(ecInfo(explicitP256(), point))},
		{"key-ec-implicit", "reject", public, "", "RFC 5480 §2.1.1", "no curve", info(ecInfo(null, point))},
		{"key-trailing", "reject", public, "", "RFC 5280 §4.1.2.7", "a third element", info(seq(seq(oid(idEC), oid(idP256)), bits(0, point...), null))},
		{"key-empty", "reject", public, "", "RFC 5280 §4.1.2.7", "an empty key", info(seq(seq(oid(idEC), oid(idP256)), bits(0)))},
		{"key-ed25519-short", "reject", public, "", "RFC 8032 §5.1.5", "31 octets", info(edInfo(seed("short")[:31]))},
		{"key-ed25519-null", "reject", public, "", "RFC 8410 §3", "Ed25519 with NULL parameters", info(seq(seq(oid(idEd25519), null), bits(0, ed.spki()[12:]...)))},
		{"key-ed25519-small-order", "reject", public, "", "RFC 8032 §5.1.7", "the neutral element, for which anybody can sign", info(edInfo(smallOrder))},
		{"key-ed25519-loose", "reject", public, "", "RFC 8032 §5.1.3", "a coordinate that is not reduced", info(edInfo(loose))},
		{"key-ed25519-off-curve", "reject", public, "", "RFC 8032 §5.1.3", "octets that are no point", info(edInfo(join([]byte{2}, make([]byte, 31))))},
	}
}

// p192Base is the base point of P-192.
func p192Base() []byte {
	return unhex("04 188da80eb03090f67cbf20eb43a18800f4ff0afd82ff1012 07192b95ffc8da78631011ed6b24cdd573f977a11e794811")
}

// smallFactorRSA is a key of two large primes and a small one.
var smallFactorRSA = sync.OnceValue(func() *rsaKey {
	e := big.NewInt(65537)
	s := &stream{name: "RSA small factor"}
	for {
		if k := rsaOf(e, s.prime(1020, e), s.prime(1019, e), big.NewInt(617)); k.modulus.BitLen() == 2048 {
			return k
		}
	}
})

// rocaRSA is a key whose primes are k·M + (65537^a mod M) for M the product of the first primes, as Infineon's library made them.
var rocaRSA = sync.OnceValue(func() *rsaKey {
	product, generator := big.NewInt(1), big.NewInt(65537)
	for p, count := int64(2), 0; count < 126; p++ {
		if big.NewInt(p).ProbablyPrime(0) {
			product.Mul(product, big.NewInt(p))
			count++
		}
	}
	s := &stream{name: "RSA ROCA"}
	prime := func() *big.Int {
		residue := new(big.Int).Exp(generator, s.number(32), product)
		for {
			k := s.number(1025 - product.BitLen())
			candidate := new(big.Int).Add(k.Mul(k, product), residue)
			if candidate.BitLen() == 1024 && candidate.ProbablyPrime(0) {
				return candidate
			}
		}
	}
	for {
		if k := rsaOf(generator, prime(), prime()); k.modulus.BitLen() == 2048 {
			return k
		}
	}
})

// closeRSA is a key of a prime and the one after it.
var closeRSA = sync.OnceValue(func() *rsaKey {
	e := big.NewInt(65537)
	s := &stream{name: "RSA close"}
	p := s.prime(1024, e)
	return rsaOf(e, p, nextPrime(new(big.Int).Add(p, big.NewInt(2)), e))
})

// squareModulus is the square of a prime.
var squareModulus = sync.OnceValue(func() *big.Int {
	s := &stream{name: "RSA square"}
	p := s.prime(1024, big.NewInt(65537))
	return p.Mul(p, p)
})
