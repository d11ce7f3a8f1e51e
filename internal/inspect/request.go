package inspect

import (
	"cmp"
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"slices"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/keypolicy"
	"github.com/chancery-ca/chancery/csr"
)

// Request is what a certificate request asks for.
type Request struct {
	Subject            string   `json:"subject"`
	Names              []string `json:"names"` // as in Certificate
	Key                Key      `json:"key"`
	SignatureAlgorithm string   `json:"signature_algorithm"`
	// ProofOfPossession tells whether the request is signed with the key that it holds.
	ProofOfPossession bool     `json:"proof_of_possession"`
	AsksForCA         bool     `json:"asks_for_ca"`
	KeyUsage          []string `json:"key_usage"`
	ExtendedKeyUsage  []string `json:"extended_key_usage"`
	Extensions        []string `json:"extensions"` // asked for, by name or identifier
	// ChallengePassword tells that there is one. It is never shown.
	ChallengePassword bool `json:"challenge_password"`

	der []byte
}

// DER returns the request as it was signed. It is not to be shown: there may be a challenge password in it.
func (r *Request) DER() []byte { return r.der }

// request reads one certificate request in DER.
func (in *reader) request(encoding []byte) *Item {
	out := item(KindRequest)
	raw, err := x509.ParseCertificateRequest(encoding)
	if err == nil {
		out.Request = describeRequest(raw)
	}
	checked, err := csr.Parse(encoding, widest(raw))
	if err != nil {
		out.add(Refused, "csr", cmp.Or(SectionOf(err.Error()), "RFC 2986"), "%s", sentence(err))
		return out
	}
	if out.Request == nil {
		out.add(Refused, "csr", "RFC 2986", "the certificate request cannot be read by crypto/x509")
		return out
	}
	asked := checked.Asked()
	out.Request.ProofOfPossession = true
	out.Request.AsksForCA = asked.CA
	out.Request.KeyUsage = keyUsageNames(asked.KeyUsage)
	out.Request.ExtendedKeyUsage = extendedNames(asked.ExtKeyUsage)
	if _, err := csr.Parse(encoding, csr.Rules{Wildcards: true}); err != nil {
		out.add(Note, "csr-policy", SectionOf(err.Error()), "the default policy refuses it: %s", sentence(err))
	}
	return out
}

// widest are the rules that let through whatever some profile or policy could: what they refuse, no configuration takes.
func widest(raw *x509.CertificateRequest) csr.Rules {
	rules := csr.Rules{Emails: true, Wildcards: true, CA: true, SystemSubjects: true, StrayCommonName: true, EncodedDefaults: true, MaxNames: 1000}
	if raw != nil {
		for _, extension := range raw.Extensions {
			rules.Extensions = append(rules.Extensions, extension.Id)
		}
	}
	return rules
}

func describeRequest(raw *x509.CertificateRequest) *Request {
	out := &Request{
		Subject: distinguished(raw.RawSubject), Names: []string{}, Key: keyOf(raw.PublicKey, raw.RawSubjectPublicKeyInfo),
		SignatureAlgorithm: raw.SignatureAlgorithm.String(), KeyUsage: []string{}, ExtendedKeyUsage: []string{}, Extensions: []string{},
		der: raw.Raw,
	}
	for _, extension := range raw.Extensions {
		id := extension.Id.String()
		if id == idSubjectAltName {
			out.Names = append(out.Names, alternativeNames(extension.Value)...)
		}
		if name, ok := extensionNames[id]; ok {
			id = name
		}
		out.Extensions = append(out.Extensions, id)
	}
	challenge := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7} // RFC 2985 §5.4.1
	out.ChallengePassword = slices.ContainsFunc(attributesOf(raw.RawTBSCertificateRequest), challenge.Equal)
	return out
}

// attributesOf returns the types of a request's attributes. Their values are not looked at.
func attributesOf(info cryptobyte.String) []asn1.ObjectIdentifier {
	var fields, attributes cryptobyte.String
	if !info.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.SkipASN1(cryptobyte_asn1.INTEGER) || !fields.SkipASN1(cryptobyte_asn1.SEQUENCE) ||
		!fields.SkipASN1(cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&attributes, cryptobyte_asn1.Tag(0).Constructed().ContextSpecific()) {
		return nil
	}
	var ids []asn1.ObjectIdentifier
	for !attributes.Empty() {
		var attribute cryptobyte.String
		var id asn1.ObjectIdentifier
		if !attributes.ReadASN1(&attribute, cryptobyte_asn1.SEQUENCE) || !attribute.ReadASN1ObjectIdentifier(&id) {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// sentence returns what csr.Parse says, without its own introduction.
func sentence(err error) string { return strings.TrimPrefix(err.Error(), "certificate request: ") }

// SectionOf returns the first section of a standard that a sentence names in parentheses, or nothing.
func SectionOf(sentence string) string {
	for {
		_, after, found := strings.Cut(sentence, "(")
		if !found {
			return ""
		}
		inside, _, _ := strings.Cut(after, ")")
		if strings.Contains(inside, "§") {
			return inside
		}
		sentence = after
	}
}

// certifiable holds a public key against the default key policy.
func (in *reader) certifiable(public crypto.PublicKey) error {
	return keypolicy.Default().Check(public)
}
