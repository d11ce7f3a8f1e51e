package chain

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"
)

// choices turns the octets of an input into decisions; when they end, every decision is the first.
type choices struct{ left []byte }

func (c *choices) below(n int) int {
	if len(c.left) == 0 {
		return 0
	}
	octet := c.left[0]
	c.left = c.left[1:]
	return int(octet) % n
}

func (c *choices) one(of int) bool { return c.below(of) == of-1 }

// constrain adds name constraints of the kinds that mean the same to crypto/x509: it reads a bare host of a URI or a mailbox as a domain, so
// those are never excluded here. Nor are there URIs without a host, which it refuses under constraints of any kind.
func (c *choices) constrain(template *x509.Certificate) {
	domains := []string{"example.test", "a.example.test", ".example.test", "other.test", "test"}
	networks := []*net.IPNet{{IP: net.IP{192, 0, 2, 0}, Mask: net.CIDRMask(24, 32)}, {IP: net.IP{0, 0, 0, 0}, Mask: net.CIDRMask(0, 32)}, {IP: make(net.IP, 16), Mask: net.CIDRMask(0, 128)}}
	switch c.below(24) {
	case 1:
		template.PermittedDNSDomains = []string{domains[c.below(len(domains))]}
	case 2:
		template.ExcludedDNSDomains = []string{domains[c.below(len(domains))]}
	case 3:
		template.PermittedURIDomains = []string{domains[c.below(len(domains))]}
	case 4:
		template.ExcludedURIDomains = []string{".example.test"}
	case 5:
		template.PermittedEmailAddresses = []string{[]string{"a@example.test", "example.test", ".example.test"}[c.below(3)]}
	case 6:
		template.ExcludedEmailAddresses = []string{[]string{"a@example.test", ".example.test"}[c.below(2)]}
	case 7:
		template.PermittedIPRanges = networks[c.below(3):][:1]
	case 8:
		template.ExcludedIPRanges = networks[c.below(3):][:1]
	}
}

func (c *choices) policies(template *x509.Certificate) {
	switch c.below(20) {
	case 1:
		template.ExtraExtensions = append(template.ExtraExtensions, policiesOf(policyOne))
	case 2:
		template.ExtraExtensions = append(template.ExtraExtensions, policiesOf(policyOne, policyTwo))
	case 3:
		template.ExtraExtensions = append(template.ExtraExtensions, policiesOf(oidAnyPolicy))
	case 4:
		template.ExtraExtensions = append(template.ExtraExtensions, policiesOf(policyOne), mappingOf(policyOne, policyTwo))
	case 5:
		template.ExtraExtensions = append(template.ExtraExtensions, policiesOf(policyTwo), requireExplicitOf(byte(c.below(3))))
	case 6:
		template.ExtraExtensions = append(template.ExtraExtensions, requireExplicitOf(byte(c.below(3))))
	}
}

// common changes what any certificate may have.
func (c *choices) common(template *x509.Certificate) {
	usages := [][]x509.ExtKeyUsage{nil, {x509.ExtKeyUsageServerAuth}, {x509.ExtKeyUsageClientAuth}, {x509.ExtKeyUsageAny}, {x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if c.one(3) {
		template.ExtKeyUsage = usages[c.below(len(usages))]
	}
	if c.one(10) {
		template.NotAfter = testNow.Add(-time.Duration(c.below(3)) * time.Second)
	}
	c.policies(template)
}

func (c *choices) ca(t testing.TB, number int) *x509.Certificate {
	name := number
	if c.one(4) {
		name = c.below(number + 1)
	}
	template := caTemplate(fmt.Sprint("CA ", name), int64(100+number))
	template.SubjectKeyId = []byte{byte(c.below(3))}
	c.common(template)
	c.constrain(template)
	if c.one(5) {
		template.MaxPathLen = c.below(3)
		template.MaxPathLenZero = template.MaxPathLen == 0
	}
	if c.one(20) {
		template.IsCA, template.MaxPathLen, template.MaxPathLenZero = false, -1, false
	}
	if c.one(20) {
		template.KeyUsage = x509.KeyUsageCRLSign
	}
	return template
}

func (c *choices) end() *x509.Certificate {
	template := leafTemplate()
	c.common(template)
	template.DNSNames = [][]string{nil, {"a.example.test"}, {"*.example.test"}, {"a.example.test", "b.other.test"}}[c.below(4)]
	template.IPAddresses = [][]net.IP{nil, {net.IP{192, 0, 2, 7}}, {net.ParseIP("2001:db8::1")}}[c.below(3)]
	template.EmailAddresses = [][]string{nil, {"a@example.test"}, {"A@b.example.test"}}[c.below(3)]
	template.URIs = [][]*url.URL{nil, {{Scheme: "spiffe", Host: "example.test", Path: "/a"}}, {{Scheme: "https", Host: "a.example.test:1"}}}[c.below(3)]
	return template
}

// FuzzVerify builds a graph of authorities from its input. What we accept, crypto/x509 accepts with the same inputs.
func FuzzVerify(f *testing.F) {
	f.Add([]byte{})
	for i := range 40 {
		seed := make([]byte, 60)
		for j := range seed {
			seed[j] = byte(i*7 + j*j*(i+1) + j*13)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		c := &choices{input}
		var all []*entity
		for i := range 2 + c.below(5) {
			template := c.ca(t, i)
			var issuer *entity
			if i > 0 && !c.one(12) {
				issuer = all[i-1]
			}
			if i > 1 && c.one(4) {
				issuer = all[c.below(i)]
			}
			all = append(all, issue(t, template, testKey(t, c.below(4)), issuer))
		}
		leaf := issue(t, c.end(), testKey(t, 6), all[len(all)-1-c.below(2)]).certificate

		options := VerifyOptions{At: testNow, Host: []string{"", "a.example.test", "192.0.2.7", "2001:db8::1"}[c.below(4)]}
		standard := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: testNow, DNSName: options.Host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
		if c.one(2) {
			options.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			standard.KeyUsages = options.Usages
		}
		if c.one(4) {
			options.Policies.Acceptable = []x509.OID{parseOID(t, "1.2.3.1")}
			standard.CertificatePolicies = options.Policies.Acceptable
		}
		roots := 1 + c.below(4)/3
		for i, ca := range all {
			if i < roots {
				options.Roots = append(options.Roots, ca.certificate)
				standard.Roots.AddCert(ca.certificate)
				continue
			}
			options.Intermediates = append(options.Intermediates, ca.certificate)
			standard.Intermediates.AddCert(ca.certificate)
		}
		path, err := Verify(leaf, options)
		if err != nil {
			return
		}
		for i, certificate := range path.Certificates {
			if i > 0 && i < len(path.Certificates)-1 && string(certificate.RawIssuer) == string(certificate.RawSubject) {
				return // crypto/x509 knows no exemptions for self-issued certificates
			}
		}
		if _, err := leaf.Verify(standard); err != nil {
			t.Errorf("we accept a path of %d certificates, crypto/x509 says: %v", len(path.Certificates), err)
		}
	})
}
