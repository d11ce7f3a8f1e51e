// Package inspect says what somebody has in a file: certificates and chains, certificate requests, revocation lists, keys, SPIFFE bundles
// and Kubernetes' CertificateSigningRequest objects, as PEM, DER, BER, JSON or YAML.
//
// It reads with the strict readers of this module and shows what they find, odd things included. Nothing in a Report is verified against a
// trust anchor. The package never shows a private key or a challenge password, never reads files and never writes a byte of the input that
// a terminal could obey.
package inspect

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
)

// Schema names the form of a Report in JSON. Fields may be added to it; none is renamed, removed or given another meaning.
const Schema = "chancery.inspect.v1"

// Options says how to read.
type Options struct {
	// At is the time that validity is told for.
	At time.Time
	// AllowBER reads certificates whose outer encoding is BER, as der.Normalize describes it.
	AllowBER bool
}

// Report is everything that one input holds. Its JSON form is described in docs/inspect.md.
type Report struct {
	Schema string    `json:"schema"`
	At     time.Time `json:"at"`
	// Accepted tells whether the readers of this module take the input: no Finding, of it or of an item, has the severity Refused.
	Accepted bool      `json:"accepted"`
	Encoding Encoding  `json:"encoding"`
	Items    []*Item   `json:"items"`
	Findings []Finding `json:"findings"` // about the input as a whole
}

// Encoding is how an input is written.
type Encoding string

// The encodings.
const (
	PEM  Encoding = "pem"
	DER  Encoding = "der" // or BER
	JSON Encoding = "json"
	YAML Encoding = "yaml"
)

// Item is one thing in an input. The field that Kind names is set, unless the thing could not be read; then Findings say why.
type Item struct {
	Kind     Kind `json:"kind"`
	Position int  `json:"position"`       // in its list, counted from 1
	Line     int  `json:"line,omitempty"` // of its BEGIN boundary, counted from 1; zero if it is not in PEM

	Certificate       *Certificate       `json:"certificate,omitempty"`
	Request           *Request           `json:"request,omitempty"`
	RevocationList    *RevocationList    `json:"revocation_list,omitempty"`
	PrivateKey        *PrivateKey        `json:"private_key,omitempty"`
	PublicKey         *Key               `json:"public_key,omitempty"`
	Bundle            *Bundle            `json:"bundle,omitempty"`
	KubernetesRequest *KubernetesRequest `json:"kubernetes_request,omitempty"`

	Findings []Finding `json:"findings"`
}

// Kind says what an Item is.
type Kind string

// The kinds.
const (
	KindCertificate       Kind = "certificate"
	KindRequest           Kind = "request"
	KindRevocationList    Kind = "revocation_list"
	KindPrivateKey        Kind = "private_key"
	KindPublicKey         Kind = "public_key"
	KindBundle            Kind = "bundle"
	KindKubernetesRequest Kind = "kubernetes_request"
)

// Finding is something that is worth knowing about an input or an item.
type Finding struct {
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule"`              // a short and stable identifier, as "san-dns-syntax"
	Section  string   `json:"section,omitempty"` // as "RFC 5280 §4.2.1.6"
	Detail   string   `json:"detail"`            // a sentence
}

// Severity says how bad a Finding is.
type Severity string

// The severities.
const (
	// Refused: no reader of this module takes it.
	Refused Severity = "refused"
	// Nonconforming: it can be read in one way only, but who follows the standard never makes it.
	Nonconforming Severity = "nonconforming"
	// Note: it is allowed, and a person should know.
	Note Severity = "note"
)

// Read says what an input holds. It always returns a report; an input that cannot be read is one without items.
func Read(input []byte, options Options) *Report {
	r := &Report{Schema: Schema, At: options.At.UTC().Truncate(time.Second), Items: []*Item{}, Findings: []Finding{}}
	in := reader{options: options}
	switch r.Encoding = encodingOf(input); r.Encoding {
	case DER:
		r.Items = []*Item{in.binary(input)}
	case JSON:
		r.Items, r.Findings = in.json(input)
	case YAML:
		r.Items, r.Findings = in.yaml(input)
	default:
		r.Items, r.Findings = in.text(input)
	}
	number(r.Items)
	r.Accepted = len(r.Refusals()) == 0
	return r
}

// reader reads one input.
type reader struct {
	options Options
}

// item returns an empty item of a kind.
func item(kind Kind) *Item { return &Item{Kind: kind, Findings: []Finding{}} }

func (i *Item) add(severity Severity, rule, section, format string, args ...any) {
	i.Findings = append(i.Findings, Finding{severity, rule, section, fmt.Sprintf(format, args...)})
}

// found takes over the findings of a strict reader, which refuses what crypto/x509 does not read for whatever was found.
func (i *Item) found(findings []chain.Finding, readable bool) {
	for _, f := range findings {
		severity := Nonconforming
		if f.Severity == chain.Malformed || !readable {
			severity = Refused
		}
		i.Findings = append(i.Findings, Finding{severity, f.Rule, f.Section, f.Detail})
	}
}

func number(items []*Item) {
	for i, item := range items {
		item.Position = i + 1
	}
}

// inner returns the items that an item holds.
func (i *Item) inner() []*Item {
	switch {
	case i.Bundle != nil:
		return i.Bundle.Authorities
	case i.KubernetesRequest != nil:
		return append([]*Item{i.KubernetesRequest.Request}, i.KubernetesRequest.Certificates...)
	}
	return nil
}

// Certificates returns the certificates of a report in order: those of the input itself, of its bundles and of its Kubernetes objects. Use
// X509 to get what may be used of them.
func (r *Report) Certificates() []*Item {
	var out []*Item
	var visit func(items []*Item)
	visit = func(items []*Item) {
		for _, item := range items {
			if item.Kind == KindCertificate {
				out = append(out, item)
			}
			visit(item.inner())
		}
	}
	visit(r.Items)
	return out
}

// X509 returns the certificate as chain.ParseCertificate would, or nil if that refuses it.
func (i *Item) X509() *x509.Certificate {
	if i.Certificate == nil || len(refusals(i.Findings)) > 0 {
		return nil
	}
	return i.Certificate.parsed
}

// Refusals returns every finding that makes the input one that is not accepted.
func (r *Report) Refusals() []Finding {
	out := refusals(r.Findings)
	for _, item := range r.Items {
		out = append(out, item.refusals()...)
	}
	return out
}

// refusals returns those of an item and of the items that it holds.
func (i *Item) refusals() []Finding {
	out := refusals(i.Findings)
	for _, inner := range i.inner() {
		out = append(out, inner.refusals()...)
	}
	return out
}

func refusals(findings []Finding) []Finding {
	var out []Finding
	for _, f := range findings {
		if f.Severity == Refused {
			out = append(out, f)
		}
	}
	return out
}

// encodingOf tells the encodings apart by their first octets. DER starts with a SEQUENCE, and so could text with the digit 0, whose next
// character is no length that fits. YAML is recognised only where no PEM block starts a line, so that nothing around a block hides it.
func encodingOf(input []byte) Encoding {
	if len(input) > 1 && input[0] == 0x30 && (input[1] >= 0x80 || int(input[1])+2 == len(input)) {
		return DER
	}
	if trimmed := bytes.TrimLeft(input, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		return JSON
	}
	yaml := false
	for line := range bytes.Lines(input) {
		if bytes.HasPrefix(line, []byte("-----BEGIN")) {
			return PEM
		}
		yaml = yaml || bytes.HasPrefix(line, []byte("apiVersion:"))
	}
	if yaml {
		return YAML
	}
	return PEM
}
