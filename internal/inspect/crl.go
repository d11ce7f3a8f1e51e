package inspect

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
)

// RevocationList is what a certificate revocation list says.
type RevocationList struct {
	Issuer string `json:"issuer"`
	Number string `json:"number,omitempty"` // decimal
	// Validity is from thisUpdate to nextUpdate.
	Validity           Validity  `json:"validity"`
	Delta              bool      `json:"delta"`
	Indirect           bool      `json:"indirect"`
	SignatureAlgorithm string    `json:"signature_algorithm"`
	AuthorityKeyID     string    `json:"authority_key_id,omitempty"`
	Revoked            []Revoked `json:"revoked"`
	SHA256             string    `json:"sha256"`
}

// Revoked is one entry.
type Revoked struct {
	Serial string    `json:"serial"` // in hexadecimal
	At     time.Time `json:"at"`
	Reason string    `json:"reason"` // as RFC 5280 §5.3.1 spells it
}

// revocationList reads one revocation list.
func (in *reader) revocationList(encoding []byte) *Item {
	out := item(KindRevocationList)
	list, findings := chain.InspectCRL(encoding)
	out.found(findings, list != nil)
	if list == nil {
		return out
	}
	parsed, sum := list.List(), sha256.Sum256(encoding)
	crl := &RevocationList{
		Issuer: distinguished(parsed.RawIssuer), Validity: validity(parsed.ThisUpdate, parsed.NextUpdate, in.options.At), Delta: list.Delta(),
		Indirect: list.Indirect(), SignatureAlgorithm: parsed.SignatureAlgorithm.String(), AuthorityKeyID: hex.EncodeToString(parsed.AuthorityKeyId),
		Revoked: make([]Revoked, 0, len(parsed.RevokedCertificateEntries)), SHA256: hex.EncodeToString(sum[:]),
	}
	if parsed.Number != nil {
		crl.Number = parsed.Number.String()
	}
	for _, entry := range parsed.RevokedCertificateEntries {
		crl.Revoked = append(crl.Revoked, Revoked{fmt.Sprintf("%x", entry.SerialNumber), entry.RevocationTime.UTC(), reason(entry)})
	}
	out.RevocationList = crl
	return out
}

func reason(entry x509.RevocationListEntry) string {
	return chain.Reason(entry.ReasonCode).String() //nolint:gosec // a code beyond an octet was refused
}
