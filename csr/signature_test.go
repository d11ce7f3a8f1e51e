package csr_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"testing"

	"github.com/chancery-ca/chancery/csr"
)

func TestECDSASignatures(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	null := tlv(0x05)
	for name, test := range map[string]struct {
		change   func(*recipe)
		fragment string
	}{
		"by another key": {func(r *recipe) { r.withPublic(&other.PublicKey) }, "proves possession"},
		"over other octets": {func(r *recipe) {
			sign := r.sign
			r.sign = func([]byte) []byte { return sign([]byte("something else")) }
		}, "proves possession"},
		"empty":                 {func(r *recipe) { r.sign = func([]byte) []byte { return nil } }, "proves possession"},
		"zero":                  {func(r *recipe) { r.sign = func([]byte) []byte { return seq(tlv(2, []byte{0}), tlv(2, []byte{0})) } }, "proves possession"},
		"octets after":          {func(r *recipe) { sign := r.sign; r.sign = func(i []byte) []byte { return append(sign(i), 0) } }, "proves possession"},
		"NULL parameters":       {func(r *recipe) { r.algorithm = seq(oid("1.2.840.10045.4.3.2"), null) }, "the parameters of ecdsa-with-SHA256"},
		"hash it is not":        {func(r *recipe) { r.algorithm = seq(oid("1.2.840.10045.4.3.3")) }, "proves possession"},
		"SHA-1":                 {func(r *recipe) { r.algorithm = seq(oid("1.2.840.10045.4.1")) }, "ecdsa-with-SHA1 is broken"},
		"SHA-224":               {func(r *recipe) { r.algorithm = seq(oid("1.2.840.10045.4.3.1")) }, "1.2.840.10045.4.3.1 is not supported"},
		"of RSA":                {func(r *recipe) { r.algorithm = seq(oid("1.2.840.113549.1.1.11"), null) }, "does not go with the request's ECDSA key"},
		"of RSA-PSS":            {func(r *recipe) { r.algorithm = seq(oid("1.2.840.113549.1.1.10")) }, "does not go with the request's ECDSA key"},
		"of Ed25519":            {func(r *recipe) { r.algorithm = seq(oid("1.3.101.112")) }, "does not go with the request's ECDSA key"},
		"the key's own OID":     {func(r *recipe) { r.algorithm = seq(oid("1.2.840.10045.2.1")) }, "is not supported"},
		"DSA":                   {func(r *recipe) { r.algorithm = seq(oid("1.2.840.10040.4.3")) }, "dsa-with-SHA1 is broken"},
		"an endless identifier": {func(r *recipe) { r.algorithm = seq(tlv(0x06, []byte{0x2a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})) }, "not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecipe()
			test.change(r)
			wants(t, r.der(), csr.Rules{}, test.fragment)
		})
	}
}

