package main

import (
	"encoding/json"
	"fmt"
	"slices"
)

// hierarchy is a chain, what was approved of its leaf, and who is trusted.
type hierarchy struct {
	leaf    *draft
	issuers []*draft // from the leaf's on
	anchors [][]byte // certificates
	want    approval
	at      string
	// sent returns the chain as it is sent; nil for the leaf and the issuers
	sent func(leaf []byte, issuers [][]byte) [][]byte
}

// approval is what an approved leaf says; its JSON stands beside the chain.
type approval struct {
	Serial    string   `json:"serial"` // hexadecimal
	Subject   []byte   `json:"subject"`
	DNS       []string `json:"dns,omitempty"`
	URIs      []string `json:"uris,omitempty"`
	IPs       []string `json:"ips,omitempty"`
	SPKI      []byte   `json:"spki"`
	KeyUsage  []string `json:"key_usage"`
	Usages    []string `json:"usages"`
	NotBefore string   `json:"not_before"`
	NotAfter  string   `json:"not_after"`
}

// chainCase changes one thing in a chain that is as it was approved.
type chainCase struct {
	name     string
	rule     string // that the chain breaks, as the product names it; empty for none
	position int    // of the certificate; 1 is the leaf
	section  string
	what     string
	change   func(*hierarchy)
}

// The authorities of the chains, besides rootCA and intermediateCA.
var (
	subordinateCA = authority{commonName("Corpus Subordinate"), newP256("subordinate")}
	strangerCA    = authority{rootCA.name, newP256("stranger")} // has the root's name
	otherCA       = authority{commonName("Corpus Other Root"), newP256("other root")}
)

const leafSerial = "4c0102030405060708090a0b0c0d0e0f"

// workload is a leaf for a SPIFFE ID under an intermediate under the root.
func workload() *hierarchy {
	leaf := leafDraft()
	leaf.serial = tlv(tagInteger, unhex(leafSerial))
	leaf.subject = seq()
	leaf.put(idSubjectAltName, seq(uri("spiffe://corpus.test/ns/shop/sa/cart")))
	leaf.mark(idSubjectAltName, isTrue)
	return &hierarchy{
		leaf: leaf, issuers: []*draft{intermediateDraft()}, anchors: [][]byte{rootDraft().sign()}, at: clock,
		want: approval{
			Serial: leafSerial, Subject: seq(), URIs: []string{"spiffe://corpus.test/ns/shop/sa/cart"}, SPKI: leafKey.spki(),
			KeyUsage: []string{"digitalSignature"}, Usages: []string{"serverAuth", "clientAuth"},
			NotBefore: "2030-06-15T11:00:00Z", NotAfter: "2030-06-16T12:00:00Z",
		},
	}
}

// serve makes the leaf one for names of servers.
func (h *hierarchy) serve() *hierarchy {
	h.leaf.put(idSubjectAltName, seq(dns("a.corpus.test"), dns("b.corpus.test"), ip(192, 0, 2, 7)))
	h.want.URIs, h.want.DNS, h.want.IPs = nil, []string{"a.corpus.test", "b.corpus.test"}, []string{"192.0.2.7"}
	return h
}

// issuedBy puts the leaf under an authority.
func (h *hierarchy) issuedBy(a authority) {
	h.leaf.issuer, h.leaf.key = a.name, a.key
	h.leaf.put(idAuthorityKeyID, seq(implicit(0, keyID(a.key)...)))
}

// chains returns the corpus of chains for the checker of what was issued.
func chains() *folder {
	f := newFolder("chains", "verdict", "position", "rule", "path", "at", "section", "what")
	for _, group := range [][]chainCase{goodChains(), leafChains(), linkChains(), issuerChains(), shapeChains()} {
		for _, c := range group {
			h := workload()
			c.change(h)
			issuers := make([][]byte, len(h.issuers))
			for i, issuer := range h.issuers {
				issuers[i] = issuer.sign()
			}
			sent := append([][]byte{h.leaf.sign()}, issuers...)
			if h.sent != nil {
				sent = h.sent(sent[0], issuers)
			}
			verdict, position, rule, path := "accept", "-", "-", "accept"
			if c.rule != "" {
				verdict, position, rule, path = "reject", fmt.Sprint(c.position), c.rule, "reject"
			}
			if slices.Contains(validPaths, c.name) {
				path = "accept"
			}
			f.add(c.name+".pem", certificatePEM(sent...), verdict, position, rule, path, h.at, c.section, c.what)
			f.files[c.name+".anchors.pem"] = certificatePEM(h.anchors...)
			want, _ := json.MarshalIndent(h.want, "", "  ") // strings and octets
			f.files[c.name+".approved.json"] = append(want, '\n')
		}
	}
	return f
}

