package main

import (
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
)

//go:embed testdata/pkits-crls.pem
var pkitsLists string

// pkitsTime lies within the suite's validity, 2010 to 2030.
var pkitsTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// pkitsCase is a row of the vectors that Go has beside the certificates.
type pkitsCase struct {
	Name                        string
	CertPath, CRLPath           []string
	ShouldValidate              bool
	InitialPolicySet            []string
	InitialPolicyMappingInhibit bool
	InitialExplicitPolicy       bool
	InitialAnyPolicyInhibit     bool

	certificates, lists [][]byte
}

func pkits() corpus {
	c := corpus{name: "NIST PKITS", about: "path validation with policies, name constraints and revocation lists, every list needed", deviations: pkitsDeviations}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		c.absent = "there is no go command"
		return c
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "src", "crypto", "x509", "testdata", "nist-pkits")
	vectors, err := os.ReadFile(filepath.Join(dir, "vectors.json"))
	if err != nil {
		c.absent = "this Go has no sources with it"
		return c
	}
	var cases []pkitsCase
	if err := json.Unmarshal(vectors, &cases); err != nil {
		c.absent = err.Error()
		return c
	}
	lists := splitLists(pkitsLists)
	for _, p := range cases {
		for _, name := range p.CertPath {
			encoding, err := os.ReadFile(filepath.Join(dir, "certs", name))
			if err != nil {
				c.absent = err.Error()
				return c
			}
			p.certificates = append(p.certificates, encoding)
		}
		for _, name := range p.CRLPath {
			p.lists = append(p.lists, lists[name])
		}
		t := test{name: p.Name, accept: p.ShouldValidate, ours: p.ours, openssl: p.openssl}
		if !p.needsLists() && !p.InitialExplicitPolicy && !p.InitialPolicyMappingInhibit && !p.InitialAnyPolicyInhibit {
			t.standard = p.standard
		}
		c.tests = append(c.tests, t)
	}
	return c
}

var pkitsDeviations = map[string]string{
	"4.1.4 Valid DSA Signatures Test4":            "DSA keys and signatures with SHA-1 are refused",
	"4.1.5 Valid DSA Parameter Inheritance Test5": "DSA keys and signatures with SHA-1 are refused; crypto/x509 does not read inherited parameters",
	"4.14.4 Valid distributionPoint Test4":        "crypto/x509 does not read a certificate whose distribution point has a relative name",
	"4.14.5 Valid distributionPoint Test5":        "crypto/x509 does not read a certificate whose distribution point has a relative name",
	"4.14.29 Valid cRLIssuer Test29":              "crypto/x509 does not read a certificate whose distribution point has a relative name",
}

// splitLists reads name, block, name, block.
func splitLists(text string) map[string][]byte {
	lists := make(map[string][]byte)
	name := ""
	for line := range strings.Lines(text) {
		switch {
		case strings.HasSuffix(line, ".crl\n"):
			name = strings.TrimSpace(line)
		case name != "":
			lists[name] = append(lists[name], line...)
		}
	}
	return lists
}

// needsLists tells whether the outcome hangs on revocation lists, which crypto/x509 does not look at.
func (p pkitsCase) needsLists() bool {
	for _, section := range []string{"4.4.", "4.5.", "4.7.4 ", "4.7.5 ", "4.14.", "4.15."} {
		if strings.HasPrefix(p.Name, section) {
			return true
		}
	}
	return false
}

func (p pkitsCase) policies() []x509.OID {
	var policies []x509.OID
	for _, name := range p.InitialPolicySet {
		if oid, err := x509.ParseOID(pkitsPolicy(name)); err == nil {
			policies = append(policies, oid)
		}
	}
	return policies
}

func pkitsPolicy(name string) string {
	if name == "anyPolicy" {
		return "2.5.29.32.0"
	}
	return "2.16.840.1.101.3.2.1.48." + strings.TrimPrefix(name, "NIST-test-policy-")
}

func (p pkitsCase) ours() error {
	options := chain.VerifyOptions{At: pkitsTime, RequireCRLs: true, Policies: chain.PolicyOptions{
		Acceptable: p.policies(), Explicit: p.InitialExplicitPolicy, InhibitMapping: p.InitialPolicyMappingInhibit, InhibitAny: p.InitialAnyPolicyInhibit,
	}}
	path, err := parseAll(chain.ParseCertificate, p.certificates)
	if err != nil {
		return err
	}
	options.Roots, options.Intermediates = path[:1], path[1:len(path)-1]
	for _, text := range p.lists {
		// a list that cannot be read says nothing, and every one is needed
		if lists, err := chain.ParseCRLs(text); err == nil {
			options.CRLs = append(options.CRLs, lists...)
		}
	}
	_, err = chain.Verify(path[len(path)-1], options)
	return err
}

func (p pkitsCase) standard() error {
	path, err := parseAll(x509.ParseCertificate, p.certificates)
	if err != nil {
		return err
	}
	return standardVerify(path[len(path)-1], path[:1], path[1:], x509.VerifyOptions{
		CurrentTime: pkitsTime, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, CertificatePolicies: p.policies(),
	})
}

func (p pkitsCase) openssl() error {
	last := len(p.certificates) - 1
	in := opensslInput{
		roots: toPEM("CERTIFICATE", p.certificates[0]), intermediates: toPEM("CERTIFICATE", p.certificates[1:last]...),
		leaf:      toPEM("CERTIFICATE", p.certificates[last]),
		arguments: []string{"-attime", strconv.FormatInt(pkitsTime.Unix(), 10), "-crl_check_all", "-extended_crl", "-use_deltas", "-policy_check"},
	}
	for _, list := range p.lists {
		in.lists = append(in.lists, list...)
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{p.InitialExplicitPolicy, "-explicit_policy"}, {p.InitialPolicyMappingInhibit, "-inhibit_map"}, {p.InitialAnyPolicyInhibit, "-inhibit_any"}} {
		if flag.set {
			in.arguments = append(in.arguments, flag.name)
		}
	}
	for _, name := range p.InitialPolicySet {
		in.arguments = append(in.arguments, "-policy", pkitsPolicy(name))
	}
	return in.verify()
}

func parseAll(parse func([]byte) (*x509.Certificate, error), encodings [][]byte) ([]*x509.Certificate, error) {
	certificates := make([]*x509.Certificate, len(encodings))
	for i, encoding := range encodings {
		var err error
		if certificates[i], err = parse(encoding); err != nil {
			return nil, err
		}
	}
	return certificates, nil
}

// standardVerify is crypto/x509's verification with the same inputs.
func standardVerify(leaf *x509.Certificate, roots, intermediates []*x509.Certificate, options x509.VerifyOptions) error {
	options.Roots, options.Intermediates = x509.NewCertPool(), x509.NewCertPool()
	for _, certificate := range roots {
		options.Roots.AddCert(certificate)
	}
	for _, certificate := range intermediates {
		options.Intermediates.AddCert(certificate)
	}
	_, err := leaf.Verify(options)
	return err
}
