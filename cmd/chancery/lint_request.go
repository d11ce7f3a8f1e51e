package main

import (
	"cmp"
	"crypto/x509"
	"math/big"
	"strings"
	"time"
	"unicode"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/internal/inspect"
)

// request lints an input that has to be one certificate request, in PEM, in DER or in an object of Kubernetes.
func (r *lintRules) request(input []byte) ([]lintFinding, error) {
	report := inspect.Read(input, inspect.Options{})
	if report.Encoding == inspect.YAML || report.Encoding == inspect.JSON {
		if len(report.Items) != 1 || report.Items[0].KubernetesRequest == nil {
			return append(ofInput(report), lintFinding{Rule: "csr-one", Section: "RFC 2986", Detail: "there is not one certificate request in it"}), nil
		}
		embedded := report.Items[0].KubernetesRequest.Request
		if embedded.Request == nil {
			return structure(embedded), nil
		}
		input = embedded.Request.DER()
	}
	request, err := csr.Parse(input, csr.Rules{Wildcards: true})
	if err != nil {
		return []lintFinding{fromRequest(err)}, nil
	}
	return r.wouldIssue(request)
}

// wouldIssue lints what would be issued for a request, under an issuer that nobody knows.
func (r *lintRules) wouldIssue(request *csr.Request) ([]lintFinding, error) {
	names := request.Names()
	if names.Empty() {
		names = identity.Names{URIs: []string{"spiffe://example.org/whoever-sends-it"}}
	}
	begins := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := r.linter.Template(chain.Leaf{
		Serial: big.NewInt(1), Names: names, SPKI: request.SPKI(), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, NotBefore: begins, NotAfter: begins.Add(time.Hour),
	}, nil, false)
	return fromLinter(err)
}

// fromRequest returns the finding of csr.Parse's error, whose sentence begins with the field and may name the section.
func fromRequest(err error) lintFinding {
	sentence := strings.TrimPrefix(err.Error(), "certificate request: ")
	finding := lintFinding{Rule: "csr", Section: cmp.Or(inspect.SectionOf(sentence), "RFC 2986 §4"), Detail: sentence}
	if field, _, found := strings.Cut(sentence, ": "); found && len(field) < 30 && strings.Count(field, " ") < 2 {
		finding.Rule = "csr-" + hyphened(field)
	}
	return finding
}

// hyphened makes an identifier of a field's name: "subject-alt-name" of subjectAltName.
func hyphened(field string) string {
	var out strings.Builder
	for _, c := range field {
		switch {
		case c == ' ':
			out.WriteByte('-')
		case unicode.IsUpper(c):
			out.WriteByte('-')
			out.WriteRune(unicode.ToLower(c))
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}
