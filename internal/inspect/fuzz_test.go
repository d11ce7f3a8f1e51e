package inspect

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/csr"
)

// printable checks that a text holds nothing that a terminal obeys.
func printable(t testing.TB, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("the output is not UTF-8: %q", text)
	}
	if at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 {
		t.Fatalf("the output holds %q", text[at:min(len(text), at+10)])
	}
}

// FuzzRead holds what Read accepts against the readers that it speaks for, and what it shows against what a terminal may see.
func FuzzRead(f *testing.F) {
	for name, encoding := range made(f) {
		f.Add(encoding, false)
		if label, ok := labelOf[name]; ok {
			f.Add(pem.Encode(label, encoding), true)
		}
	}
	f.Add([]byte(`{"keys": [{"kty": "EC", "use": "x509-svid", "x5c": ["MAA="]}], "spiffe_sequence": 1}`), false)
	f.Add([]byte(`{"trust_domains": {"a": {"keys": []}}}`), false)
	f.Add([]byte(`{"kind": "List", "items": [{"kind": "CertificateSigningRequest", "spec": {"request": "AAAA"}}]}`), false)
	f.Add([]byte("apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nspec: {request: AAAA}\nstatus: {certificate: AAAA}\n"), false)
	f.Fuzz(func(t *testing.T, input []byte, ber bool) {
		report := Read(input, Options{At: time.Unix(1_850_000_000, 0), AllowBER: ber})
		show(t, report)
		if ber || len(input) > pem.DefaultMaxBytes || len(report.Items) == 0 || len(report.Items) > pem.DefaultMaxBlocks {
			return
		}
		var err error
		switch kind := report.Items[0].Kind; {
		case report.Encoding == PEM && kind == KindCertificate:
			_, err = chain.ParsePEM(input)
		case report.Encoding == DER && kind == KindCertificate:
			_, err = chain.ParseCertificate(input)
		case kind == KindRevocationList:
			_, err = chain.ParseCRLs(input)
		case kind == KindRequest && len(input) <= csr.MaxDER:
			raw := report.Items[0].Request
			if raw == nil {
				return
			}
			_, err = csr.Parse(raw.DER(), csr.Rules{Wildcards: true})
			if err == nil && !report.Accepted && len(report.Items) == 1 {
				t.Fatalf("csr.Parse takes it, Read does not: %v", report.Refusals())
			}
			return
		default:
			return
		}
		if (err == nil) != report.Accepted {
			t.Fatalf("the reader says %v, Read says %v", err, report.Refusals())
		}
	})
}