// validPaths are the wrong chains from which a valid path can be built all the same, as the leaf is good, only not what was approved, or since
// the order of the rest is of no matter.
var validPaths = []string{
	"serial-other", "key-other", "subject-added", "subject-other-type", "name-other", "name-other-case", "name-added-dns", "name-added-ip", "name-added-email",
	"name-added-directory", "name-added-other", "name-added-registered", "name-twice", "name-missing", "names-missing", "name-wildcard", "usage-wider",
	"usage-missing", "purpose-added", "purpose-added-unknown", "purpose-any", "purpose-missing", "leaf-is-ca", "leaf-signs-lists", "extension-added",
	"extension-issuer-name", "extension-critical", "time-longer", "time-earlier", "issuer-name-type", "issuer-name-case", "issuer-ends-first",
	"issuer-starts-later", "anchor-ends-first", "intermediate-twice", "root-included", "issuer-first", "foreign-last", "foreign-between",
	"two-intermediates-swapped", "leaf-twice", "loop",
}

func goodChains() []chainCase {
	const section = "RFC 5280 §6.1"
	return []chainCase{
		{"good", "", 0, section, "a workload's leaf, an intermediate and a root", func(*hierarchy) {}},
		{"good-serving", "", 0, section, "a leaf for DNS names and an address", func(h *hierarchy) { h.serve() }},
		{"good-root-issues", "", 0, section, "a leaf under the root itself", func(h *hierarchy) {
			h.issuedBy(rootCA)
			h.issuers = nil
		}},
		{"good-two-intermediates", "", 0, section, "two intermediates", func(h *hierarchy) {
			h.issuedBy(subordinateCA)
			h.issuers = []*draft{authorityDraft(subordinateCA, intermediateCA, 0), authorityDraft(intermediateCA, rootCA, 1)}
		}},
		{"good-subject", "", 0, section, "a subject beside the names", func(h *hierarchy) {
			h.leaf.subject, h.want.Subject = commonName("cart"), commonName("cart")
			h.leaf.mark(idSubjectAltName, nil)
		}},
		{"good-names-in-another-order", "", 0, section, "names in another order", func(h *hierarchy) {
			h.serve().leaf.put(idSubjectAltName, seq(ip(192, 0, 2, 7), dns("b.corpus.test"), dns("a.corpus.test")))
		}},
		{"good-usages-in-another-order", "", 0, section, "usages in another order", func(h *hierarchy) {
			h.leaf.put(idExtKeyUsage, seq(oid(idClientAuth), oid(idServerAuth)))
		}},
		{"good-shorter", "", 0, section, "a shorter life than was approved", func(h *hierarchy) { h.leaf.validity = times(leafFrom, "300615130000Z") }},
		{"good-last-second", "", 0, "RFC 5280 §4.1.2.5", "in its last second", func(h *hierarchy) { h.at = "2030-06-16T12:00:00Z" }},
		{"good-first-second", "", 0, "RFC 5280 §4.1.2.5", "in its first second", func(h *hierarchy) { h.at = "2030-06-15T11:00:00Z" }},
		{"good-any-serial", "", 0, section, "a backend that chooses the serial number", func(h *hierarchy) { h.want.Serial = "" }},
		{"good-two-anchors", "", 0, section, "two anchors of one name, of which one signed it", func(h *hierarchy) {
			h.anchors = append([][]byte{authorityDraft(strangerCA, strangerCA, -1).sign()}, h.anchors...)
		}},
		{"good-ed25519-issuer", "", 0, section, "an issuer with Ed25519", func(h *hierarchy) {
			a := authority{intermediateCA.name, newEd25519("intermediate Ed25519")}
			h.issuedBy(a)
			h.issuers = []*draft{authorityDraft(a, rootCA, 0)}
		}},
		{"good-rsa-issuer", "", 0, section, "an issuer with RSA", func(h *hierarchy) {
			a := authority{intermediateCA.name, rsa2048()}
			h.issuedBy(a)
			h.issuers = []*draft{authorityDraft(a, rootCA, 0)}
		}},
		{"good-revocation-pointers", "", 0, section, "where to find lists and issuers, which a backend may add", func(h *hierarchy) {
			h.leaf.put(idCRLPoints, seq(seq(explicit(0, explicit(0, uri("http://crl.corpus.test/1.crl"))))))
			h.leaf.put(idAuthorityAccess, seq(seq(oid(idCAIssuers), uri("http://ca.corpus.test/i.cer"))))
		}},
		{"good-constrained", "", 0, "RFC 5280 §4.2.1.10", "an intermediate that may certify these names", func(h *hierarchy) {
			h.serve()
			h.issuers[0].extensions = append(h.issuers[0].extensions, extension{idNameConstraints, isTrue, seq(explicit(0, seq(dns("corpus.test")), seq(ip(192, 0, 2, 0, 255, 255, 255, 0)))), nil})
		}},
		{"good-usages-of-issuer", "", 0, "RFC 5280 §4.2.1.12", "an intermediate for servers and clients", func(h *hierarchy) {
			h.issuers[0].put(idExtKeyUsage, seq(oid(idServerAuth), oid(idClientAuth)))
		}},
	}
}

