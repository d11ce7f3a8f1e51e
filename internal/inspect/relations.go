package inspect

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"strings"
)

// maxSignatures bounds the signatures that are checked to find out who of a list signed whom.
const maxSignatures = 1000

// certificatesOf returns the items of a list that hold a certificate.
func certificatesOf(items []*Item) []*Item {
	var out []*Item
	for _, item := range items {
		if item.Certificate != nil {
			out = append(out, item)
		}
	}
	return out
}

// relate finds out who of a list signed whom and notes what is odd about them together.
func relate(items []*Item) {
	certificates := certificatesOf(items)
	left := maxSignatures
	for _, item := range certificates {
		item.Certificate.SignedBy = signer(item, certificates, &left)
	}
	first := make(map[string]int)
	for _, item := range certificates {
		if earlier := first[item.Certificate.SHA256]; earlier > 0 {
			item.add(Note, "duplicate", "", "it is the same as certificate %d", earlier)
		} else {
			first[item.Certificate.SHA256] = item.Position
		}
	}
	for _, item := range certificates {
		if by := item.Certificate.SignedBy; by != 0 && by != item.Position {
			item.outlives(items[by-1].Certificate.parsed, by)
		}
	}
	order(certificates)
}

// signer returns the position of the certificate that signed an item, 0 if it is not there.
func signer(of *Item, among []*Item, left *int) int {
	c := of.Certificate.parsed
	if r := of.Certificate.Role; r == RootCA || r == SelfSignedLeaf {
		return of.Position
	}
	for _, candidate := range among {
		issuer := candidate.Certificate.parsed
		if !bytes.Equal(c.RawIssuer, issuer.RawSubject) || *left == 0 {
			continue
		}
		*left--
		if signedWith(c, issuer) {
			return candidate.Position
		}
	}
	return 0
}

func (i *Item) outlives(issuer *x509.Certificate, position int) {
	if i.Certificate.parsed.NotAfter.After(issuer.NotAfter) {
		i.add(Note, "outlives-issuer", "", "it says that it is valid until %s, but certificate %d, which signed it, ends at %s", stamp(i.Certificate.parsed.NotAfter),
			position, stamp(issuer.NotAfter))
	}
}

// order notes where a list with a leaf is not a chain as TLS sends it: the leaf first, each signed by the next (RFC 8446 §4.4.2).
func order(certificates []*Item) {
	const rule, section = "chain-order", "RFC 8446 §4.4.2"
	leaves := 0
	for n, item := range certificates {
		if item.Certificate.CA {
			continue
		}
		if leaves++; n == 0 {
			continue
		}
		item.add(Note, rule, section, "it is a leaf and stands at position %d; a chain has one leaf, and that comes first", item.Position)
	}
	if leaves == 0 {
		return
	}
	for n, item := range certificates[:len(certificates)-1] {
		if next := certificates[n+1]; next.Certificate.CA && item.Certificate.SignedBy != next.Position {
			item.add(Note, rule, section, "the next certificate is not the one that signed it; in a chain, each is signed by the next")
		}
	}
}

// summary says in one sentence what a list of certificates is.
func summary(items []*Item) string {
	certificates := certificatesOf(items)
	n := len(certificates)
	if n < 2 || n != len(items) {
		return ""
	}
	roots, chained := 0, true
	for i, item := range certificates {
		if item.Certificate.Role == RootCA {
			roots++
		}
		chained = chained && (i == n-1 || item.Certificate.SignedBy == certificates[i+1].Position && item.Certificate.SignedBy != item.Position)
	}
	last := certificates[n-1].Certificate
	switch {
	case roots == n:
		return fmt.Sprintf("a trust bundle of %d root CAs", n)
	case !chained:
		return fmt.Sprintf("%d certificates that are not a chain in order", n)
	case last.Role == RootCA:
		return fmt.Sprintf("a chain of %d, each signed by the next, up to its root CA", n)
	default:
		return fmt.Sprintf("a chain of %d, each signed by the next; what signed the last, %s, is not among them", n, orNone(last.Issuer))
	}
}

func orNone(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}
