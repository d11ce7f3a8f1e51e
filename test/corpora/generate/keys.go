package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	_ "crypto/md5"  // cases that have to be refused for it
	_ "crypto/sha1" // likewise
	"crypto/sha256"
	_ "crypto/sha512" // SHA-384 and SHA-512
	"math/big"
)

// key signs what the corpora hold. Every key is derived from its name, so that the same bytes come out each time; none of them guards
// anything.
type key interface {
	// spki returns the DER SubjectPublicKeyInfo.
	spki() []byte
	// algorithm returns the DER AlgorithmIdentifier of its signatures.
	algorithm() []byte
	sign(message []byte) []byte
}

// seed returns the octets that a key is made of.
func seed(name string) []byte {
	sum := sha256.Sum256([]byte("throw-away key of Chancery's test corpora: " + name))
	return sum[:]
}

// keyID returns a subject key identifier: the leftmost 160 bits of SHA-256 over the key (RFC 7093 §2, method 1).
func keyID(k key) []byte {
	// the key is the last element and ends the whole, so that what the BIT STRING holds is easiest found from its length
	info := k.spki()
	_, contents := split(info)
	_, rest := first(contents)
	_, value := split(rest)
	sum := sha256.Sum256(value[1:])
	return sum[:20]
}

// first cuts the first element off a list of DER elements.
func first(list []byte) (element, rest []byte) {
	header, contents := split(list)
	n := len(header) + len(contents)
	return list[:n], list[n:]
}

// split cuts the first element of list into its header and its contents.
func split(list []byte) (header, contents []byte) {
	n, at := int(list[1]), 2
	if n >= 0x80 {
		octets := n & 0x7f
		n = 0
		for _, octet := range list[2 : 2+octets] {
			n = n<<8 | int(octet)
		}
		at += octets
	}
	return list[:at], list[at : at+n]
}

// ecKey signs with ECDSA, deterministically (RFC 6979).
type ecKey struct {
	private   *ecdsa.PrivateKey
	curveID   string
	hash      crypto.Hash
	signature string // object identifier
}

func newEC(name string, curve elliptic.Curve, curveID string, hash crypto.Hash, signature string) *ecKey {
	order := curve.Params().N
	scalar := new(big.Int).SetBytes(join(seed(name+" 1"), seed(name+" 2"), seed(name+" 3")))
	scalar.Mod(scalar, new(big.Int).Sub(order, big.NewInt(1)))
	scalar.Add(scalar, big.NewInt(1))
	private, _ := ecdsa.ParseRawPrivateKey(curve, scalar.FillBytes(make([]byte, (order.BitLen()+7)/8))) // in range by its making
	return &ecKey{private, curveID, hash, signature}
}

func newP256(name string) *ecKey {
	return newEC(name, elliptic.P256(), idP256, crypto.SHA256, idECDSASHA256)
}

// point returns the uncompressed point.
func (k *ecKey) point() []byte {
	point, _ := k.private.PublicKey.Bytes() // it is on the curve
	return point
}

func (k *ecKey) spki() []byte { return ecInfo(oid(k.curveID), k.point()) }

// ecInfo is a SubjectPublicKeyInfo of parameters and a point.
func ecInfo(parameters, point []byte) []byte {
	return seq(seq(oid(idEC), parameters), bits(0, point...))
}

func (k *ecKey) algorithm() []byte { return seq(oid(k.signature)) }

func (k *ecKey) sign(message []byte) []byte {
	signature, _ := k.private.Sign(nil, digest(k.hash, message), k.hash) // nothing in it can fail; the tests verify all signatures
	return signature
}

func digest(hash crypto.Hash, message []byte) []byte {
	h := hash.New()
	h.Write(message)
	return h.Sum(nil)
}

// edKey signs with Ed25519.
type edKey struct{ private ed25519.PrivateKey }

func newEd25519(name string) edKey { return edKey{ed25519.NewKeyFromSeed(seed(name))} }

func (k edKey) spki() []byte {
	return seq(seq(oid(idEd25519)), bits(0, k.private.Public().(ed25519.PublicKey)...)) //nolint:forcetypeassert // it is one
}

func (k edKey) algorithm() []byte { return seq(oid(idEd25519)) }

func (k edKey) sign(message []byte) []byte { return ed25519.Sign(k.private, message) }

// as is a key that signs by another algorithm identifier, or shows another public key, than its own.
type as struct {
	key
	info, identifier []byte
	signature        func(message []byte) []byte
}

func (a as) spki() []byte {
	if a.info != nil {
		return a.info
	}
	return a.key.spki()
}

func (a as) algorithm() []byte {
	if a.identifier != nil {
		return a.identifier
	}
	return a.key.algorithm()
}

func (a as) sign(message []byte) []byte {
	if a.signature != nil {
		return a.signature(message)
	}
	return a.key.sign(message)
}
