package chain_test

import (
	"crypto"
	"crypto/dsa" //nolint:staticcheck // a key that cannot issue
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
)

func TestAlgorithms(t *testing.T) {
	for kind, want := range map[string]x509.SignatureAlgorithm{
		"P-256": x509.ECDSAWithSHA256, "P-384": x509.ECDSAWithSHA384, "P-521": x509.ECDSAWithSHA512, "Ed25519": x509.PureEd25519,
		"RSA-2048": x509.SHA256WithRSA,
	} {
		t.Run(kind, func(t *testing.T) {
			key := leafKeys()[kind]
			algorithm, err := chain.AlgorithmFor(key.Public())
			if err != nil {
				t.Fatal(err)
			}
			message := []byte("a message")
			signature, err := algorithm.Sign(message, key, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			issuer := leafIssuer(t, key)
			if err := issuer.CheckSignature(want, message, signature); err != nil {
				t.Errorf("it is not %s: %v", want, err)
			}
			if err := algorithm.Verify(issuer, message, signature); err != nil {
				t.Error(err)
			}
			if algorithm.Verify(issuer, []byte("another message"), signature) == nil {
				t.Error("a signature over another message verifies")
			}
		})
	}
}

func TestKeysThatDoNotIssue(t *testing.T) {
	weak, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		key  crypto.PublicKey
		want string
	}{
		"P-224":         {weak.Public(), "P-224 cannot sign certificates here; use P-256, P-384 or P-521"},
		"DSA":           {&dsa.PublicKey{}, "*dsa.PublicKey cannot sign certificates here"},
		"a private key": {weak, "*ecdsa.PrivateKey cannot sign certificates here"},
		"nothing":       {nil, "cannot sign certificates here"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := chain.AlgorithmFor(test.key)
			wantError(t, err, test.want)
		})
	}
}

// brokenKey is a key in a device that fails.
type brokenKey struct{ crypto.Signer }

var errBroken = errors.New("the device is gone")

func (brokenKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return nil, errBroken }

func TestAKeyThatFails(t *testing.T) {
	key := brokenKey{leafKeys()["P-256"]}
	algorithm, err := chain.AlgorithmFor(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := algorithm.Certificate([]byte("tbs"), key, rand.Reader); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want the key's own error", err)
	}
}

func TestChain(t *testing.T) {
	certificate := leafIssuer(t, leafKeys()["P-256"])
	many := make([]*x509.Certificate, 7)
	for i := range many {
		many[i] = certificate
	}
	_, err := chain.New()
	wantError(t, err, "at least a leaf")
	_, err = chain.New(many...)
	wantError(t, err, "7 certificates; at most 6")
	_, err = chain.New(certificate, nil)
	wantError(t, err, "nil")

	given := []*x509.Certificate{certificate, leafIssuer(t, leafKeys()["P-384"])}
	built, err := chain.New(given...)
	if err != nil {
		t.Fatal(err)
	}
	given[0] = nil // the chain is immutable
	if built.Leaf() != certificate || len(built.Intermediates()) != 1 || len(built.DER()) != 2 || string(built.DER()[0]) != string(certificate.Raw) {
		t.Errorf("the chain holds %v", built)
	}
	read, err := chain.ParsePEM(built.PEM())
	if err != nil || len(read) != 2 || !read[0].Equal(certificate) || !read[1].Equal(built.Intermediates()[0]) {
		t.Errorf("its PEM reads as %v, %v", read, err)
	}
	if n := strings.Count(string(built.PEM()), "-----BEGIN CERTIFICATE-----\n"); n != 2 {
		t.Errorf("its PEM has %d blocks", n)
	}
}

func TestKeyID(t *testing.T) {
	for name, spki := range map[string][]byte{
		"nothing":              nil,
		"no sequence":          []byte("key"),
		"without a key":        seq(seq()),
		"with something after": append(seq(seq(), tlv(0x03, []byte{0, 1})), 0),
		"with a third element": seq(seq(), tlv(0x03, []byte{0, 1}), null),
	} {
		_, err := chain.KeyID(spki)
		if err == nil || !strings.Contains(err.Error(), "malformed SubjectPublicKeyInfo") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
