package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/lint"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/signer/local"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

type floor struct{ whole, bare float64 }

// parts are what the floor and the steps work on.
type parts struct {
	request   []byte
	leaf      chain.Leaf
	issuer    *x509.Certificate
	root      *x509.Certificate
	hierarchy *local.Hierarchy
	algorithm chain.Algorithm
}

func newParts() (*parts, error) {
	hierarchy, err := local.Create(spiffeid.RequireTrustDomainFromString("bench.test"), time.Now())
	if err != nil {
		return nil, err
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	p := &parts{hierarchy: hierarchy, issuer: hierarchy.Issuer, root: hierarchy.Root}
	if p.request, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key); err != nil {
		return nil, err
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	p.leaf = chain.Leaf{
		Serial: big.NewInt(1).Lsh(big.NewInt(1), 150), Names: identity.Names{URIs: []string{"spiffe://bench.test/ns/ns1/sa/sa1"}}, SPKI: spki,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore: hierarchy.Issuer.NotBefore, NotAfter: now.Add(time.Hour),
	}
	p.algorithm, err = chain.AlgorithmFor(hierarchy.IssuerKey.Public())
	return p, err
}

// measureFloor issues certificates with crypto/x509 alone, in one goroutine, and returns how many a second of CPU time yields.
func measureFloor(ctx context.Context, duration time.Duration) (floor, error) {
	p, err := newParts()
	if err != nil {
		return floor{}, err
	}
	whole, err := perCPUSecond(ctx, duration, p.withLibrary)
	if err != nil {
		return floor{}, err
	}
	bare, err := perCPUSecond(ctx, duration, p.withoutCheck)
	return floor{whole, bare}, err
}

func (p *parts) withLibrary() error {
	request, err := x509.ParseCertificateRequest(p.request)
	if err != nil {
		return err
	}
	if err := request.CheckSignature(); err != nil {
		return err
	}
	serial, err := randomSerial()
	if err != nil {
		return err
	}
	_, err = x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, NotBefore: p.leaf.NotBefore, NotAfter: p.leaf.NotAfter, KeyUsage: p.leaf.KeyUsage, ExtKeyUsage: p.leaf.ExtKeyUsage,
		BasicConstraintsValid: true, URIs: []*url.URL{{Scheme: "spiffe", Host: "bench.test", Path: "/ns/ns1/sa/sa1"}},
	}, p.issuer, request.PublicKey, p.hierarchy.IssuerKey)
	return err
}

func (p *parts) withoutCheck() error {
	request, err := x509.ParseCertificateRequest(p.request)
	if err != nil {
		return err
	}
	if err := request.CheckSignature(); err != nil {
		return err
	}
	leaf := p.leaf
	if leaf.Serial, err = randomSerial(); err != nil {
		return err
	}
	leaf.SPKI = request.RawSubjectPublicKeyInfo
	tbs, err := leaf.TBS(p.issuer, p.algorithm)
	if err != nil {
		return err
	}
	_, err = p.algorithm.Certificate(tbs, p.hierarchy.IssuerKey, rand.Reader)
	return err
}

func perCPUSecond(ctx context.Context, duration time.Duration, once func() error) (float64, error) {
	began, cpu, count := time.Now(), ownCPU(), 0
	for ; time.Since(began) < duration && ctx.Err() == nil; count++ {
		if err := once(); err != nil {
			return 0, err
		}
	}
	return float64(count) / (ownCPU() - cpu).Seconds(), ctx.Err()
}

func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Step is one part of an issuance, measured alone.
type Step struct {
	Name         string  `json:"name"`
	Microseconds float64 `json:"microseconds"`
}

// steps measures each part of the pipeline alone, without the transport and the ledger.
func steps() []Step {
	p, err := newParts()
	if err != nil {
		return nil
	}
	linter, err := lint.New()
	if err != nil {
		return nil
	}
	checker, err := chain.NewChecker([]*x509.Certificate{p.root})
	if err != nil {
		return nil
	}
	tbs, _ := p.leaf.TBS(p.issuer, p.algorithm)
	der, _ := p.algorithm.Certificate(tbs, p.hierarchy.IssuerKey, rand.Reader)
	leaf, err := chain.ParseIssued(der)
	if err != nil {
		return nil
	}
	signed, _ := chain.New(leaf, p.issuer)
	named := []struct {
		name string
		do   func() error
	}{
		{"csr.Parse", func() error { _, err := csr.Parse(p.request, csr.Rules{}); return err }},
		{"  of it, verifying its signature", func() error {
			request, err := x509.ParseCertificateRequest(p.request)
			if err != nil {
				return err
			}
			return request.CheckSignature()
		}},
		{"lint before, shape known", func() error { _, err := linter.Template(p.leaf, p.issuer, true); return err }},
		{"lint before, free names", func() error { _, err := linter.Template(p.leaf, p.issuer, false); return err }},
		{"build TBSCertificate", func() error { _, err := p.leaf.TBS(p.issuer, p.algorithm); return err }},
		{"sign", func() error { _, err := p.algorithm.Certificate(tbs, p.hierarchy.IssuerKey, rand.Reader); return err }},
		{"parse what was signed, strictly", func() error { _, err := chain.ParseIssued(der); return err }},
		{"check the chain", func() error { return checker.Check(signed, p.leaf, time.Now()) }},
	}
	passed, err := linter.Template(p.leaf, p.issuer, true)
	if err != nil || linter.Chain(signed, passed) != nil {
		return nil
	}
	var out []Step
	for _, n := range named {
		var failed error
		r := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				failed = n.do()
			}
		})
		if failed != nil {
			n.name += " (failed: " + failed.Error() + ")"
		}
		out = append(out, Step{n.name, float64(r.NsPerOp()) / 1e3})
	}
	return out
}
