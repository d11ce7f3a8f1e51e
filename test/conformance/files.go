package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/csr"
)

// filesTime is the clock of the certificates that were made with a verdict each.
var filesTime = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

// verdicts returns the rows of an index.tsv as maps, by the names in its first line.
func verdicts(dir string) ([]map[string]string, error) {
	index, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		return nil, err
	}
	var header []string
	var rows []map[string]string
	for line := range strings.Lines(string(index)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if header == nil {
			header = fields
			continue
		}
		row := make(map[string]string)
		for i, field := range fields {
			row[header[i]] = field
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// files returns the corpora of files with verdicts.
func files(dir string) []corpus {
	return []corpus{
		fileCorpus("files: certificates", "one defect each: as a backend's answer, strictly", filepath.Join(dir, "certs"), certificateTest),
		fileCorpus("files: PEM", "texts around and inside blocks; every certificate has to be found", filepath.Join(dir, "pem"), pemTest),
		fileCorpus("files: BER", "BER outside what is signed is normalised, anything else refused", filepath.Join(dir, "ber"), berTest),
		fileCorpus("files: requests", "certificate requests, with the default rules", filepath.Join(dir, "csr"), requestTest),
	}
}

func fileCorpus(name, about, dir string, newTest func(dir string, row map[string]string) (test, error)) corpus {
	c := corpus{name: name, about: about}
	rows, err := verdicts(dir)
	if err != nil {
		c.absent = "the set is not beside the project"
		return c
	}
	for _, row := range rows {
		t, err := newTest(dir, row)
		if err != nil {
			c.absent = err.Error()
			return c
		}
		t.name = row["file"]
		c.tests = append(c.tests, t)
	}
	return c
}

func certificateTest(dir string, row map[string]string) (test, error) {
	text, err := os.ReadFile(filepath.Join(dir, row["file"]))
	if err != nil {
		return test{}, err
	}
	root, err := os.ReadFile(filepath.Join(dir, "root.pem"))
	if err != nil {
		return test{}, err
	}
	intermediate, err := os.ReadFile(filepath.Join(dir, "intermediate.pem"))
	if err != nil {
		return test{}, err
	}
	roots, intermediates := standardReadable([]string{string(root)}), standardReadable([]string{string(intermediate)})
	leaf := pemBlocks(text)[0]
	return test{
		accept: row["rfc5280_verdict"] == "accept",
		ours: func() error {
			certificate, err := chain.ParseIssued(leaf)
			if err != nil {
				return err
			}
			_, err = chain.Verify(certificate, chain.VerifyOptions{Roots: roots, Intermediates: intermediates, At: filesTime})
			return err
		},
		standard: func() error {
			certificate, err := x509.ParseCertificate(leaf)
			if err != nil {
				return err
			}
			return standardVerify(certificate, roots, intermediates, x509.VerifyOptions{CurrentTime: filesTime, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		},
		openssl: func() error {
			in := opensslInput{roots: root, intermediates: intermediate, leaf: text, arguments: []string{
				"-attime", strconv.FormatInt(filesTime.Unix(), 10), "-x509_strict",
			}}
			return in.verify()
		},
	}, nil
}

func pemTest(dir string, row map[string]string) (test, error) {
	text, err := os.ReadFile(filepath.Join(dir, row["file"]))
	if err != nil {
		return test{}, err
	}
	want := row["recommended"] == "accept" || strings.HasPrefix(row["recommended"], "policy")
	count, err := strconv.Atoi(row["recommended_certs"])
	if err != nil {
		return test{}, err
	}
	found := func(certificates int) error {
		if certificates == 0 || want && certificates != count {
			return errors.New("other certificates were found than there are")
		}
		return nil
	}
	return test{
		accept: want,
		ours: func() error {
			certificates, err := chain.ParsePEM(text)
			if err != nil {
				return err
			}
			return found(len(certificates))
		},
		standard: func() error {
			certificates, err := parseAll(x509.ParseCertificate, pemBlocks(text))
			if err != nil {
				return err
			}
			return found(len(certificates))
		},
	}, nil
}

func berTest(dir string, row map[string]string) (test, error) {
	input, err := os.ReadFile(filepath.Join(dir, row["file"]+".der"))
	if err != nil {
		return test{}, err
	}
	return test{
		accept: row["safe_profile"] == "accept",
		ours: func() error {
			_, _, err := chain.ParseTolerant(input)
			return err
		},
		standard: func() error {
			_, err := x509.ParseCertificate(input)
			return err
		},
		openssl: func() error { return openssl(input, "x509", "-inform", "DER", "-noout") },
	}, nil
}

func requestTest(dir string, row map[string]string) (test, error) {
	text, err := os.ReadFile(filepath.Join(dir, row["file"]))
	if err != nil {
		return test{}, err
	}
	t := test{
		accept: strings.HasPrefix(row["recommended"], "accept"),
		ours: func() error {
			_, err := csr.Parse(text, csr.Rules{})
			return err
		},
		standard: func() error {
			block, _ := pem.Decode(text)
			if block == nil {
				return errors.New("there is no block")
			}
			request, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				return err
			}
			return request.CheckSignature()
		},
		openssl: func() error { return openssl(text, "req", "-verify", "-noout") },
	}
	if strings.HasPrefix(row["recommended"], "drop") || t.accept && strings.Contains(row["recommended"], " or reject") {
		t.skip = "the set takes either answer"
	}
	return t, nil
}