func TestRSASignatures(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, fragment := range map[x509.SignatureAlgorithm]string{
		x509.SHA256WithRSA: "", x509.SHA384WithRSA: "", x509.SHA512WithRSA: "",
		x509.SHA256WithRSAPSS: "", x509.SHA384WithRSAPSS: "", x509.SHA512WithRSAPSS: "",
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{SignatureAlgorithm: algorithm}, key)
			if err != nil {
				t.Fatal(err)
			}
			wants(t, der, csr.Rules{}, fragment)
		})
	}
	pkcs1 := func(hash crypto.Hash) func([]byte) []byte {
		return func(info []byte) []byte {
			h := hash.New()
			h.Write(info)
			signature, err := rsa.SignPKCS1v15(rand.Reader, key, hash, h.Sum(nil))
			if err != nil {
				t.Fatal(err)
			}
			return signature
		}
	}
	pss := func(salt int) func([]byte) []byte {
		return func(info []byte) []byte {
			digest := sha256.Sum256(info)
			signature, err := rsa.SignPSS(rand.Reader, key, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: salt})
			if err != nil {
				t.Fatal(err)
			}
			return signature
		}
	}
	null := tlv(0x05)
	sha256ID := seq(oid("2.16.840.1.101.3.4.2.1"), null)
	pssID := func(hash, mask []byte, salt byte) []byte {
		return seq(oid("1.2.840.113549.1.1.10"), seq(tlv(0xa0, hash), tlv(0xa1, seq(oid("1.2.840.113549.1.1.8"), mask)), tlv(0xa2, tlv(2, []byte{salt}))))
	}
	for name, test := range map[string]struct {
		algorithm []byte
		sign      func([]byte) []byte
		fragment  string
	}{
		"parameters absent":      {seq(oid("1.2.840.113549.1.1.11")), pkcs1(crypto.SHA256), ""}, // RFC 4055 §5
		"parameters wrong":       {seq(oid("1.2.840.113549.1.1.11"), seq()), pkcs1(crypto.SHA256), "the parameters of sha256WithRSAEncryption"},
		"parameters twice":       {seq(oid("1.2.840.113549.1.1.11"), null, null), pkcs1(crypto.SHA256), "the parameters of sha256WithRSAEncryption"},
		"SHA-1":                  {seq(oid("1.2.840.113549.1.1.5"), null), pkcs1(crypto.SHA1), "sha1WithRSAEncryption is broken"},
		"MD5":                    {seq(oid("1.2.840.113549.1.1.4"), null), pkcs1(crypto.SHA256), "md5WithRSAEncryption is broken"},
		"MD2":                    {seq(oid("1.2.840.113549.1.1.2"), null), pkcs1(crypto.SHA256), "md2WithRSAEncryption is broken"},
		"no signature algorithm": {seq(oid("1.2.840.113549.1.1.1"), null), pkcs1(crypto.SHA256), "is not supported"},
		"of ECDSA":               {seq(oid("1.2.840.10045.4.3.2")), pkcs1(crypto.SHA256), "does not go with the request's RSA key"},
		"PSS":                    {pssID(sha256ID, sha256ID, 32), pss(32), ""},
		"PSS default, SHA-1":     {seq(oid("1.2.840.113549.1.1.10"), seq()), pss(32), "RSASSA-PSS needs"},
		"PSS absent":             {seq(oid("1.2.840.113549.1.1.10")), pss(32), "RSASSA-PSS needs"},
		"PSS salt of 20":         {pssID(sha256ID, sha256ID, 20), pss(20), "RSASSA-PSS needs"},
		"PSS salt it says not":   {pssID(sha256ID, sha256ID, 32), pss(20), "proves possession"},
		"PSS other mask":         {pssID(sha256ID, seq(oid("1.3.14.3.2.26"), null), 32), pss(32), "RSASSA-PSS needs"},
		"PSS said, PKCS #1 done": {pssID(sha256ID, sha256ID, 32), pkcs1(crypto.SHA256), "proves possession"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecipe().withPublic(&key.PublicKey)
			r.algorithm, r.sign = test.algorithm, test.sign
			wants(t, r.der(), csr.Rules{}, test.fragment)
		})
	}
}

func TestEd25519Signatures(t *testing.T) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecipe().withPublic(public)
	r.sign = func(info []byte) []byte { return ed25519.Sign(key, info) }
	wants(t, r.der(), csr.Rules{}, "does not go with the request's Ed25519 key")
	r.algorithm = seq(oid("1.3.101.112"))
	wants(t, r.der(), csr.Rules{}, "")
	r.algorithm = seq(oid("1.3.101.112"), tlv(0x05))
	wants(t, r.der(), csr.Rules{}, "the parameters of Ed25519")
	r.algorithm = seq(oid("1.3.101.112"))
	r.sign = func(info []byte) []byte { return ed25519.Sign(key, info)[:63] }
	wants(t, r.der(), csr.Rules{}, "proves possession")
}
