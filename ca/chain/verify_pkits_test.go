package chain

import (
	"crypto/x509"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pkitsCase is a row of the vectors that Go has beside the certificates.
type pkitsCase struct {
	Name                        string
	CertPath, CRLPath           []string
	ShouldValidate              bool
	InitialPolicySet            []string
	InitialPolicyMappingInhibit bool
	InitialExplicitPolicy       bool
	InitialAnyPolicyInhibit     bool
}

// pkitsTime lies within the validity of the suite, 2010 to 2030.
var pkitsTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// pkitsDeviations are the cases with another outcome than the suite says, and why.
var pkitsDeviations = map[string]string{
	"4.1.4 Valid DSA Signatures Test4":            "DSA and SHA-1 are refused",
	"4.1.5 Valid DSA Parameter Inheritance Test5": "DSA and SHA-1 are refused",
	"4.14.4 Valid distributionPoint Test4":        "crypto/x509 reads no relative names of distribution points",
	"4.14.5 Valid distributionPoint Test5":        "crypto/x509 reads no relative names of distribution points",
	"4.14.29 Valid cRLIssuer Test29":              "crypto/x509 reads no relative names of distribution points",
}

func TestPKITS(t *testing.T) {
	dir, cases := pkits(t)
	lists := pkitsLists(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			_, err := verifyPKITS(dir, c, lists)
			want := c.ShouldValidate
			why, deviates := pkitsDeviations[c.Name]
			if deviates {
				want = !want
			}
			if (err == nil) != want {
				t.Errorf("want valid %v (%s), found: %v", want, why, err)
			}
		})
	}
}

func pkits(t *testing.T) (dir string, cases []pkitsCase) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("asking the go command for GOROOT, which holds PKITS: %v", err)
	}
	dir = filepath.Join(strings.TrimSpace(string(root)), "src", "crypto", "x509", "testdata", "nist-pkits")
	vectors, err := os.ReadFile(filepath.Join(dir, "vectors.json"))
	if err != nil {
		t.Fatalf("reading PKITS, which comes with Go's sources: %v", err)
	}
	if err := json.Unmarshal(vectors, &cases); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "certs"), cases
}

// pkitsLists reads the suite's revocation lists: name, block, name, block.
func pkitsLists(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "test", "conformance", "testdata", "pkits-crls.pem"))
	if err != nil {
		t.Fatal(err)
	}
	lists := make(map[string][]byte)
	name, block := "", ""
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasSuffix(line, ".crl\n"):
			name, block = strings.TrimSpace(line), ""
		case name != "":
			block += line
			lists[name] = []byte(block)
		}
	}
	return lists
}

func verifyPKITS(dir string, c pkitsCase, lists map[string][]byte) (*Path, error) {
	var path []*x509.Certificate
	for _, name := range c.CertPath {
		encoding, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		certificate, err := ParseCertificate(encoding)
		if err != nil {
			return nil, err
		}
		path = append(path, certificate)
	}
	options := VerifyOptions{
		Roots: path[:1], Intermediates: path[1 : len(path)-1], At: pkitsTime, RequireCRLs: true,
		Policies: PolicyOptions{Explicit: c.InitialExplicitPolicy, InhibitMapping: c.InitialPolicyMappingInhibit, InhibitAny: c.InitialAnyPolicyInhibit},
	}
	for _, name := range c.CRLPath {
		// a list that cannot be read says nothing, and every one is needed
		if parsed, err := ParseCRLs(lists[name]); err == nil {
			options.CRLs = append(options.CRLs, parsed...)
		}
	}
	for _, name := range c.InitialPolicySet {
		policy, err := x509.ParseOID(pkitsPolicy(name))
		if err != nil {
			return nil, err
		}
		options.Policies.Acceptable = append(options.Policies.Acceptable, policy)
	}
	return Verify(path[len(path)-1], options)
}

func pkitsPolicy(name string) string {
	if name == "anyPolicy" {
		return "2.5.29.32.0"
	}
	return "2.16.840.1.101.3.2.1.48." + strings.TrimPrefix(name, "NIST-test-policy-")
}
