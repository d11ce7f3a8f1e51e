package chain

import (
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"math/bits"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// The object identifiers of the extensions that a leaf of ours carries (RFC 5280 §4.2.1), as DER contents.
var (
	extKeyUsage         = []byte{0x55, 0x1d, 0x0f}
	extExtKeyUsage      = []byte{0x55, 0x1d, 0x25}
	extBasicConstraints = []byte{0x55, 0x1d, 0x13}
	extSubjectKeyID     = []byte{0x55, 0x1d, 0x0e}
	extAuthorityKeyID   = []byte{0x55, 0x1d, 0x23}
	extSubjectAltName   = []byte{0x55, 0x1d, 0x11}
)

// addExtensions writes the extensions in the order of crypto/x509.
func (l Leaf) addExtensions(b *cryptobyte.Builder, keyID, authorityKeyID []byte) {
	if l.KeyUsage != 0 {
		addExtension(b, extKeyUsage, true, func(b *cryptobyte.Builder) { addKeyUsage(b, l.KeyUsage) })
	}
	if len(l.ExtKeyUsage) > 0 {
		addExtension(b, extExtKeyUsage, false, func(b *cryptobyte.Builder) {
			b.AddASN1(cryptobyte_asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				for _, usage := range l.ExtKeyUsage {
					addExtKeyUsage(b, usage)
				}
			})
		})
	}
	// cA is FALSE by DEFAULT, so that the sequence is empty (RFC 5280 §4.2.1.9)
	addExtension(b, extBasicConstraints, true, func(b *cryptobyte.Builder) { b.AddBytes([]byte{0x30, 0x00}) })
	addExtension(b, extSubjectKeyID, false, func(b *cryptobyte.Builder) { b.AddASN1OctetString(keyID) })
	addExtension(b, extAuthorityKeyID, false, func(b *cryptobyte.Builder) {
		b.AddASN1(cryptobyte_asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			addTagged(b, 0, authorityKeyID)
		})
	})
	if !l.Names.Empty() {
		addExtension(b, extSubjectAltName, len(l.subject()) == len(emptyName), func(b *cryptobyte.Builder) {
			b.AddASN1(cryptobyte_asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				for _, name := range l.Names.DNS {
					addTagged(b, 2, []byte(name))
				}
				for _, ip := range l.Names.IPs {
					addTagged(b, 7, ip.Unmap().AsSlice())
				}
				for _, uri := range l.Names.URIs {
					addTagged(b, 6, []byte(uri))
				}
			})
		})
	}
}

func addExtension(b *cryptobyte.Builder, id []byte, critical bool, value func(*cryptobyte.Builder)) {
	b.AddASN1(cryptobyte_asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(cryptobyte_asn1.OBJECT_IDENTIFIER, func(b *cryptobyte.Builder) { b.AddBytes(id) })
		if critical {
			b.AddASN1Boolean(true)
		}
		b.AddASN1(cryptobyte_asn1.OCTET_STRING, value)
	})
}

func addTagged(b *cryptobyte.Builder, tag uint8, value []byte) {
	b.AddASN1(cryptobyte_asn1.Tag(tag).ContextSpecific(), func(b *cryptobyte.Builder) { b.AddBytes(value) })
}

// addKeyUsage writes the named bit list, which is not empty, without trailing zero bits (X.690 §11.2.2). Bit 0 of the list is the highest of
// an octet.
func addKeyUsage(b *cryptobyte.Builder, usage x509.KeyUsage) {
	octets := []byte{bits.Reverse8(byte(usage & 0xff)), bits.Reverse8(byte(usage >> 8 & 0xff))}
	if octets[1] == 0 {
		octets = octets[:1]
	}
	unused := bits.TrailingZeros8(octets[len(octets)-1])
	b.AddASN1(cryptobyte_asn1.BIT_STRING, func(b *cryptobyte.Builder) {
		b.AddUint8(uint8(unused)) //nolint:gosec // at most 7
		b.AddBytes(octets)
	})
}

func addExtKeyUsage(b *cryptobyte.Builder, usage x509.ExtKeyUsage) {
	id, ok := extKeyUsageOIDs[usage]
	if !ok {
		b.SetError(fmt.Errorf("extended key usage %d is not one that Chancery issues", usage))
		return
	}
	b.AddASN1ObjectIdentifier(id)
}

var extKeyUsageOIDs = map[x509.ExtKeyUsage]asn1.ObjectIdentifier{
	x509.ExtKeyUsageServerAuth: {1, 3, 6, 1, 5, 5, 7, 3, 1},
	x509.ExtKeyUsageClientAuth: {1, 3, 6, 1, 5, 5, 7, 3, 2},
}
