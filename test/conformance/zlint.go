package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	zx509 "github.com/zmap/zcrypto/x509"
	"github.com/zmap/zlint/v3"
	"github.com/zmap/zlint/v3/lint"

	"github.com/chancery-ca/chancery/ca/chain"
)

const zlintModule = "github.com/zmap/zlint/v3"

// zlintData holds Inspect and InspectCRL against zlint over the certificates and lists that zlint's own tests are made of.
func zlintData() (corpus, error) {
	c := corpus{name: "zlint testdata", about: "certificates and lists in which zlint's rules for RFC 5280 find an error; right is if `chain.Inspect` finds one, too", deviations: zlintDeviations()}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", zlintModule).Output()
	if err != nil {
		return c, fmt.Errorf("finding the module's folder: %w", err)
	}
	registry, err := lint.GlobalRegistry().Filter(lint.FilterOptions{IncludeSources: lint.SourceList{lint.RFC5280}})
	if err != nil {
		return c, err
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "*.pem"))
	if err != nil {
		return c, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return c, err
		}
		if t, ok := zlintTest(filepath.Base(file), text, registry); ok {
			c.tests = append(c.tests, t)
		}
	}
	return c, nil
}

// zlintTest returns the case that a file is, if it holds one certificate or list that zlint reads.
func zlintTest(name string, text []byte, registry lint.Registry) (test, bool) {
	block, _ := pem.Decode(text)
	if block == nil {
		return test{}, false
	}
	var results *zlint.ResultSet
	var inspect func() []chain.Finding
	switch block.Type {
	case "CERTIFICATE":
		parsed, err := zx509.ParseCertificate(block.Bytes)
		if err != nil {
			return test{}, false
		}
		results = zlint.LintCertificateEx(parsed, registry)
		inspect = func() []chain.Finding {
			_, findings := chain.Inspect(block.Bytes)
			return findings
		}
	case "X509 CRL":
		parsed, err := zx509.ParseRevocationList(block.Bytes)
		if err != nil {
			return test{}, false
		}
		results = zlint.LintRevocationListEx(parsed, registry)
		inspect = func() []chain.Finding {
			_, findings := chain.InspectCRL(block.Bytes)
			return findings
		}
	default:
		return test{}, false
	}
	t := test{name: name, ours: func() error {
		if findings := inspect(); len(findings) > 0 {
			return errors.New(findings[0].String())
		}
		return nil
	}}
	if !hasError(results) {
		t.skip = "zlint's rules for RFC 5280 find no error"
	}
	return t, true
}

func hasError(results *zlint.ResultSet) bool {
	for _, result := range results.Results {
		if result.Status == lint.Error || result.Status == lint.Fatal {
			return true
		}
	}
	return false
}

// zlintDeviations are the files in which zlint alone finds an error.
func zlintDeviations() map[string]string {
	deviations := make(map[string]string)
	for reason, names := range map[string][]string{
		"e_ext_authority_key_identifier_no_key_identifier: a certificate whose issuer is its subject counts as self-signed, which may lack it": {
			"IANURIHostFQDN.pem", "IANURIHostIP.pem", "IANURIHostIPv6.pem", "IANURIHostOpaqueURN.pem", "IANURIHostURIExampleCom.pem",
			"IANURIHostWildcardFQDN.pem", "IANURINoAuthority.pem", "SANDNSDuplicate.pem", "orgid_subj_and_ext_ok_06.pem",
		},
		"e_key_usage_and_extended_key_usage_inconsistent: which key usages fit which extended ones is for profiles": {
			"dnsNameClientCert.pem", "ecc_key_dv_with_prohibited_key_usage.pem", "evAllGood.pem", "subCrlDistURLInCompoundFullName.pem",
		},
		"e_ext_cannot_be_empty_sequence: subject directory attributes are not read":                      {"empty_seq_of_sda.pem"},
		"e_subj_email_not_in_san: mailboxes in a subject are not looked for in the alternative names":    {"rootCAKeyUsageNotCritical.pem"},
		"e_ext_cert_policy_disallowed_any_policy_qualifier: qualifiers of unknown kinds are not refused": {"withAnyPolicyWithoutCPSOrUserNoticeQualifier.pem"},
	} {
		for _, name := range names {
			deviations[name] = reason
		}
	}
	return deviations
}
