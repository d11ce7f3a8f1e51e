package corpora_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/pem"
)

// approved is the JSON beside a chain.
type approved struct {
	Serial    string    `json:"serial"`
	Subject   []byte    `json:"subject"`
	DNS       []string  `json:"dns"`
	URIs      []string  `json:"uris"`
	IPs       []string  `json:"ips"`
	SPKI      []byte    `json:"spki"`
	KeyUsage  []string  `json:"key_usage"`
	Usages    []string  `json:"usages"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
}

func (a approved) leaf(t *testing.T) chain.Leaf {
	t.Helper()
	leaf := chain.Leaf{
		Subject: a.Subject, Names: identity.Names{DNS: a.DNS, URIs: a.URIs}, SPKI: a.SPKI, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: a.NotBefore, NotAfter: a.NotAfter,
	}
	if a.Serial != "" {
		leaf.Serial, _ = new(big.Int).SetString(a.Serial, 16)
	}
	for _, text := range a.IPs {
		leaf.Names.IPs = append(leaf.Names.IPs, netip.MustParseAddr(text))
	}
	for _, usage := range a.Usages {
		known, ok := map[string]x509.ExtKeyUsage{"serverAuth": x509.ExtKeyUsageServerAuth, "clientAuth": x509.ExtKeyUsageClientAuth}[usage]
		if !ok {
			t.Fatalf("the usage %s is not known", usage)
		}
		leaf.ExtKeyUsage = append(leaf.ExtKeyUsage, known)
	}
	if len(a.KeyUsage) != 1 || a.KeyUsage[0] != "digitalSignature" {
		t.Fatalf("the key usages %v are not known", a.KeyUsage)
	}
	return leaf
}

func TestChains(t *testing.T) {
	each(t, "chains", 40, func(t *testing.T, r row, content []byte) {
		name := strings.TrimSuffix(r["file"], ".pem")
		var want approved
		if err := json.Unmarshal(read(t, "chains", name+".approved.json"), &want); err != nil {
			t.Fatal(err)
		}
		anchors, err := chain.ParsePEM(read(t, "chains", name+".anchors.pem"))
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, r["at"])
		if err != nil {
			t.Fatal(err)
		}
		checker, err := chain.NewChecker(anchors)
		if err != nil {
			t.Fatal(err)
		}
		// the second time, the checker has seen what is above the leaf
		for range 2 {
			err = checker.Check(parseChain(t, content), want.leaf(t), at)
			judge(t, r, "Check", err, r["verdict"])
			holdRefusal(t, r, err)
		}
		sent := parseChain(t, content)
		_, err = chain.Verify(sent.Leaf(), chain.VerifyOptions{
			Roots: anchors, Intermediates: sent.Intermediates(), At: at, Usages: want.leaf(t).ExtKeyUsage, Conforming: true,
		})
		judge(t, r, "Verify", err, r["path"])
	})
}

// parseChain reads a chain as a backend's answer is read.
func parseChain(t *testing.T, content []byte) chain.Chain {
	t.Helper()
	blocks, err := pem.Decode(content, pem.Rules{Labels: []string{"CERTIFICATE"}})
	if err != nil {
		t.Fatal(err)
	}
	certificates := make([]*x509.Certificate, len(blocks))
	for i, block := range blocks {
		if certificates[i], err = chain.ParseCertificate(block.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := chain.New(certificates...)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// holdRefusal holds the rule and the certificate that a refusal names against the index.
func holdRefusal(t *testing.T, r row, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var refused *chain.Error
	if !errors.As(err, &refused) {
		t.Errorf("%s: the error is a %T", r["what"], err)
		return
	}
	if refused.Rule != r["rule"] || strconv.Itoa(refused.Position) != r["position"] {
		t.Errorf("%s: want a refusal of certificate %s by %q, got: %v", r["what"], r["position"], r["rule"], err)
	}
}

// TestChainTooLong is about a chain that New refuses before anything is checked.
func TestChainTooLong(t *testing.T) {
	leaf := parseChain(t, read(t, "chains", "good.pem"))
	certificates := []*x509.Certificate{leaf.Leaf()}
	for range 6 {
		certificates = append(certificates, leaf.Intermediates()[0])
	}
	if _, err := chain.New(certificates...); err == nil {
		t.Error("a chain of seven certificates is accepted")
	}
	if _, err := chain.New(); err == nil {
		t.Error("a chain of no certificate is accepted")
	}
}
