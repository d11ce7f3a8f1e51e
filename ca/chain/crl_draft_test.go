package chain

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"strings"
	"testing"
	"time"
)

// crlDraft is a revocation list whose parts a test changes before it is signed. Parts are elements unless they say otherwise.
type crlDraft struct {
	version    []byte
	algorithm  []byte
	issuer     []byte
	thisUpdate []byte
	nextUpdate []byte
	entries    [][]byte
	extensions [][]byte
	tail       []byte
}

// newCRLDraft is a list by an issuer with an Ed25519 key in which there is nothing to find.
func newCRLDraft(issuer *entity) *crlDraft {
	return &crlDraft{
		version: decodeHex("020101"), algorithm: decodeHex("300506032b6570"), issuer: issuer.certificate.RawSubject,
		thisUpdate: element(0x17, []byte("270115110000Z")), nextUpdate: element(0x17, []byte("270115130000Z")),
		extensions: [][]byte{
			crlAuthorityKey(issuer.certificate.SubjectKeyId),
			crlExtensionOf("551d14", false, decodeHex("020107")),
		},
	}
}

func crlAuthorityKey(id []byte) []byte {
	return crlExtensionOf("551d23", false, element(0x30, element(0x80, id)))
}

// crlExtensionOf encodes an Extension; the object identifier's contents are hexadecimal digits.
func crlExtensionOf(oid string, critical bool, value []byte) []byte {
	var flag []byte
	if critical {
		flag = decodeHex("0101ff")
	}
	return element(0x30, element(0x06, decodeHex(oid)), flag, element(0x04, value))
}

// crlEntry encodes an entry of revokedCertificates.
func crlEntry(serial *big.Int, extensions ...[]byte) []byte {
	parts := [][]byte{element(0x02, serial.Bytes()), element(0x17, []byte("270115110000Z"))}
	if len(extensions) > 0 {
		parts = append(parts, element(0x30, extensions...))
	}
	return element(0x30, parts...)
}

func crlReason(code byte) []byte { return crlExtensionOf("551d15", false, []byte{0x0a, 1, code}) }

// set replaces the extension with an object identifier, or adds it.
func (d *crlDraft) set(oid string, extension []byte) {
	d.drop(oid)
	d.extensions = append(d.extensions, extension)
}

func (d *crlDraft) drop(oid string) {
	var kept [][]byte
	for _, extension := range d.extensions {
		if !strings.Contains(hex.EncodeToString(extension), "06"+hex.EncodeToString([]byte{byte(len(oid) / 2)})+oid) {
			kept = append(kept, extension)
		}
	}
	d.extensions = kept
}

func (d *crlDraft) sign(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	parts := [][]byte{d.version, d.algorithm, d.issuer, d.thisUpdate, d.nextUpdate}
	if d.entries != nil {
		parts = append(parts, element(0x30, d.entries...))
	}
	if d.extensions != nil {
		parts = append(parts, element(0xa0, element(0x30, d.extensions...)))
	}
	tbs := element(0x30, append(parts, d.tail)...)
	if _, ok := key.(ed25519.PrivateKey); !ok {
		t.Fatal("lists in these tests are signed by Ed25519 keys")
	}
	signature, err := key.Sign(rand.Reader, tbs, crypto.Hash(0))
	if err != nil {
		t.Fatal(err)
	}
	return element(0x30, tbs, d.algorithm, element(0x03, []byte{0}, signature))
}

// parsed signs the draft and reads it.
func (d *crlDraft) parsed(t testing.TB, issuer *entity) *CRL {
	t.Helper()
	list, err := ParseCRL(d.sign(t, issuer.key))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// current makes the list a newer or older one.
func (d *crlDraft) current(from time.Time, number byte) {
	d.thisUpdate = element(0x17, []byte(from.UTC().Format("060102150405Z")))
	d.set("551d14", crlExtensionOf("551d14", false, []byte{2, 1, number}))
}

func decodeHex(digits string) []byte {
	octets, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		return nil
	}
	return octets
}
