package main

import (
	"math/big"
	"sync"
)

// keyCases are about SubjectPublicKeyInfo.
func keyCases() []certCase {
	const section, rsa, ec = "RFC 5280 §4.1.2.7", "RFC 3279 §2.3.1", "RFC 5480 §2.1.1"
	spki := func(info []byte) func(*draft) {
		return func(d *draft) { d.spki = info }
	}
	point := leafKey.point()
	compressed := append([]byte{2 | point[64]&1}, point[1:33]...)
	hybrid := append([]byte{6 | point[64]&1}, point[1:]...)
	off := append([]byte(nil), point...)
	off[64] ^= 1
	key := rsa2048()
	even := new(big.Int).Add(key.modulus, one)
	enciphers := func(info []byte) func(*draft) {
		return func(d *draft) {
			d.spki = info
			d.put(idKeyUsage, bits(5, 0xa0))
		}
	}
	return []certCase{
		{"key-p384", accept, "-", ec, "P-384", spki(newEC("leaf P-384", curve384, idP384, hash384, idECDSASHA384).spki())},
		{"key-p521", accept, "-", ec, "P-521", spki(newEC("leaf P-521", curve521, idP521, hash512, idECDSASHA512).spki())},
		{"key-ed25519", accept, "-", "RFC 8410 §4", "Ed25519", spki(newEd25519("leaf Ed25519").spki())},
		{"key-rsa", accept, "-", rsa, "RSA of 2048 bits", spki(key.spki())},
		{"key-rsa-enciphers", accept, "-", rsa, "RSA with keyEncipherment", enciphers(key.spki())},
		{"key-ec-enciphers", nonconforming, "key-usage-algorithm", "RFC 8813 §3", "keyEncipherment with an EC key", enciphers(leafKey.spki())},
		{"key-ed25519-enciphers", nonconforming, "key-usage-algorithm", "RFC 9295 §3", "keyEncipherment with an Ed25519 key", enciphers(newEd25519("leaf Ed25519").spki())},
		{"key-trailing", malformed, "key-fields", section, "a third element in SubjectPublicKeyInfo", spki(seq(seq(oid(idEC), oid(idP256)), bits(0, point...), null))},
		{"key-octets", malformed, "key-fields", section, "an OCTET STRING as key", spki(seq(seq(oid(idEC), oid(idP256)), octets(point)))},
		{"key-algorithm-trailing", malformed, "algorithm-fields", "RFC 5280 §4.1.1.2", "an element after the curve", spki(seq(seq(oid(idEC), oid(idP256), null), bits(0, point...)))},
		{"key-unused-bits", malformed, "key-octets", section, "a key that is not whole octets", spki(seq(seq(oid(idEC), oid(idP256)), bits(4, append(append([]byte(nil), point[:64]...), point[64]&0xf0)...)))},
		{"key-empty", malformed, "key-octets", section, "an empty key", spki(seq(seq(oid(idEC), oid(idP256)), bits(0)))},
		{"key-unknown", nonconforming, "key-unknown", section, "a key of an algorithm that nobody knows", spki(seq(seq(oid(idPrivate)), bits(0, seed("unknown")...)))},

		{"ec-point-off-curve", malformed, "crypto-x509", "RFC 5480 §2.2", "the point is not on the curve", spki(ecInfo(oid(idP256), off))},
		{"ec-point-infinity", malformed, "key-point", "RFC 5480 §2.2", "the point at infinity", spki(ecInfo(oid(idP256), []byte{0}))},
		{"ec-point-hybrid", malformed, "key-point", "RFC 5480 §2.2", "the hybrid form, which is not allowed", spki(ecInfo(oid(idP256), hybrid))},
		{"ec-point-compressed", unread, "key-compressed", "RFC 5480 §2.2", "the compressed form, which may be left out by readers", spki(ecInfo(oid(idP256), compressed))},
		{"ec-point-short", malformed, "key-point", "RFC 5480 §2.2", "63 octets of coordinates", spki(ecInfo(oid(idP256), point[:64]))},
		{"ec-point-of-p384", malformed, "key-point", "RFC 5480 §2.2", "a point of P-384 on P-256", spki(ecInfo(oid(idP256), newEC("leaf P-384", curve384, idP384, hash384, idECDSASHA384).point()))},
		{"ec-point-in-octets", malformed, "key-point", "RFC 5480 §2.2", "the point in an OCTET STRING in the BIT STRING", spki(ecInfo(oid(idP256), octets(point)))},
		{"ec-explicit", malformed, "key-parameters", ec, "the curve's parameters spelled out", spki(ecInfo(explicitP256(), point))},
		{"ec-implicit", malformed, "key-parameters", ec, "the curve is taken from the issuer", spki(ecInfo(null, point))},
		{"ec-no-curve", malformed, "key-parameters", ec, "no curve", spki(ecInfo(nil, point))},
		{"ec-secp256k1", unread, "key-curve", "RFC 5480 §2.1.1.1", "a curve that PKIX does not name", spki(ecInfo(oid(idSecp256k1), secp256k1Base()))},

		{"rsa-no-null", malformed, "key-parameters", rsa, "RSA without parameters", spki(rsaInfo(nil, key.public()))},
		{"rsa-key-parameters", malformed, "key-parameters", rsa, "an INTEGER as parameters", spki(rsaInfo(number(0), key.public()))},
		{"rsa-trailing", malformed, "key-rsa", rsa, "a third number", spki(rsaInfo(null, seq(integer(key.modulus), number(65537), number(1))))},
		{"rsa-after", malformed, "key-rsa", rsa, "octets after RSAPublicKey", spki(rsaInfo(null, join(key.public(), null)))},
		{"rsa-modulus-negative", malformed, "key-rsa", rsa, "the modulus without the octet for the sign", spki(rsaInfo(null, seq(tlv(tagInteger, key.modulus.Bytes()), number(65537))))},
		{"rsa-modulus-zero", malformed, "key-rsa", rsa, "a modulus of zero", spki(rsaInfo(null, seq(number(0), number(65537))))},
		{"rsa-modulus-padded", malformed, "key-rsa", "X.690 §8.3.2", "two zero octets before the modulus", spki(rsaInfo(null, seq(tlv(tagInteger, []byte{0, 0}, key.modulus.Bytes()), number(65537))))},
		{"rsa-modulus-even", malformed, "key-rsa", "RFC 8017 §3.1", "an even modulus", spki(rsaInfo(null, seq(integer(even), number(65537))))},
		{"rsa-exponent-one", malformed, "key-rsa", "RFC 8017 §3.1", "an exponent of one: a message is its own signature", spki(rsaInfo(null, seq(integer(key.modulus), number(1))))},
		{"rsa-exponent-even", malformed, "key-rsa", "RFC 8017 §3.1", "an even exponent", spki(rsaInfo(null, seq(integer(key.modulus), number(65536))))},
		{"rsa-1024", nonconforming, "key-weak", "RFC 9325 §4.5", "1024 bits", spki(rsa1024().spki())},
		{"rsa-2047", nonconforming, "key-weak", "RFC 9325 §4.5", "2047 bits", spki(rsa2047().spki())},

		{"ed25519-short", malformed, "key-size", "RFC 8410 §4", "31 octets", spki(seq(seq(oid(idEd25519)), bits(0, seed("short")[:31]...)))},
		{"ed25519-parameters", malformed, "key-parameters", "RFC 8410 §3", "Ed25519 with NULL parameters", spki(seq(seq(oid(idEd25519), null), bits(0, newEd25519("leaf Ed25519").spki()[12:]...)))},
		{"x448-long", malformed, "key-size", "RFC 8410 §4", "57 octets of X448", spki(seq(seq(oid("1.3.101.111")), bits(0, join(seed("x448"), seed("x448 more"))[:57]...)))},
	}
}

// explicitP256 is SpecifiedECDomain of P-256 (RFC 3279 §2.3.5), of which CVE-2020-0601 was made.
func explicitP256() []byte {
	params := curve256.Params()
	size := func(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }
	base := append([]byte{4}, append(size(params.Gx), size(params.Gy)...)...)
	a := new(big.Int).Sub(params.P, big.NewInt(3))
	return seq(number(1), seq(oid("1.2.840.10045.1.1"), integer(params.P)), seq(octets(size(a)), octets(size(params.B))), octets(base), integer(params.N), number(1))
}

// secp256k1Base is the base point of secp256k1, the public key of the private key 1.
func secp256k1Base() []byte {
	return unhex("04 79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798 483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8")
}

// rsa2047 is a key whose modulus has an odd number of bits.
var rsa2047 = sync.OnceValue(func() *rsaKey {
	s := &stream{name: "RSA-2047"}
	e := big.NewInt(65537)
	return rsaOf(e, s.prime(1024, e), s.prime(1023, e))
})
