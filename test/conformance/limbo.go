package main

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
)

// limboCase is what is used of a test case of C2SP/x509-limbo.
type limboCase struct {
	ID            string    `json:"id"`
	Features      []string  `json:"features"`
	Trusted       []string  `json:"trusted_certs"`
	Intermediates []string  `json:"untrusted_intermediates"`
	Peer          string    `json:"peer_certificate"`
	Time          time.Time `json:"validation_time"`
	KeyUsage      []string  `json:"key_usage"`
	Usages        []string  `json:"extended_key_usage"`
	Kind          string    `json:"validation_kind"`
	Result        string    `json:"expected_result"`
	PeerName      *peerName `json:"expected_peer_name"`
	MaxChainDepth *int      `json:"max_chain_depth"`
	CRLs          []string  `json:"crls"`
}

type peerName struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

// limboTime is within the validity of the cases that name no time.
var limboTime = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

func limbo(dir string) corpus {
	all := corpus{name: "x509-limbo", about: "as `chancery verify` does", deviations: limboDeviations}
	cases, err := readLimbo(dir)
	if err != nil {
		all.absent = "the set is not beside the project"
	}
	for _, c := range cases {
		all.tests = append(all.tests, test{
			name: c.ID, accept: c.Result == "SUCCESS", skip: c.outOfScope(), ours: c.ours, standard: c.standard, openssl: c.openssl,
		})
	}
	return all
}

func readLimbo(dir string) ([]limboCase, error) {
	text, err := os.ReadFile(filepath.Join(dir, "limbo-regen.json"))
	if err != nil {
		return nil, err
	}
	var set struct {
		Testcases []limboCase `json:"testcases"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	for i, c := range set.Testcases {
		if c.Time.IsZero() {
			set.Testcases[i].Time = limboTime
		}
	}
	return set.Testcases, nil
}

// usages returns the wanted usages; a case that names none is about a server or a client.
func (c limboCase) usages() []x509.ExtKeyUsage {
	client := c.Kind == "CLIENT"
	if len(c.Usages) > 0 {
		client = slices.Contains(c.Usages, "clientAuth")
	}
	if client {
		return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

func (c limboCase) ours() error {
	leaf, err := chain.ParsePEM([]byte(c.Peer))
	if err != nil {
		return err
	}
	options := chain.VerifyOptions{At: c.Time, Usages: c.usages(), PathLength: c.MaxChainDepth}
	options.Roots = readable(c.Trusted)
	options.Intermediates = readable(c.Intermediates)
	for _, text := range c.CRLs {
		lists, err := chain.ParseCRLs([]byte(text))
		if err != nil {
			return err
		}
		options.CRLs = append(options.CRLs, lists...)
	}
	if c.PeerName != nil {
		options.Host = c.PeerName.Value
	}
	if slices.Contains(c.KeyUsage, "digitalSignature") {
		options.KeyUsage = x509.KeyUsageDigitalSignature
	}
	_, err = chain.Verify(leaf[0], options)
	return err
}

// readable returns the certificates that our parser takes; what it refuses is nobody's issuer.
func readable(texts []string) []*x509.Certificate {
	var certificates []*x509.Certificate
	for _, text := range texts {
		if parsed, err := chain.ParsePEM([]byte(text)); err == nil {
			certificates = append(certificates, parsed...)
		}
	}
	return certificates
}

func (c limboCase) standard() error {
	if len(c.CRLs) > 0 || c.MaxChainDepth != nil {
		return errNotApplicable
	}
	leaf := standardReadable([]string{c.Peer})
	if len(leaf) == 0 {
		return errors.New("the leaf cannot be read")
	}
	options := x509.VerifyOptions{CurrentTime: c.Time, KeyUsages: c.usages()}
	if c.PeerName != nil {
		options.DNSName = c.PeerName.Value
	}
	return standardVerify(leaf[0], standardReadable(c.Trusted), standardReadable(c.Intermediates), options)
}

func standardReadable(texts []string) []*x509.Certificate {
	var certificates []*x509.Certificate
	for _, text := range texts {
		if block, _ := pem.Decode([]byte(text)); block != nil {
			if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
				certificates = append(certificates, certificate)
			}
		}
	}
	return certificates
}

func (c limboCase) openssl() error {
	purpose := "sslserver"
	if c.usages()[0] == x509.ExtKeyUsageClientAuth {
		purpose = "sslclient"
	}
	in := opensslInput{
		roots: []byte(strings.Join(c.Trusted, "")), intermediates: []byte(strings.Join(c.Intermediates, "")), leaf: []byte(c.Peer),
		lists:     []byte(strings.Join(c.CRLs, "")),
		arguments: []string{"-attime", strconv.FormatInt(c.Time.Unix(), 10), "-purpose", purpose, "-partial_chain", "-x509_strict"},
	}
	if len(c.CRLs) > 0 {
		in.arguments = append(in.arguments, "-crl_check")
	}
	if c.MaxChainDepth != nil {
		in.arguments = append(in.arguments, "-verify_depth", strconv.Itoa(*c.MaxChainDepth))
	}
	if c.PeerName != nil && c.PeerName.Kind == "IP" {
		in.arguments = append(in.arguments, "-verify_ip", c.PeerName.Value)
	} else if c.PeerName != nil {
		in.arguments = append(in.arguments, "-verify_hostname", c.PeerName.Value)
	}
	return in.verify()
}
