package lint

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"hash"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/chain"
)

// shapeOf digests everything of a certificate-to-be that the lints can tell apart, with the parts that have their own checks reduced to their
// form: the SPIFFE ID to its presence, the key to its algorithm and length, the times to their encoding (RFC 5280 §4.1.2.5) and the order
// between them.
func shapeOf(leaf chain.Leaf, issuer *x509.Certificate) shape {
	h := sha256.New()
	write(h, issuer.Raw)
	write(h, leaf.Subject)
	for _, n := range []int{len(leaf.Names.URIs), len(leaf.Names.DNS), len(leaf.Names.IPs), int(leaf.KeyUsage), len(leaf.ExtKeyUsage), len(leaf.SPKI)} {
		number(h, n)
	}
	for _, usage := range leaf.ExtKeyUsage {
		number(h, int(usage))
	}
	write(h, keyAlgorithm(leaf.SPKI))
	for _, t := range []time.Time{leaf.NotBefore, leaf.NotAfter} {
		if t.UTC().Year() >= 2050 {
			number(h, 1)
		} else {
			number(h, 0)
		}
	}
	if leaf.NotAfter.Before(leaf.NotBefore) {
		number(h, 1)
	}
	return shape(h.Sum(nil))
}

// keyAlgorithm returns the AlgorithmIdentifier of a SubjectPublicKeyInfo, or the whole of it if it has none.
func keyAlgorithm(spki []byte) []byte {
	input := cryptobyte.String(spki)
	var info, algorithm cryptobyte.String
	if !input.ReadASN1(&info, cryptobyte_asn1.SEQUENCE) || !info.ReadASN1Element(&algorithm, cryptobyte_asn1.SEQUENCE) {
		return spki
	}
	return algorithm
}

func write(h hash.Hash, data []byte) {
	number(h, len(data))
	h.Write(data)
}

func number(h hash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // lengths and small constants
	h.Write(b[:])
}
