package csr_test

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"math/big"
	"slices"
	"testing"

	"golang.org/x/crypto/cryptobyte"

	"github.com/chancery-ca/chancery/ca/keypolicy"
	"github.com/chancery-ca/chancery/csr"
)

func TestEveryKindOfKey(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"P-256": testKey(), "P-384": p384, "P-521": p521, "Ed25519": ed, "RSA-2048": rsa2048} {
		t.Run(name, func(t *testing.T) {
			der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
			if err != nil {
				t.Fatal(err)
			}
			got := wants(t, der, csr.Rules{}, "")
			spki, err := x509.MarshalPKIXPublicKey(key.Public())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.SPKI(), spki) || got.KeyHash() != sha256.Sum256(spki) {
				t.Error("the key is another")
			}
		})
	}
}

func TestKeyEncodings(t *testing.T) {
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki := func(algorithm []byte, key ...[]byte) []byte {
		return seq(algorithm, tlv(0x03, append([][]byte{{0}}, key...)...))
	}
	public := func(key crypto.PublicKey) []byte { return newRecipe().withPublic(key).spki }
	point, err := testKey().PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	offCurve := bytes.Clone(point)
	offCurve[64] ^= 1
	compressed := append([]byte{2 + offCurve[64]&1}, point[1:33]...)
	ecKey, p256 := oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")
	ed := make([]byte, 32)
	ed[0] = 9
	integer := func(n *big.Int) []byte {
		var b cryptobyte.Builder
		b.AddASN1BigInt(n)
		return b.BytesOrPanic()
	}
	modulus := new(big.Int).Lsh(big.NewInt(1), 2047)
	e, null := integer(big.NewInt(65537)), tlv(0x05)
	rsaID := oid("1.2.840.113549.1.1.1")
	for name, test := range map[string]struct {
		spki     []byte
		fragment string
	}{
		"X25519":                      {public(x25519.PublicKey()), "keys of the algorithm 1.3.101.110 are not certified"},
		"RSA-PSS key":                 {spki(seq(oid("1.2.840.113549.1.1.10")), seq(integer(modulus), e)), "keys of the algorithm 1.2.840.113549.1.1.10"},
		"P-192":                       {spki(seq(ecKey, oid("1.2.840.10045.3.1.1")), point), "keys on the curve 1.2.840.10045.3.1.1"},
		"secp256k1":                   {spki(seq(ecKey, oid("1.3.132.0.10")), point), "keys on the curve 1.3.132.0.10"},
		"curve spelled out":           {spki(seq(ecKey, seq(p256)), point), "not given by name"},
		"curve implied":               {spki(seq(ecKey, null), point), "not given by name"},
		"curve missing":               {spki(seq(ecKey), point), "not given by name"},
		"curve twice":                 {spki(seq(ecKey, p256, p256), point), "not given by name"},
		"point off the curve":         {spki(seq(ecKey, p256), offCurve), "not on the curve P-256"},
		"point at infinity":           {spki(seq(ecKey, p256), []byte{0}), "not in uncompressed form"},
		"point compressed":            {spki(seq(ecKey, p256), compressed), "not in uncompressed form"},
		"point missing":               {spki(seq(ecKey, p256)), "not in uncompressed form"},
		"point of P-256 as P-384":     {spki(seq(ecKey, oid("1.3.132.0.34")), point), "not on the curve P-384"},
		"point too long":              {spki(seq(ecKey, p256), point, []byte{0}), "not on the curve P-256"},
		"element in the SPKI":         {seq(seq(ecKey, p256), tlv(0x03, []byte{0}, point), null), "malformed SubjectPublicKeyInfo"},
		"unused bits":                 {seq(seq(ecKey, p256), tlv(0x03, []byte{1}, point, []byte{0})), "malformed SubjectPublicKeyInfo"},
		"Ed25519 with NULL":           {spki(seq(oid("1.3.101.112"), null), ed), "no parameters and 32 octets"},
		"Ed25519 short":               {spki(seq(oid("1.3.101.112")), ed[1:]), "no parameters and 32 octets"},
		"Ed25519 small order":         {spki(seq(oid("1.3.101.112")), make([]byte, 32)), "small order"},
		"RSA without NULL":            {spki(seq(rsaID), seq(integer(modulus), e)), "parameters of an RSA key are NULL"},
		"RSA with another parameter":  {spki(seq(rsaID, seq()), seq(integer(modulus), e)), "parameters of an RSA key are NULL"},
		"RSA with a third number":     {spki(seq(rsaID, null), seq(integer(modulus), e, e)), "malformed RSAPublicKey"},
		"RSA with octets after":       {spki(seq(rsaID, null), seq(integer(modulus), e), null), "malformed RSAPublicKey"},
		"RSA negative modulus":        {spki(seq(rsaID, null), seq(integer(new(big.Int).Neg(modulus)), e)), "malformed RSAPublicKey"},
		"RSA modulus 0":               {spki(seq(rsaID, null), seq(integer(new(big.Int)), e)), "malformed RSAPublicKey"},
		"RSA negative exponent":       {spki(seq(rsaID, null), seq(integer(modulus), integer(big.NewInt(-3)))), "malformed RSAPublicKey"},
		"RSA modulus not shortest":    {spki(seq(rsaID, null), seq(tlv(0x02, []byte{0, 0}, modulus.Bytes()), e)), "malformed RSAPublicKey"},
		"RSA exponent of 32 bits":     {spki(seq(rsaID, null), seq(integer(modulus), integer(big.NewInt(1<<32-1)))), "the RSA exponent has 32 bits"},
		"RSA exponent of 2048 bits":   {spki(seq(rsaID, null), seq(integer(modulus), integer(modulus))), "the RSA exponent has 2048 bits"},
		"RSA modulus of 100,000 bits": {spki(seq(rsaID, null), seq(integer(new(big.Int).Lsh(modulus, 98000)), e)), "RSA with 100048 bits is not allowed"},
		"RSA even modulus":            {spki(seq(rsaID, null), seq(integer(modulus), e)), "the RSA modulus is even"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecipe()
			r.spki = test.spki
			wants(t, r.der(), csr.Rules{}, test.fragment)
		})
	}
}

func TestRulesCarryTheKeyPolicy(t *testing.T) {
	policy, err := keypolicy.New(keypolicy.Config{Allow: []keypolicy.Kind{keypolicy.Ed25519}})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, newRecipe().der(), csr.Rules{Keys: policy}, "P-256 is not allowed by the key policy; use Ed25519")
	hash := sha256.Sum256(newRecipe().spki)
	policy, err = keypolicy.New(keypolicy.Config{Blocked: func(h [32]byte) bool { return slices.Equal(h[:], hash[:]) }})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, newRecipe().der(), csr.Rules{Keys: policy}, "on the list of compromised keys")
}
