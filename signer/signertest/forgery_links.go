package signertest

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"
)

// replace changes octets for others, once.
func replace(old, changed string) func([]byte) []byte {
	return func(octets []byte) []byte { return bytes.Replace(octets, []byte(old), []byte(changed), 1) }
}

// forgedEncodings say what was approved, but not in DER.
func forgedEncodings() []Forgery {
	changed := func(old, changed string) func(testing.TB, *x509.Certificate, *Hierarchy) []byte {
		return func(t testing.TB, leaf *x509.Certificate, h *Hierarchy) []byte {
			return resign(t, leaf, h.Issuer.Key, replace(old, changed))
		}
	}
	return []Forgery{
		{Name: "a usage list that is not minimal", Position: 1, Rule: "X.690 §11.2.2", octets: changed("\x03\x02\x07\x80", "\x03\x02\x00\x80")},
		{Name: "an element after the last field", Position: 1, Rule: "RFC 5280 §4.1", octets: func(t testing.TB, leaf *x509.Certificate, h *Hierarchy) []byte {
			return resign(t, leaf, h.Issuer.Key, func(tbs []byte) []byte {
				var fields asn1.RawValue
				_, err := asn1.Unmarshal(tbs, &fields)
				must(t, err)
				longer, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: append(fields.Bytes, asn1.NullBytes...)})
				must(t, err)
				return longer
			})
		}},
		{Name: "an encoding that is not what it was parsed from", Position: 1, Rule: "RFC 5280 §4.1", chain: func(_ testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
			lie := *leaf
			lie.Raw = bytes.Replace(leaf.Raw, []byte("\x01\x01\xff"), []byte("\x01\x01\x01"), 1) // TRUE in BER
			return []*x509.Certificate{&lie, h.Issuer.Certificate, h.Middle.Certificate}
		}},
		{Name: "an issuer whose encoding is not what it was parsed from", Position: 2, Rule: "RFC 5280 §4.1",
			chain: func(_ testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
				lie := *h.Issuer.Certificate
				lie.Raw = append(bytes.Clone(lie.Raw), 0)
				return []*x509.Certificate{leaf, &lie, h.Middle.Certificate}
			}},
	}
}

func forgedLinks() []Forgery {
	return []Forgery{
		{Name: "a signature by another key", Position: 1, Rule: "RFC 5280 §6.1.3 (a)(1)", octets: func(t testing.TB, leaf *x509.Certificate, _ *Hierarchy) []byte {
			return resign(t, leaf, keys().other, func(tbs []byte) []byte { return tbs })
		}},
		{Name: "a signature over something else", Position: 1, Rule: "RFC 5280 §6.1.3 (a)(1)", octets: func(t testing.TB, leaf *x509.Certificate, h *Hierarchy) []byte {
			other := bytes.Clone(leaf.RawTBSCertificate)
			other[len(other)-1] ^= 1
			forged := parsed(t, resign(t, leaf, h.Issuer.Key, func([]byte) []byte { return other }))
			return bytes.Replace(forged.Raw, other, leaf.RawTBSCertificate, 1)
		}},
		{Name: "a signature with SHA-1", Position: 1, Rule: "RFC 9155, RFC 6151", authorities: func(t testing.TB, h *Hierarchy) {
			h.Issuer = h.authority(t, keys().strong, "issuer", &h.Middle, nil)
		}, octets: func(t testing.TB, leaf *x509.Certificate, _ *Hierarchy) []byte {
			return resignSHA1(t, leaf, keys().strong)
		}},
		{Name: "an issuer name in another string type", Position: 1, Rule: "RFC 5280 §4.1.2.4", octets: func(t testing.TB, leaf *x509.Certificate, h *Hierarchy) []byte {
			// PrintableString to UTF8String, of the same octets
			return resign(t, leaf, h.Issuer.Key, replace("\x13\x06issuer", "\x0c\x06issuer"))
		}},
		{Name: "no authority key identifier", Position: 1, Rule: "RFC 5280 §4.2.1.1", authorities: withKeyID(nil)},
		{Name: "another authority key identifier", Position: 1, Rule: "RFC 5280 §4.2.1.1", authorities: withKeyID([]byte("another key"))},
		{Name: "critical revocation points", Position: 1, Rule: "RFC 5280 §4.2.1", template: func(c *x509.Certificate) {
			const points = "\x30\x16\x30\x14\xa0\x12\xa0\x10\x86\x0ehttp://a.org/c"
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 31}, Critical: true, Value: []byte(points)}}
		}},
		{Name: "a root of the same name and key identifier", Position: 3, Rule: "RFC 5280 §6.1.3 (a)(1)", authorities: func(t testing.TB, h *Hierarchy) {
			h.Root = h.authority(t, keys().other, "root", nil, nil)
			h.makeMiddle(t, nil)
			h.makeIssuer(t, nil)
		}},
		{Name: "another hierarchy", Position: 3, Rule: ruleAnchor, authorities: func(t testing.TB, h *Hierarchy) {
			h.Root = h.authority(t, keys().other, "another root", nil, nil)
			h.makeMiddle(t, nil)
			h.makeIssuer(t, nil)
		}},
	}
}

