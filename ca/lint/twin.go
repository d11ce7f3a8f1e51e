package lint

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"

	"github.com/chancery-ca/chancery/ca/chain"
)

// twinKey returns the throwaway key of the same kind as an issuing key. It lives in this process's memory alone. Callers wait for one
// another, so that a slow kind is made once.
func (l *Linter) twinKey(public crypto.PublicKey) (crypto.Signer, error) {
	l.twinsMu.Lock()
	defer l.twinsMu.Unlock()
	kind := kindOf(public)
	if key, ok := l.twins[kind]; ok {
		return key, nil
	}
	key, err := generateLike(public)
	if err != nil {
		return nil, fmt.Errorf("making a throwaway key: %w", err)
	}
	l.twins[kind] = key
	return key, nil
}

func kindOf(public crypto.PublicKey) string {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		return key.Curve.Params().Name
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA-%d", key.N.BitLen())
	default:
		return fmt.Sprintf("%T", public)
	}
}

func generateLike(public crypto.PublicKey) (crypto.Signer, error) {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.GenerateKey(key.Curve, rand.Reader)
	case *rsa.PublicKey:
		return rsa.GenerateKey(rand.Reader, key.N.BitLen())
	case ed25519.PublicKey:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	default:
		return nil, fmt.Errorf("an issuer with a %T is not known here", public)
	}
}

// newStranger returns what Template needs of an issuer.
func (l *Linter) newStranger() (*x509.Certificate, error) {
	key, err := l.twinKey(&ecdsa.PublicKey{Curve: elliptic.P256()})
	if err != nil {
		return nil, err
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding a throwaway key: %w", err)
	}
	keyID, err := chain.KeyID(spki)
	if err != nil {
		return nil, err
	}
	subject, err := asn1.Marshal(pkix.Name{CommonName: "an issuer not known yet"}.ToRDNSequence())
	if err != nil {
		return nil, fmt.Errorf("encoding a name: %w", err)
	}
	return &x509.Certificate{RawSubject: subject, SubjectKeyId: keyID, PublicKey: key.Public()}, nil
}
