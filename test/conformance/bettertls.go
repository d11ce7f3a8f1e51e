package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"time"

	testcase "github.com/Netflix/bettertls/test-suites/test-case"
	executor "github.com/Netflix/bettertls/test-suites/test-executor"

	"github.com/chancery-ca/chancery/ca/chain"
)

// betterTLS makes the suites' certificates anew: they are valid around now.
func betterTLS() ([]corpus, error) {
	suites, err := executor.BuildTestSuites()
	if err != nil {
		return nil, err
	}
	var corpora []corpus
	for _, name := range []string{"pathbuilding", "nameconstraints"} {
		provider := suites.GetProvider(name)
		c := corpus{name: "bettertls " + name, about: map[string]string{
			"pathbuilding":    "graphs of cross-signed authorities in which some edges are invalid; OpenSSL does not go back to try another path",
			"nameconstraints": "permitted and excluded domains and addresses, with names hidden in other kinds",
		}[name]}
		count, err := provider.GetTestCaseCount()
		if err != nil {
			return nil, err
		}
		for i := range count {
			definition, err := provider.GetTestCase(i)
			if err != nil {
				return nil, err
			}
			b, err := newBetterTLSCase(suites, definition)
			if err != nil {
				return nil, err
			}
			t := test{name: fmt.Sprintf("%s %d", name, i), ours: b.ours, standard: b.standard}
			switch definition.ExpectedResult() {
			case testcase.EXPECTED_RESULT_PASS:
				t.accept = true
			case testcase.EXPECTED_RESULT_SOFT_PASS, testcase.EXPECTED_RESULT_SOFT_FAIL:
				t.skip = "the suite takes either answer (whether common names count)"
			}
			// nine thousand processes would take minutes
			if name == "pathbuilding" {
				t.openssl = b.openssl
			}
			c.tests = append(c.tests, t)
		}
		corpora = append(corpora, c)
	}
	return corpora, nil
}

type betterTLSCase struct {
	root         *x509.Certificate
	certificates [][]byte // leaf first
	host         string
	at           time.Time
}

func newBetterTLSCase(suites *executor.TestSuites, definition testcase.TestCase) (betterTLSCase, error) {
	made, err := suites.GetTestCaseCertificates(definition)
	if err != nil {
		return betterTLSCase{}, err
	}
	return betterTLSCase{suites.GetRootCert(), made.Certificate, definition.GetHostname(), time.Now()}, nil
}

func (b betterTLSCase) ours() error {
	path, err := parseAll(chain.ParseCertificate, b.certificates)
	if err != nil {
		return err
	}
	_, err = chain.Verify(path[0], chain.VerifyOptions{
		Roots: []*x509.Certificate{b.root}, Intermediates: path[1:], At: b.at, Host: b.host, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

func (b betterTLSCase) standard() error {
	path, err := parseAll(x509.ParseCertificate, b.certificates)
	if err != nil {
		return err
	}
	return standardVerify(path[0], []*x509.Certificate{b.root}, path[1:], x509.VerifyOptions{CurrentTime: b.at, DNSName: b.host})
}

func (b betterTLSCase) openssl() error {
	in := opensslInput{
		roots: toPEM("CERTIFICATE", b.root.Raw), intermediates: toPEM("CERTIFICATE", b.certificates[1:]...), leaf: toPEM("CERTIFICATE", b.certificates[0]),
		arguments: []string{"-purpose", "sslserver", "-verify_hostname", b.host},
	}
	if net.ParseIP(b.host) != nil {
		in.arguments[2] = "-verify_ip"
	}
	return in.verify()
}

// pemBlocks returns the contents of every certificate that encoding/pem finds.
func pemBlocks(text []byte) [][]byte {
	var blocks [][]byte
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return blocks
		}
		if strings.Contains(block.Type, "CERTIFICATE") {
			blocks = append(blocks, block.Bytes)
		}
		text = rest
	}
}
