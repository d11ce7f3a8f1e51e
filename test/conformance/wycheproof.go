package main

import (
	"crypto"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/c2sp/wycheproof"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/keypolicy"
)

// signatureFiles are the vectors of the algorithms that chain.AlgorithmFor returns.
var signatureFiles = []string{
	"ecdsa_secp256r1_sha256_test.json", "ecdsa_secp384r1_sha384_test.json", "ecdsa_secp521r1_sha512_test.json", "ed25519_test.json",
	"rsa_signature_2048_sha256_test.json", "rsa_signature_3072_sha256_test.json", "rsa_signature_4096_sha256_test.json",
}

// smallExponents are the cases with valid signatures by keys that the key policy refuses.
var smallExponents = []string{"rsa_signature_2048_sha256_test.json 258", "rsa_signature_2048_sha256_test.json 259", "rsa_signature_3072_sha256_test.json 259"}

// signatures are Wycheproof's, through the key policy and chain.Algorithm.
func signatures() (corpus, error) {
	c := corpus{name: "Wycheproof signatures", about: "ECDSA, Ed25519 and RSA signatures, through the key policy and `chain.Algorithm`", deviations: make(map[string]string)}
	for _, name := range smallExponents {
		c.deviations[name] = "the key's public exponent is 3; the key policy wants 65537"
	}
	for _, name := range signatureFiles {
		text, err := fs.ReadFile(wycheproof.TestVectors, name)
		if err != nil {
			return c, err
		}
		var vectors struct {
			TestGroups []struct {
				PublicKeyDer string `json:"publicKeyDer"`
				Tests        []struct {
					ID     int    `json:"tcId"`
					Msg    string `json:"msg"`
					Sig    string `json:"sig"`
					Result string `json:"result"`
				} `json:"tests"`
			} `json:"testGroups"`
		}
		if err := json.Unmarshal(text, &vectors); err != nil {
			return c, err
		}
		for _, group := range vectors.TestGroups {
			for _, v := range group.Tests {
				t := test{
					name:   fmt.Sprintf("%s %d", name, v.ID),
					accept: v.Result == "valid",
					ours:   func() error { return signature(group.PublicKeyDer, v.Msg, v.Sig, keypolicy.Default().Check) },
					standard: func() error {
						return signature(group.PublicKeyDer, v.Msg, v.Sig, func(crypto.PublicKey) error { return nil })
					},
				}
				if v.Result == "acceptable" {
					t.skip = "the suite takes either answer"
				}
				c.tests = append(c.tests, t)
			}
		}
	}
	return c, nil
}

// signature checks a signature over a message by a key; all are hexadecimal digits.
func signature(spki, message, value string, check func(crypto.PublicKey) error) error {
	var octets [3][]byte
	for i, digits := range []string{spki, message, value} {
		var err error
		if octets[i], err = hex.DecodeString(digits); err != nil {
			return err
		}
	}
	public, err := x509.ParsePKIXPublicKey(octets[0])
	if err != nil {
		return err
	}
	if err := check(public); err != nil {
		return err
	}
	algorithm, err := chain.AlgorithmFor(public)
	if err != nil {
		return err
	}
	return algorithm.Verify(&x509.Certificate{PublicKey: public}, octets[1], octets[2])
}
