package csr

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/chancery-ca/chancery/ca/identity"
)

// Request is a certificate request that passed Parse. It is immutable: methods that return slices return copies.
type Request struct {
	der        []byte
	spki       []byte
	publicKey  crypto.PublicKey
	rawSubject []byte
	subject    pkix.Name
	commonName string
	names      identity.Names
	emails     []string
	asked      Asked
}

// Asked is what the request's extensions ask for besides names. Nothing of it is ever copied to a certificate; a policy may refuse a
// request for what it asks.
type Asked struct {
	// CA tells that a CA certificate is asked for: by cA TRUE, keyCertSign or cRLSign.
	CA bool
	// KeyUsage is zero if the request asks for none.
	KeyUsage x509.KeyUsage
	// ExtKeyUsage is in the request's order, unknown usages included.
	ExtKeyUsage []asn1.ObjectIdentifier
	// Extensions are the identifiers of all extensions asked for, in the request's order.
	Extensions []asn1.ObjectIdentifier
}

// DER returns the request as it was signed. It still holds every attribute, a challenge password among them: send it to a signing backend and
// nowhere else, least of all to a log.
func (r *Request) DER() []byte { return bytes.Clone(r.der) }

// PublicKey returns the key: a *ecdsa.PublicKey, *rsa.PublicKey or ed25519.PublicKey that the key policy allows. It must not be changed.
func (r *Request) PublicKey() crypto.PublicKey { return r.publicKey }

// SPKI returns the DER SubjectPublicKeyInfo.
func (r *Request) SPKI() []byte { return bytes.Clone(r.spki) }

// KeyHash returns the SHA-256 hash of SPKI.
func (r *Request) KeyHash() [32]byte { return sha256.Sum256(r.spki) }

// Subject returns the subject that the requester wrote, for display and for rules that refuse. It is not checked to be true. Its common
// name is not among Names.
func (r *Request) Subject() pkix.Name {
	subject := r.subject
	for _, values := range []*[]string{
		&subject.Country, &subject.Organization, &subject.OrganizationalUnit, &subject.Locality, &subject.Province,
		&subject.StreetAddress, &subject.PostalCode,
	} {
		*values = slices.Clone(*values)
	}
	subject.Names = slices.Clone(subject.Names)
	return subject
}

// RawSubject returns the DER Name.
func (r *Request) RawSubject() []byte { return bytes.Clone(r.rawSubject) }

// Names returns the subject alternative names that are asked for, normalized: DNS names in lower case, sorted, free of duplicates. With
// Emails they are all that the request holds, since names of other kinds are refused.
func (r *Request) Names() identity.Names {
	return identity.Names{URIs: slices.Clone(r.names.URIs), DNS: slices.Clone(r.names.DNS), IPs: slices.Clone(r.names.IPs)}
}

// Emails returns the rfc822Names that are asked for, in the request's order. There are none unless Rules.Emails let them through.
func (r *Request) Emails() []string { return slices.Clone(r.emails) }

// RequestsCA tells whether the request asks for a CA certificate. It is false unless Rules.CA let such a request through.
func (r *Request) RequestsCA() bool { return r.asked.CA }

// Asked returns what the extensions ask for besides names.
func (r *Request) Asked() Asked {
	asked := r.asked
	asked.ExtKeyUsage = cloneIdentifiers(asked.ExtKeyUsage)
	asked.Extensions = cloneIdentifiers(asked.Extensions)
	return asked
}

// String describes the request for a log: names and the start of the key's hash, and no attribute.
func (r *Request) String() string {
	hash := r.KeyHash()
	return fmt.Sprintf("certificate request for %s with the key %s", r.names, hex.EncodeToString(hash[:8]))
}

func cloneIdentifiers(ids []asn1.ObjectIdentifier) []asn1.ObjectIdentifier {
	out := slices.Clone(ids)
	for i, id := range out {
		out[i] = slices.Clone(id)
	}
	return out
}