// leafChains are those whose leaf is not what was approved.
func leafChains() []chainCase {
	const widened, names = "a backend cannot widen a certificate", "RFC 5280 §4.2.1.6"
	leaf := func(change func(*draft)) func(*hierarchy) {
		return func(h *hierarchy) { change(h.leaf) }
	}
	spiffe := uri("spiffe://corpus.test/ns/shop/sa/cart")
	san := func(names ...[]byte) func(*hierarchy) {
		return leaf(func(d *draft) { d.put(idSubjectAltName, seq(names...)) })
	}
	extra := func(id string, value []byte) func(*hierarchy) {
		return leaf(func(d *draft) { d.put(id, value) })
	}
	return []chainCase{
		{"serial-other", "the serial is the reserved one", 1, "RFC 5280 §4.1.2.2", "another serial number than was reserved", leaf(func(d *draft) { d.serial = number(7) })},
		{"key-other", "the key is the request's", 1, "RFC 2986 §3", "another key than was asked for", leaf(func(d *draft) { d.spki = newP256("another leaf").spki() })},
		{"subject-added", widened, 1, "RFC 5280 §4.1.2.6", "a subject that was not approved", leaf(func(d *draft) { d.subject = commonName("system:masters") })},
		{"subject-other-type", widened, 1, "RFC 5280 §4.1.2.6", "the approved subject in another string type", func(h *hierarchy) {
			h.leaf.subject, h.want.Subject = seq(rdn(idCommonName, printable("cart"))), commonName("cart")
		}},
		{"name-other", widened, 1, names, "another SPIFFE ID", san(uri("spiffe://corpus.test/ns/shop/sa/admin"))},
		{"name-other-case", widened, 1, names, "the SPIFFE ID in other letters", san(uri("spiffe://corpus.test/ns/shop/sa/Cart"))},
		{"name-added-dns", widened, 1, names, "a DNS name that was not approved", san(spiffe, dns("admin.corpus.test"))},
		{"name-added-ip", widened, 1, names, "an address that was not approved", san(spiffe, ip(192, 0, 2, 1))},
		{"name-added-email", widened, 1, names, "an e-mail address that was not approved", san(spiffe, email("a@corpus.test"))},
		{"name-added-directory", widened, 1, names, "a directoryName, which Go drops", san(spiffe, directory(commonName("admin")))},
		{"name-added-other", widened, 1, names, "an otherName, which Go drops", san(spiffe, otherName(oid("1.3.6.1.4.1.311.20.2.3"), explicit(0, utf8String("admin@corpus.test"))))},
		{"name-added-registered", widened, 1, names, "a registeredID, which Go drops", san(spiffe, tlv(0x88, arcs(idPrivate)))},
		{"name-twice", widened, 1, names, "a name twice", func(h *hierarchy) {
			h.serve().leaf.put(idSubjectAltName, seq(dns("a.corpus.test"), dns("a.corpus.test"), dns("b.corpus.test"), ip(192, 0, 2, 7)))
		}},
		{"name-missing", widened, 1, names, "an approved name is missing", func(h *hierarchy) { h.serve().leaf.put(idSubjectAltName, seq(dns("a.corpus.test"), ip(192, 0, 2, 7))) }},
		{"names-missing", widened, 1, names, "no names at all", func(h *hierarchy) {
			h.leaf.drop(idSubjectAltName)
			h.leaf.subject, h.want.Subject = commonName("cart"), commonName("cart")
		}},
		{"name-wildcard", widened, 1, names, "a wildcard in the place of a name", func(h *hierarchy) {
			h.serve().leaf.put(idSubjectAltName, seq(dns("*.corpus.test"), dns("b.corpus.test"), ip(192, 0, 2, 7)))
		}},
		{"usage-wider", widened, 1, "RFC 5280 §4.2.1.3", "keyAgreement was not approved", leaf(func(d *draft) { d.put(idKeyUsage, bits(3, 0x88)) })},
		{"usage-missing", widened, 1, "RFC 5280 §4.2.1.3", "no key usage, which is every usage", leaf(func(d *draft) { d.drop(idKeyUsage) })},
		{"purpose-added", widened, 1, "RFC 5280 §4.2.1.12", "codeSigning was not approved", leaf(func(d *draft) { d.put(idExtKeyUsage, seq(oid(idServerAuth), oid(idClientAuth), oid(idCodeSigning))) })},
		{"purpose-added-unknown", widened, 1, "RFC 5280 §4.2.1.12", "an unknown purpose", leaf(func(d *draft) { d.put(idExtKeyUsage, seq(oid(idServerAuth), oid(idClientAuth), oid(idPrivate))) })},
		{"purpose-any", widened, 1, "RFC 5280 §4.2.1.12", "any purpose", leaf(func(d *draft) { d.put(idExtKeyUsage, seq(oid(idServerAuth), oid(idAnyUsage))) })},
		{"purpose-missing", widened, 1, "RFC 5280 §4.2.1.12", "no extended key usage, which is every purpose", leaf(func(d *draft) { d.drop(idExtKeyUsage) })},
		{"purpose-fewer", widened, 1, "RFC 5280 §4.2.1.12", "a purpose less", leaf(func(d *draft) { d.put(idExtKeyUsage, seq(oid(idServerAuth))) })},
		{"purpose-twice", widened, 1, "RFC 5280 §4.2.1.12", "a purpose twice and the other missing", leaf(func(d *draft) { d.put(idExtKeyUsage, seq(oid(idServerAuth), oid(idServerAuth))) })},
		{"leaf-is-ca", widened, 1, "RFC 5280 §4.2.1.9", "a CA certificate in the place of a leaf", leaf(func(d *draft) {
			d.put(idBasicConstraints, seq(isTrue))
			d.put(idKeyUsage, bits(2, 0x84))
			d.subject = commonName("leaf")
		})},
		{"leaf-signs-lists", widened, 1, "RFC 5280 §4.2.1.3", "a leaf that may sign revocation lists", leaf(func(d *draft) { d.put(idKeyUsage, bits(1, 0x82)) })},
		{"extension-added", widened, 1, "RFC 5280 §4.2", "an extension that no profile asks for", extra(idPrivate, null)},
		{"extension-issuer-name", widened, 1, "RFC 5280 §4.2.1.7", "an alternative name of the issuer", extra(idIssuerAltName, seq(uri("http://ca.corpus.test")))},
		{"extension-critical", "RFC 5280 §4.2.1", 1, "RFC 5280 §4.2.1.4", "certificate policies that are critical", leaf(func(d *draft) {
			d.extensions = append(d.extensions, extension{idPolicies, isTrue, seq(seq(oid(idAnyPolicy))), nil})
		})},
		{"time-longer", widened, 1, "RFC 5280 §4.1.2.5", "a second more than was approved", leaf(func(d *draft) { d.validity = times(leafFrom, "300616120001Z") })},
		{"time-earlier", widened, 1, "RFC 5280 §4.1.2.5", "valid a second earlier than was approved", leaf(func(d *draft) { d.validity = times("300615105959Z", leafTo) })},
		{"time-over", "RFC 5280 §6.1.3 (a)(2)", 1, "RFC 5280 §6.1.3", "a second after its last", func(h *hierarchy) { h.at = "2030-06-16T12:00:01Z" }},
		{"time-not-yet", "RFC 5280 §6.1.3 (a)(2)", 1, "RFC 5280 §6.1.3", "a second before its first", func(h *hierarchy) { h.at = "2030-06-15T10:59:59Z" }},
	}
}
