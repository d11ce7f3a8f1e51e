package corpora_test

import (
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
)

func TestCertificates(t *testing.T) {
	each(t, "certs", 120, func(t *testing.T, r row, content []byte) {
		encoding := one(t, content, "CERTIFICATE")
		_, err := chain.ParseCertificate(encoding)
		judge(t, r, "ParseCertificate", err, r["anyone"])
		_, err = chain.ParseIssued(encoding)
		judge(t, r, "ParseIssued", err, r["issued"])
		_, err = chain.ParsePEM(content)
		judge(t, r, "ParsePEM", err, r["anyone"])
		_, normalised, err := chain.ParseTolerant(encoding)
		judge(t, r, "ParseTolerant", err, r["anyone"])
		if normalised {
			t.Errorf("%s: ParseTolerant says that DER had to be normalised", r["what"])
		}
		_, findings := chain.Inspect(encoding)
		holdFindings(t, r, findings)
	})
}

// holdFindings holds the findings against the one that an index asks for.
func holdFindings(t *testing.T, r row, findings []chain.Finding) {
	t.Helper()
	worst := chain.Severity(0)
	for _, finding := range findings {
		worst = max(worst, finding.Severity)
	}
	rules := map[string]bool{}
	for _, finding := range findings {
		if finding.Severity == worst {
			rules[finding.Rule] = true
		}
	}
	rule := strings.Join(slices.Sorted(maps.Keys(rules)), "+")
	if rule == "" {
		rule = "-"
	}
	want := map[string]chain.Severity{"accept": 0, "nonconforming": chain.Nonconforming, "malformed": chain.Malformed}[r["verdict"]]
	if worst != want || rule != r["rule"] {
		t.Errorf("%s (%s): want %s %s, found %v", r["what"], r["section"], r["verdict"], r["rule"], ruled(findings))
	}
}

func ruled(findings []chain.Finding) []string {
	var out []string
	for _, finding := range findings {
		out = append(out, finding.Severity.String()+" "+finding.Rule+": "+finding.String())
	}
	return out
}

func TestRevocationLists(t *testing.T) {
	issuer, err := chain.ParseCertificate(one(t, read(t, "certs", "ca-good.pem"), "CERTIFICATE"))
	if err != nil {
		t.Fatal(err)
	}
	each(t, "crl", 25, func(t *testing.T, r row, content []byte) {
		encoding := one(t, content, "X509 CRL")
		_, err := chain.ParseCRL(encoding)
		judge(t, r, "ParseCRL", err, r["anyone"])
		_, err = chain.ParseIssuedCRL(encoding)
		judge(t, r, "ParseIssuedCRL", err, r["issued"])
		_, err = chain.ParseCRLs(content)
		judge(t, r, "ParseCRLs", err, r["anyone"])
		list, findings := chain.InspectCRL(encoding)
		holdFindings(t, r, findings)
		if list != nil && list.List().SignatureAlgorithm == x509.ECDSAWithSHA256 && !strings.HasPrefix(r["file"], "signature") {
			if err := list.List().CheckSignatureFrom(issuer); err != nil {
				t.Errorf("%s: its signature is not good: %v", r["file"], err)
			}
		}
	})
}
