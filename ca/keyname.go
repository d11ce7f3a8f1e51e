package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"strconv"
)

// keyName returns the kind of a key that the key policy let through, by its name in keys.algorithms: ecdsa-p256, ed25519, rsa-2048.
func keyName(public crypto.PublicKey) string {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		return "ecdsa-p" + strconv.Itoa(key.Curve.Params().BitSize)
	case ed25519.PublicKey:
		return "ed25519"
	case *rsa.PublicKey:
		return "rsa-" + strconv.Itoa(key.N.BitLen())
	default:
		return ""
	}
}
