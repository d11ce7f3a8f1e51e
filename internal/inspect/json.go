package inspect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Bundle is a SPIFFE bundle (SPIFFE Trust Domain and Bundle §4) or any other JWK set.
type Bundle struct {
	TrustDomain string `json:"trust_domain,omitempty"` // only where bundles stand in a map
	Sequence    uint64 `json:"sequence,omitempty"`
	RefreshHint int64  `json:"refresh_hint_seconds,omitempty"`
	// Authorities are the certificates of X.509 authorities.
	Authorities []*Item `json:"x509_authorities"`
	Keys        []JWK   `json:"keys"` // all others
}

// JWK is a key of a JWK set that is no X.509 authority.
type JWK struct {
	ID   string `json:"kid,omitempty"`
	Use  string `json:"use,omitempty"`
	Kind string `json:"kind"` // "P-256", "RSA-2048", "Ed25519"
}

// document is what a JSON text may be. Which one, its fields tell.
type document struct {
	Kind         string                     `json:"kind"`
	Keys         *[]jwk                     `json:"keys"`
	Sequence     uint64                     `json:"spiffe_sequence"`
	RefreshHint  int64                      `json:"spiffe_refresh_hint"`
	TrustDomains map[string]json.RawMessage `json:"trust_domains"`
}

// jwk are the members of RFC 7517 and RFC 7518 that are looked at.
type jwk struct {
	Type         string   `json:"kty"`
	Use          string   `json:"use"`
	ID           string   `json:"kid"`
	Curve        string   `json:"crv"`
	N            string   `json:"n"`
	Certificates []string `json:"x5c"`
	// members that are secret are looked at for their presence only
	D *json.RawMessage `json:"d"`
	K *json.RawMessage `json:"k"`
}

// json reads a JSON text: a bundle, a map of bundles, or an object of Kubernetes.
func (in *reader) json(input []byte) ([]*Item, []Finding) {
	var doc document
	if err := json.Unmarshal(input, &doc); err != nil {
		return []*Item{}, []Finding{{Refused, "json", "RFC 8259", fmt.Sprintf("the JSON cannot be read: %v", err)}}
	}
	switch {
	case doc.Kind != "":
		var object kubernetesObject
		if err := json.Unmarshal(input, &object); err != nil {
			return []*Item{}, []Finding{{Refused, "json", "RFC 8259", fmt.Sprintf("the Kubernetes object cannot be read: %v", err)}}
		}
		return in.kubernetes(&object)
	case doc.TrustDomains != nil:
		return in.bundleMap(doc.TrustDomains)
	case doc.Keys != nil:
		return []*Item{in.bundle("", &doc)}, []Finding{}
	}
	return []*Item{}, []Finding{{Refused, "json-kind", "",
		"the JSON is neither a JWK set (it has no \"keys\") nor an object of Kubernetes (it has no \"kind\")"}}
}

// bundleMap reads bundles by trust domain.
func (in *reader) bundleMap(byDomain map[string]json.RawMessage) ([]*Item, []Finding) {
	items := []*Item{}
	for _, domain := range slices.Sorted(maps.Keys(byDomain)) {
		var doc document
		if err := json.Unmarshal(byDomain[domain], &doc); err != nil || doc.Keys == nil {
			out := item(KindBundle)
			out.add(Refused, "bundle", "SPIFFE Trust Domain and Bundle §4", "the bundle of %q cannot be read: it is no JWK set", domain)
			items = append(items, out)
			continue
		}
		items = append(items, in.bundle(domain, &doc))
	}
	return items, []Finding{}
}

const sectionBundle = "SPIFFE Trust Domain and Bundle §4"

func (in *reader) bundle(domain string, doc *document) *Item {
	out := item(KindBundle)
	b := &Bundle{TrustDomain: domain, Sequence: doc.Sequence, RefreshHint: doc.RefreshHint, Authorities: []*Item{}, Keys: []JWK{}}
	out.Bundle = b
	for n, key := range *doc.Keys {
		switch {
		case key.D != nil || key.K != nil:
			out.add(Refused, "bundle-private", sectionBundle, "key %d is a private or a secret key, which is not shown and has no place in a bundle", n+1)
		case key.Use == "x509-svid" || key.Use == "" && len(key.Certificates) > 0:
			b.Authorities = append(b.Authorities, in.authority(n, key, out))
		default:
			if key.Use == "jwt-svid" && key.ID == "" {
				out.add(Refused, "bundle-kid", sectionBundle, "key %d is for JWT-SVIDs and has no kid, by which tokens name it", n+1)
			}
			if key.Type == "" {
				out.add(Refused, "bundle-kty", "RFC 7517 §4.1", "key %d does not say of what kind it is (kty)", n+1)
			}
			b.Keys = append(b.Keys, JWK{ID: key.ID, Use: key.Use, Kind: jwkKind(key)})
		}
	}
	if len(b.Authorities)+len(b.Keys) == 0 && len(out.Findings) == 0 {
		out.add(Note, "bundle-empty", sectionBundle, "there is no key in it: whoever trusts it trusts nobody")
	}
	number(b.Authorities)
	relate(b.Authorities)
	return out
}

// authority reads the one certificate of an X.509 authority.
func (in *reader) authority(n int, key jwk, bundle *Item) *Item {
	if len(key.Certificates) != 1 {
		out := item(KindCertificate)
		out.add(Refused, "bundle-x5c", sectionBundle, "key %d is for X.509-SVIDs and has %d certificates; it has to have one", n+1, len(key.Certificates))
		return out
	}
	encoding, err := base64.StdEncoding.DecodeString(key.Certificates[0])
	if err != nil {
		out := item(KindCertificate)
		out.add(Refused, "bundle-x5c", "RFC 7517 §4.7", "the certificate of key %d is not base64: %v", n+1, err)
		return out
	}
	out := in.certificate(encoding)
	if out.Certificate != nil && !out.Certificate.CA {
		out.add(Note, "bundle-leaf", sectionBundle, "it is not a CA certificate, so that nothing verifies by it")
	}
	if key.Use == "" {
		bundle.add(Note, "bundle-use", sectionBundle, "key %d does not say what it is for (use), so that SPIFFE's readers pass over it", n+1)
	}
	return out
}

func jwkKind(key jwk) string {
	switch key.Type {
	case "EC", "OKP":
		return key.Curve
	case "RSA":
		modulus, err := base64.RawURLEncoding.DecodeString(key.N)
		if err == nil {
			return fmt.Sprintf("RSA-%d", 8*len(modulus))
		}
	}
	return key.Type
}
