package main

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/internal/inspect"
)

// chain lints an input that has to be certificates, leaf first.
func (r *lintRules) chain(report *inspect.Report) ([]lintFinding, error) {
	findings := ofInput(report)
	items := report.Certificates()
	switch {
	case len(findings) > 0:
		return findings, nil
	case len(items) == 0:
		return []lintFinding{{Rule: "chain-empty", Section: "RFC 7468 §5", Detail: "there is no certificate in it"}}, nil
	}
	readable := true
	for n, item := range items {
		linted, err := r.member(item, n)
		if err != nil {
			return nil, err
		}
		for _, finding := range linted {
			finding.Certificate = n + 1
			findings = append(findings, finding)
		}
		readable = readable && item.X509() != nil
	}
	if !readable || len(findings) > 0 {
		// what is wrong with one certificate alone would be found again in the path
		return findings, nil
	}
	return together(items)
}

// member lints one certificate of a chain by its place.
func (r *lintRules) member(item *inspect.Item, n int) ([]lintFinding, error) {
	if n > 0 {
		return structure(item), nil
	}
	if item.Certificate != nil && item.Certificate.CA {
		return []lintFinding{{Rule: "chain-order", Section: "RFC 8446 §4.4.2", Detail: "it is a CA certificate; a chain begins with its leaf"}}, nil
	}
	return r.leaf(item)
}

// together runs the checker of issuance. What was approved is taken to be what the leaf says, and the last certificate to be the trust anchor.
func together(items []*inspect.Item) ([]lintFinding, error) {
	if len(items) == 1 {
		return nil, nil
	}
	certificates := make([]*x509.Certificate, len(items))
	for n, item := range items {
		certificates[n] = item.X509()
	}
	begins, ends := certificates[0], certificates[0]
	for _, certificate := range certificates {
		if certificate.NotBefore.After(begins.NotBefore) {
			begins = certificate
		}
		if certificate.NotAfter.Before(ends.NotAfter) {
			ends = certificate
		}
	}
	if ends.NotAfter.Before(begins.NotBefore) {
		return []lintFinding{{Rule: "chain-window", Section: "RFC 5280 §6.1.3 (a)(2)", Detail: fmt.Sprintf(
			"there is no time at which all are valid: one ends at %s, another begins at %s", stamp(ends.NotAfter), stamp(begins.NotBefore))}}, nil
	}
	return checkChain(certificates, items[0].Certificate.Names, begins.NotBefore), nil
}

func checkChain(certificates []*x509.Certificate, names []string, at time.Time) []lintFinding {
	leaf, last := certificates[0], len(certificates)-1
	// the checker would say that no anchor is known, and there is none but the last certificate
	if below, anchor := certificates[last-1], certificates[last]; !bytes.Equal(below.RawIssuer, anchor.RawSubject) {
		return []lintFinding{{Certificate: last, Rule: "chain-order", Section: "RFC 8446 §4.4.2", Detail: fmt.Sprintf(
			"its issuer is %s, and the next certificate is that of %s", below.Issuer, anchor.Subject)}}
	} else if !bytes.Equal(below.AuthorityKeyId, anchor.SubjectKeyId) {
		return []lintFinding{{Certificate: last, Rule: "chain-order", Section: "RFC 5280 §4.2.1.1", Detail: fmt.Sprintf(
			"its authority key identifier %x is not the subject key identifier %x of the next certificate", below.AuthorityKeyId, anchor.SubjectKeyId)}}
	}
	checker, err := chain.NewChecker(certificates[last:])
	if err != nil {
		return fromChecker(err, "chain")
	}
	signed, err := chain.New(certificates[:last]...)
	if err != nil {
		return fromChecker(err, "chain")
	}
	err = checker.Check(signed, chain.Leaf{
		Serial: leaf.SerialNumber, Subject: leaf.RawSubject, Names: approved(names), SPKI: leaf.RawSubjectPublicKeyInfo, KeyUsage: leaf.KeyUsage,
		ExtKeyUsage: leaf.ExtKeyUsage, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
	}, at)
	return fromChecker(err, "chain")
}

// approved returns the names of a leaf as an approval of them would have.
func approved(names []string) identity.Names {
	var out identity.Names
	for _, name := range names {
		kind, value, _ := strings.Cut(name, ":")
		switch kind {
		case "URI":
			out.URIs = append(out.URIs, value)
		case "DNS":
			out.DNS = append(out.DNS, value)
		case "IP":
			if address, err := netip.ParseAddr(value); err == nil {
				out.IPs = append(out.IPs, address)
			}
		}
	}
	return out
}
