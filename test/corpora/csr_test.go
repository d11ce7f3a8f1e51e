package corpora_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"strconv"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/csr"
)

// waivers are the rules that let a request through which the strictest ones refuse.
var waivers = map[string]csr.Rules{
	"MaxNames":        {MaxNames: 200},
	"Emails":          {Emails: true},
	"Wildcards":       {Wildcards: true},
	"CA":              {CA: true},
	"SystemSubjects":  {SystemSubjects: true},
	"StrayCommonName": {StrayCommonName: true},
	"EncodedDefaults": {EncodedDefaults: true},
	"Extensions":      {Extensions: []asn1.ObjectIdentifier{{1, 3, 6, 1, 4, 1, 32473, 1}}},
}

func TestRequests(t *testing.T) {
	each(t, "csr", 90, func(t *testing.T, r row, content []byte) {
		request, err := csr.Parse(content, csr.Rules{})
		judge(t, r, "Parse", err, r["verdict"])
		if err == nil {
			if shown := request.String(); strings.Contains(shown, "corpus-challenge") {
				t.Errorf("%s: it is shown with its challenge password: %s", r["what"], shown)
			}
			return
		}
		if !strings.Contains(err.Error(), r["field"]) {
			t.Errorf("%s (%s): the refusal has to be about %q, and says: %v", r["what"], r["section"], r["field"], err)
		}
		for name, rules := range waivers {
			verdict := "reject"
			if name == r["waiver"] {
				verdict = "accept"
			}
			_, err := csr.Parse(content, rules)
			judge(t, r, "Parse with "+name, err, verdict)
		}
	})
}

// TestLargeRequests is about inputs that are too large to be read, and to be kept.
func TestLargeRequests(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{}
	for i := range 90 {
		template.DNSNames = append(template.DNSNames, strings.Repeat(strings.Repeat("l", 60)+".", 3)+strconv.Itoa(i)+".corpus.test")
	}
	large, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	good := read(t, "csr", "text-der.der")
	for name, input := range map[string][]byte{
		"17 KiB of DER":      large,
		"24 KiB of PEM":      pem.Encode("CERTIFICATE REQUEST", large),
		"a megabyte of text": join(bytes.Repeat([]byte("text\n"), 200_000), pem.Encode("CERTIFICATE REQUEST", good)),
		"6 MiB of 30 80":     bytes.Repeat([]byte{0x30, 0x80}, 3<<20),
		"zeros":              make([]byte, 1<<20),
		"a length of 4 GiB":  {0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0x30},
	} {
		if _, err := csr.Parse(input, csr.Rules{}); err == nil {
			t.Errorf("%s: Parse accepts it", name)
		}
	}
}

// TestAllWaivers sees to it that no request gets through that is refused under each single rule, when all of them are set.
func TestAllWaivers(t *testing.T) {
	all := csr.Rules{
		MaxNames: 200, Emails: true, Wildcards: true, CA: true, SystemSubjects: true, StrayCommonName: true, EncodedDefaults: true,
		Extensions: waivers["Extensions"].Extensions,
	}
	each(t, "csr", 90, func(t *testing.T, r row, content []byte) {
		verdict := r["verdict"]
		if r["waiver"] != "-" {
			verdict = "accept"
		}
		_, err := csr.Parse(content, all)
		judge(t, r, "Parse with every rule", err, verdict)
	})
}
