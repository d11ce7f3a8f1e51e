package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommitted sees to it that what is committed is what the generator makes.
func TestCommitted(t *testing.T) {
	all, err := corpora()
	if err != nil {
		t.Fatal(err)
	}
	const dir = ".."
	for path, want := range all {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator makes (%v); run: go run ./test/corpora/generate", path, err)
		}
	}
	var failed error
	for _, path := range committed(os.DirFS(dir), &failed) {
		if _, ok := all[path]; !ok {
			t.Errorf("%s is of no case; run: go run ./test/corpora/generate", path)
		}
	}
	if failed != nil {
		t.Error(failed)
	}
}

// TestSignatures sees to it that a case has the defect that it is about and no other: except where the signature is what is wrong, it is
// good by crypto/ecdsa, crypto/ed25519 or crypto/rsa, which know nothing of X.509.
func TestSignatures(t *testing.T) {
	check := func(name string, k key, encoding []byte) {
		t.Helper()
		message, rest := first(contents(encoding))
		_, rest = first(rest)
		signature, _ := first(rest)
		if !verifies(k, message, contents(signature)[1:]) {
			t.Errorf("%s: the signature is not good", name)
		}
	}
	for _, group := range certificateCases() {
		for _, c := range group.cases {
			if strings.HasPrefix(c.name, "signature-") {
				continue
			}
			d := group.from()
			c.change(d)
			check("certs: "+c.name, d.key, d.sign())
		}
	}
	for _, c := range requestCases() {
		if strings.HasPrefix(c.name, "signature-") || strings.HasPrefix(c.name, "proof-") {
			continue
		}
		r := requestDraft()
		c.change(r)
		check("csr: "+c.name, r.key, r.sign())
	}
	for _, c := range listCases() {
		if strings.HasPrefix(c.name, "signature-") {
			continue
		}
		l := listDraft()
		c.change(l)
		check("crl: "+c.name, l.key, l.sign())
	}
}

func verifies(k key, message, signature []byte) bool {
	switch k := k.(type) {
	case *ecKey:
		return ecdsa.VerifyASN1(&k.private.PublicKey, digest(k.hash, message), signature)
	case edKey:
		return ed25519.Verify(k.private.Public().(ed25519.PublicKey), message, signature)
	case as:
		return verifies(k.key, message, signature)
	case *rsaKey:
		public := &rsa.PublicKey{N: k.modulus, E: int(k.exponent.Int64())}
		if k.modulus.BitLen() < 1024 {
			return true // crypto/rsa refuses it
		}
		if k.pss {
			return rsa.VerifyPSS(public, k.hash, digest(k.hash, message), signature, &rsa.PSSOptions{SaltLength: k.salt}) == nil
		}
		return rsa.VerifyPKCS1v15(public, k.hash, digest(k.hash, message), signature) == nil
	}
	return false
}

// TestDeterministic sees to it that a second run in the same process makes the same, too.
func TestDeterministic(t *testing.T) {
	k := newP256("a key")
	if !bytes.Equal(k.sign([]byte("a")), k.sign([]byte("a"))) || !bytes.Equal(k.spki(), newP256("a key").spki()) {
		t.Error("ECDSA signatures or keys differ from one time to the next")
	}
	if n := newRSA("a key", 512, 65537); n.modulus.Cmp(newRSA("a key", 512, 65537).modulus) != 0 {
		t.Error("RSA keys differ from one time to the next")
	}
	if crypto.SHA256.Size() != len(seed("a")) {
		t.Error("a seed has another length than SHA-256")
	}
}
