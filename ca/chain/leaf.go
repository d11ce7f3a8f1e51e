package chain

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/identity"
)

// Leaf is everything that an approved end-entity certificate says, apart from who signs it. A signing backend gets it as its order and
// the checker holds the answer against it.
type Leaf struct {
	// Serial is the reserved serial number: positive and of at most 159 bits (RFC 5280 §4.1.2.2).
	Serial *big.Int
	// Subject is the DER Name; empty means the empty Name, which makes the subject alternative names critical (RFC 5280 §4.1.2.6).
	Subject []byte
	// Names are normalized. They are written in the order DNS, IP, URI.
	Names identity.Names
	// SPKI is the DER SubjectPublicKeyInfo of the request.
	SPKI []byte
	// KeyUsage and ExtKeyUsage are left out where they are zero or empty.
	KeyUsage    x509.KeyUsage
	ExtKeyUsage []x509.ExtKeyUsage
	// NotBefore and NotAfter are whole seconds, both inclusive (RFC 5280 §4.1.2.5).
	NotBefore, NotAfter time.Time
}

// emptyName is an RDNSequence without elements.
var emptyName = []byte{0x30, 0x00}

func (l Leaf) subject() []byte {
	if len(l.Subject) == 0 {
		return emptyName
	}
	return l.Subject
}

// KeyID returns the key identifier for a DER SubjectPublicKeyInfo: the leftmost 160 bits of the SHA-256 of its bit string (RFC 7093 §2,
// method 1).
func KeyID(spki []byte) ([]byte, error) {
	input := cryptobyte.String(spki)
	var info, algorithm cryptobyte.String
	var key asn1.BitString
	if !input.ReadASN1(&info, cryptobyte_asn1.SEQUENCE) || !info.ReadASN1(&algorithm, cryptobyte_asn1.SEQUENCE) ||
		!info.ReadASN1BitString(&key) || !info.Empty() || !input.Empty() {
		return nil, errors.New("malformed SubjectPublicKeyInfo (RFC 5280 §4.1)")
	}
	sum := sha256.Sum256(key.Bytes)
	return sum[:20], nil
}

// checkContent refuses what has no right encoding. Whether names are well formed is for a reader of the result to say.
func (l Leaf) checkContent() error {
	subject := cryptobyte.String(l.subject())
	var name cryptobyte.String
	switch {
	case l.KeyUsage&^allKeyUsages != 0:
		return fmt.Errorf("key usage %#x has bits that are not defined (RFC 5280 §4.2.1.3)", int(l.KeyUsage))
	case l.Serial == nil || l.Serial.Sign() <= 0 || l.Serial.BitLen() > maxSerialBits:
		return errors.New("a serial number is positive and has at most 159 bits (RFC 5280 §4.1.2.2)")
	case !subject.ReadASN1(&name, cryptobyte_asn1.SEQUENCE) || !subject.Empty():
		return errors.New("the subject is not one DER Name (RFC 5280 §4.1.2.4)")
	case name.Empty() && l.Names.Empty():
		return errors.New("a certificate without a subject needs a subject alternative name (RFC 5280 §4.1.2.6)")
	case !wholeSecond(l.NotBefore) || !wholeSecond(l.NotAfter):
		return errors.New("the times of a certificate are whole seconds (RFC 5280 §4.1.2.5)")
	case l.NotAfter.Before(l.NotBefore):
		return fmt.Errorf("notAfter %s is before notBefore %s (RFC 5280 §4.1.2.5)", stamp(l.NotAfter), stamp(l.NotBefore))
	}
	return nil
}

// allKeyUsages are the nine bits of RFC 5280 §4.2.1.3.
const allKeyUsages = x509.KeyUsageDecipherOnly<<1 - 1

// maxSerialBits keeps a serial number within 20 octets, sign bit included.
const maxSerialBits = 159

func wholeSecond(t time.Time) bool { return t.Nanosecond() == 0 }

// TBS returns the DER TBSCertificate of the leaf under an issuer: the issuer's subject byte for byte as issuer name, and its subject key
// identifier as authority key identifier. It refuses content that RFC 5280 gives no encoding.
func (l Leaf) TBS(issuer *x509.Certificate, algorithm Algorithm) ([]byte, error) {
	if len(issuer.SubjectKeyId) == 0 {
		return nil, fmt.Errorf("issuer %s has no subject key identifier (RFC 5280 §4.2.1.2)", shownName(issuer.Subject, issuer.RawSubject))
	}
	if err := l.checkContent(); err != nil {
		return nil, err
	}
	keyID, err := KeyID(l.SPKI)
	if err != nil {
		return nil, err
	}
	b := cryptobyte.NewBuilder(make([]byte, 0, 512+len(l.SPKI)))
	b.AddASN1(cryptobyte_asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(cryptobyte_asn1.Tag(0).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) {
			b.AddASN1Uint64(2) // v3
		})
		b.AddASN1BigInt(l.Serial)
		b.AddBytes(algorithm.identifier)
		b.AddBytes(issuer.RawSubject)
		b.AddASN1(cryptobyte_asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			addTime(b, l.NotBefore)
			addTime(b, l.NotAfter)
		})
		b.AddBytes(l.subject())
		b.AddBytes(l.SPKI)
		b.AddASN1(cryptobyte_asn1.Tag(3).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) {
			b.AddASN1(cryptobyte_asn1.SEQUENCE, func(b *cryptobyte.Builder) { l.addExtensions(b, keyID, issuer.SubjectKeyId) })
		})
	})
	return b.Bytes()
}

// addTime writes UTCTime to 2049 and GeneralizedTime from 2050 on (RFC 5280 §4.1.2.5).
func addTime(b *cryptobyte.Builder, t time.Time) {
	t = t.UTC()
	if year := t.Year(); year >= 1950 && year < 2050 {
		b.AddASN1UTCTime(t)
		return
	}
	b.AddASN1GeneralizedTime(t)
}
