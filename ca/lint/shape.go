package lint

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"hash"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/chain"
)

// shape is what certificates of a fixed-shape profile have in common: whatever the lints can tell apart, but for the serial, the
// times within their forms, the bits of the key and the text of the SPIFFE ID, which isFixed and the key policy have checked.
type shape [sha256.Size]byte

// isFixed tells whether a leaf names one SPIFFE ID and nothing else, so that its shape says all that a lint can see of it. The encoder
// has checked its serial and times.
func isFixed(leaf chain.Leaf) bool {
	if len(leaf.Names.URIs) != 1 || len(leaf.Names.DNS)+len(leaf.Names.IPs) > 0 {
		return false
	}
	id, err := spiffeid.FromString(leaf.Names.URIs[0])
	return err == nil && id.Path() != ""
}

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