// withKeyID has leaves name another key of their issuer, from which crypto/x509 takes it. The issuer's encoding stays.
func withKeyID(id []byte) func(testing.TB, *Hierarchy) {
	return func(_ testing.TB, h *Hierarchy) {
		changed := *h.Issuer.Certificate
		changed.SubjectKeyId = id
		h.Issuer.Certificate = &changed
	}
}

func forgedChains() []Forgery {
	return []Forgery{
		{Name: "nothing", Position: 1, Rule: "a chain is not empty", chain: func(testing.TB, *x509.Certificate, *Hierarchy) []*x509.Certificate { return nil }},
		{Name: "the leaf alone", Position: 1, Rule: ruleAnchor, chain: func(_ testing.TB, leaf *x509.Certificate, _ *Hierarchy) []*x509.Certificate {
			return []*x509.Certificate{leaf}
		}},
		{Name: "without the issuer", Position: 1, Rule: "RFC 5280 §4.1.2.4", chain: func(_ testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
			return []*x509.Certificate{leaf, h.Middle.Certificate}
		}},
		{Name: "without the intermediate above the issuer", Position: 2, Rule: ruleAnchor, chain: func(_ testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
			return []*x509.Certificate{leaf, h.Issuer.Certificate}
		}},
		{Name: "in the wrong order", Position: 3, Rule: ruleAnchor, chain: func(_ testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
			return []*x509.Certificate{leaf, h.Middle.Certificate, h.Issuer.Certificate}
		}},
		{Name: "the issuer first", Position: 1, Rule: "the serial is the reserved one", chain: func(_ testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
			return []*x509.Certificate{h.Issuer.Certificate, leaf, h.Middle.Certificate}
		}},
		{Name: "an intermediate twice", Position: 3, Rule: ruleTwice, chain: func(_ testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
			return []*x509.Certificate{leaf, h.Issuer.Certificate, h.Issuer.Certificate, h.Middle.Certificate}
		}},
		{Name: "the leaf twice", Position: 2, Rule: ruleTwice, chain: func(_ testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
			return []*x509.Certificate{leaf, leaf, h.Issuer.Certificate, h.Middle.Certificate}
		}},
		{Name: "with the trust anchor", Position: 4, Rule: "a chain ends below its trust anchor", chain: func(_ testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
			return []*x509.Certificate{leaf, h.Issuer.Certificate, h.Middle.Certificate, h.Root.Certificate}
		}},
		{Name: "with a certificate that signed nothing", Position: 2, Rule: "RFC 5280 §4.1.2.4", chain: func(t testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate {
			sibling := h.authority(t, keys().other, "sibling", &h.Middle, nil)
			return []*x509.Certificate{leaf, h.Issuer.Certificate, sibling.Certificate, h.Middle.Certificate}
		}},
	}
}

// ForbiddenQualifier returns an answer that is right but for a policy qualifier that RFC 5280 §4.2.1.4 does not allow. It grants nothing, so the
// checker lets it through; a lint has to find it.
func ForbiddenQualifier() Forgery {
	type qualifier struct {
		ID    asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	policies, _ := asn1.Marshal([]struct { // fixed values encode
		Policy     asn1.ObjectIdentifier
		Qualifiers []qualifier
	}{{asn1.ObjectIdentifier{2, 5, 29, 32, 0}, []qualifier{{asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 55555, 3}, asn1.NullRawValue}}}})
	return Forgery{Name: "a forbidden policy qualifier", template: func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 32}, Value: policies}}
	}}
}
