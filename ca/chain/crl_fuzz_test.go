package chain

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"testing"
)

// The structures of RFC 5280 §5.1, for an encoder that shares nothing with the parser.
type (
	certificateList struct {
		TBS       tbsCertList
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	tbsCertList struct {
		Version                int
		Algorithm              pkix.AlgorithmIdentifier
		Issuer                 asn1.RawValue
		ThisUpdate, NextUpdate asn1.RawValue
		Revoked                []revokedCertificate `asn1:"optional,omitempty"`
		Extensions             []pkix.Extension     `asn1:"tag:0,explicit"`
	}
	revokedCertificate struct {
		Serial     *big.Int
		Date       asn1.RawValue
		Extensions []pkix.Extension `asn1:"optional,omitempty"`
	}
)

// FuzzParseCRL: a list that we could have issued is the one encoding of what it says, and every entry of crypto/x509 is one of ours.
func FuzzParseCRL(f *testing.F) {
	issuer := crlIssuer(f)
	for _, change := range []func(d *crlDraft){
		func(*crlDraft) {},
		func(d *crlDraft) {
			d.entries = [][]byte{crlEntry(big.NewInt(3)), crlEntry(big.NewInt(400), crlReason(1))}
		},
		func(d *crlDraft) { d.set(crlDeltaOID, crlExtensionOf(crlDeltaOID, true, decodeHex("020106"))) },
		func(d *crlDraft) {
			d.set(crlScopeOID, scopeOf("http://a/1", []byte{0x84, 1, 0xff}))
			d.entries = [][]byte{crlEntry(big.NewInt(3), crlReason(1), issuerEntry(issuer))}
		},
	} {
		d := newCRLDraft(issuer)
		change(d)
		f.Add(d.sign(f, issuer.key))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		list, err := ParseCRL(input)
		if err != nil {
			return
		}
		if direct := !list.Indirect(); direct {
			for _, entry := range list.List().RevokedCertificateEntries {
				encoding, err := asn1.Marshal(entry.SerialNumber)
				if err != nil {
					t.Fatal(err)
				}
				var serial asn1.RawValue
				if _, err := asn1.Unmarshal(encoding, &serial); err != nil {
					t.Fatal(err)
				}
				if _, listed := list.reasonFor(list.issuer, string(serial.Bytes)); !listed {
					t.Errorf("serial number %d is not found", entry.SerialNumber)
				}
			}
		}
		if _, err := ParseIssuedCRL(input); err != nil {
			return
		}
		var parsed certificateList
		if rest, err := asn1.Unmarshal(input, &parsed); err != nil || len(rest) > 0 {
			t.Fatalf("encoding/asn1: %v, %d octets left", err, len(rest))
		}
		again, err := asn1.Marshal(parsed)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, input) {
			t.Errorf("encoded again it is\n%x, it was\n%x", again, input)
		}
	})
}
