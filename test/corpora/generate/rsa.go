package main

import (
	"crypto"
	"math/big"
	"strconv"
	"sync"
)

// rsaKey signs with RSASSA-PKCS1-v1_5, or RSASSA-PSS with a fixed salt. crypto/rsa neither makes keys from a seed nor signs with bad ones.
type rsaKey struct {
	modulus, exponent, private *big.Int
	hash                       crypto.Hash
	identifier                 []byte
	salt                       int // for PSS
	pss                        bool
}

// stream yields octets from a name.
type stream struct {
	name  string
	count int
}

func (s *stream) number(bits int) *big.Int {
	var out []byte
	for len(out)*8 < bits {
		s.count++
		out = append(out, seed(s.name+" "+strconv.Itoa(s.count))...)
	}
	n := new(big.Int).SetBytes(out)
	return n.Rsh(n, uint(n.BitLen()-min(bits, n.BitLen())))
}

var one = big.NewInt(1)

// prime returns the first prime above a number of the given length whose two highest bits are set, which goes with the exponent.
func (s *stream) prime(bits int, exponent *big.Int) *big.Int {
	n := s.number(bits)
	n.SetBit(n, bits-1, 1).SetBit(n, bits-2, 1).SetBit(n, 0, 1)
	return nextPrime(n, exponent)
}

func nextPrime(n, exponent *big.Int) *big.Int {
	two, divisor := big.NewInt(2), new(big.Int)
	coprime := func(a, b *big.Int) bool { return divisor.GCD(nil, nil, a, b).Cmp(one) == 0 }
	for {
		// a common divisor is found faster than a witness
		if coprime(n, smallPrimes()) && n.ProbablyPrime(0) && coprime(new(big.Int).Sub(n, one), exponent) {
			return n
		}
		n = new(big.Int).Add(n, two)
	}
}

// smallPrimes is the product of the primes below 2000.
var smallPrimes = sync.OnceValue(func() *big.Int {
	product := big.NewInt(1)
	for p := int64(2); p < 2000; p++ {
		if prime := big.NewInt(p); prime.ProbablyPrime(0) {
			product.Mul(product, prime)
		}
	}
	return product
})

// made holds keys by their names, since making one takes a while.
var made sync.Map

// newRSA returns a key of the given length for SHA-256.
func newRSA(name string, bits int, exponent int64) *rsaKey {
	if k, ok := made.Load(name); ok {
		return k.(*rsaKey) //nolint:forcetypeassert // nothing else is stored
	}
	s := &stream{name: name}
	e := big.NewInt(exponent)
	k := rsaOf(e, s.prime(bits-bits/2, e), s.prime(bits/2, e))
	made.Store(name, k)
	return k
}

// rsaOf returns the key of primes.
func rsaOf(exponent *big.Int, primes ...*big.Int) *rsaKey {
	modulus, phi := big.NewInt(1), big.NewInt(1)
	for _, p := range primes {
		modulus.Mul(modulus, p)
		phi.Mul(phi, new(big.Int).Sub(p, one))
	}
	return &rsaKey{
		modulus: modulus, exponent: exponent, private: new(big.Int).ModInverse(exponent, phi),
		hash: crypto.SHA256, identifier: seq(oid(idSHA256RSA), null),
	}
}

// with returns the same key with another hash and algorithm identifier.
func (k *rsaKey) with(hash crypto.Hash, identifier []byte) *rsaKey {
	other := *k
	other.hash, other.identifier = hash, identifier
	return &other
}

// withPSS returns the same key for RSASSA-PSS.
func (k *rsaKey) withPSS(hash crypto.Hash, salt int, identifier []byte) *rsaKey {
	other := k.with(hash, identifier)
	other.pss, other.salt = true, salt
	return other
}

func (k *rsaKey) spki() []byte { return rsaInfo(null, k.public()) }

// rsaInfo is a SubjectPublicKeyInfo of parameters and a key.
func rsaInfo(parameters, public []byte) []byte {
	return seq(seq(oid(idRSA), parameters), bits(0, public...))
}

// public returns the RSAPublicKey.
func (k *rsaKey) public() []byte { return seq(integer(k.modulus), integer(k.exponent)) }

func (k *rsaKey) algorithm() []byte { return k.identifier }

func (k *rsaKey) sign(message []byte) []byte {
	size := (k.modulus.BitLen() + 7) / 8
	encoded := k.pkcs1(message, size)
	if k.pss {
		encoded = k.encodePSS(message, (k.modulus.BitLen()+6)/8)
	}
	signature := new(big.Int).Exp(new(big.Int).SetBytes(encoded), k.private, k.modulus)
	return signature.FillBytes(make([]byte, size))
}

// pkcs1 is EMSA-PKCS1-v1_5 (RFC 8017 §9.2).
func (k *rsaKey) pkcs1(message []byte, size int) []byte {
	identifiers := map[crypto.Hash]string{
		crypto.MD5: "1.2.840.113549.2.5", crypto.SHA1: idSHA1, crypto.SHA256: idSHA256, crypto.SHA384: idSHA384, crypto.SHA512: idSHA512,
	}
	info := seq(seq(oid(identifiers[k.hash]), null), octets(digest(k.hash, message)))
	padding := make([]byte, max(size-3-len(info), 0))
	for i := range padding {
		padding[i] = 0xff
	}
	return join([]byte{0, 1}, padding, []byte{0}, info)
}

// encodePSS is EMSA-PSS (RFC 8017 §9.1.1) with MGF1 of the same hash.
func (k *rsaKey) encodePSS(message []byte, size int) []byte {
	salt := make([]byte, k.salt)
	for i := range salt {
		salt[i] = byte(i + 1)
	}
	h := digest(k.hash, join(make([]byte, 8), digest(k.hash, message), salt))
	block := join(make([]byte, size-len(salt)-len(h)-2), []byte{1}, salt)
	for i := range block {
		counter := byte(i / len(h))
		block[i] ^= digest(k.hash, join(h, []byte{0, 0, 0, counter}))[i%len(h)]
	}
	if spare := 8*size - (k.modulus.BitLen() - 1); spare > 0 {
		block[0] &= 0xff >> spare
	}
	return join(block, h, []byte{0xbc})
}

// pssIdentifier is an AlgorithmIdentifier of RSASSA-PSS with its parameters' fields.
func pssIdentifier(fields ...[]byte) []byte { return seq(oid(idPSS), seq(fields...)) }

// pssFields are the parameters for one hash throughout.
func pssFields(hash string, salt int64) []byte {
	algorithm := seq(oid(hash), null)
	return join(explicit(0, algorithm), explicit(1, seq(oid(idMGF1), algorithm)), explicit(2, number(salt)))
}

// rsa2048 is the RSA key of most cases.
func rsa2048() *rsaKey { return newRSA("RSA-2048", 2048, 65537) }

// rsa1024 is a key of the size that was enough once.
func rsa1024() *rsaKey { return newRSA("RSA-1024", 1024, 65537) }
