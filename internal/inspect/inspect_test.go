package inspect

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/pem"
)

func TestSpan(t *testing.T) {
	for _, test := range []struct {
		seconds int64
		want    string
	}{
		{0, "0 seconds"}, {1, "1 second"}, {59, "59 seconds"}, {119, "119 seconds"}, {120, "2 minutes"}, {43*60 + 59, "43 minutes"}, {7199, "119 minutes"},
		{7200, "2 hours"}, {172799, "47 hours"}, {172800, "2 days"}, {729 * 86400, "729 days"}, {730 * 86400, "2 years"}, {1 << 40, "34865 years"},
	} {
		if got := span(test.seconds); got != test.want {
			t.Errorf("%d seconds: got %q, want %q", test.seconds, got, test.want)
		}
	}
}

func TestValidity(t *testing.T) {
	at := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name                string
		notBefore, notAfter time.Time
		status              Status
		want                string
	}{
		{"within", at.Add(-time.Hour), at.Add(43 * time.Minute), Valid, "valid for another 43 minutes (until 2027-01-15T12:43:00Z)"},
		{"the first second", at, at.Add(time.Hour), Valid, "valid for another 60 minutes (until 2027-01-15T13:00:00Z)"},
		{"the last second", at.Add(-time.Hour), at, Valid, "valid for another 0 seconds (until 2027-01-15T12:00:00Z)"},
		{"over", at.Add(-time.Hour), at.Add(-time.Second), Expired, "expired 1 second ago (at 2027-01-15T11:59:59Z)"},
		{"to come", at.Add(time.Minute), at.Add(time.Hour), NotYetValid, "not valid yet: starts in 60 seconds (at 2027-01-15T12:01:00Z)"},
		{"without an end", at, endless, Valid, "valid without an end"},
		{"very long", at, time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC), Valid, "valid for another 6977 years (until 9000-01-01T00:00:00Z)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := validity(test.notBefore, test.notAfter, at)
			if v.Status != test.status || v.String() != test.want {
				t.Errorf("got %s, %q; want %s, %q", v.Status, v, test.status, test.want)
			}
		})
	}
}

func TestClean(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"plain", "CN=web, O=Größe 東京", "CN=web, O=Größe 東京"},
		{"escape sequence", "a\x1b[2Jb", `a\x1b[2Jb`},
		{"line ends", "a\r\nb", `a\r\nb`},
		{"C1 control", "a\u009bb", `a\u009bb`},
		{"direction", "a\u202eb\u2066c", `a\u202eb\u2066c`},
		{"not UTF-8", "a\xff\xc3(", `a\xff\xc3(`},
		{"long", strings.Repeat("é", maxShown), strings.Repeat("é", maxShown/2) + "… (2100 bytes more)"},
		{"cut inside a character", "x" + strings.Repeat("é", maxShown), "x" + strings.Repeat("é", (maxShown-1)/2) + "… (2102 bytes more)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Clean(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestEncodeJSONKeepsWhatItEscapes(t *testing.T) {
	in := map[string]string{"name": "a\x1b\u009b\u202e\U000e0001\u2028<é東\U0001f600"}
	var out bytes.Buffer
	if err := EncodeJSON(&out, in); err != nil {
		t.Fatal(err)
	}
	printable(t, out.String())
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["name"] != in["name"] {
		t.Errorf("got %q, %v", back["name"], err)
	}
}

// made are one thing of each kind in DER.
func made(t testing.TB) map[string][]byte {
	t.Helper()
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]byte)
	keep := func(name string) func([]byte, error) {
		return func(encoding []byte, err error) {
			if out[name] = encoding; err != nil {
				t.Fatal(name, err)
			}
		}
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Root"}, NotBefore: time.Unix(1_800_000_000, 0), NotAfter: time.Unix(1_900_000_000, 0), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte{1, 2, 3},
	}
	keep("certificate")(x509.CreateCertificate(rand.Reader, template, template, p256.Public(), p256))
	keep("request")(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"a.example"}}, p256))
	keep("request without anything")(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, ed))
	root, err := x509.ParseCertificate(out["certificate"])
	if err != nil {
		t.Fatal(err)
	}
	keep("list")(x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Unix(1_800_000_000, 0), NextUpdate: time.Unix(1_800_100_000, 0),
	}, root, p256))
	keep("PKCS #8")(x509.MarshalPKCS8PrivateKey(ed))
	keep("SEC 1")(x509.MarshalECPrivateKey(p256))
	keep("PKCS #1")(x509.MarshalPKCS1PrivateKey(rsa2048), nil)
	keep("public")(x509.MarshalPKIXPublicKey(rsa2048.Public()))
	return out
}

func TestDERIsToldApart(t *testing.T) {
	kinds := map[string]Kind{
		"certificate": KindCertificate, "request": KindRequest, "request without anything": KindRequest, "list": KindRevocationList, "PKCS #8": KindPrivateKey,
		"SEC 1": KindPrivateKey, "PKCS #1": KindPrivateKey, "public": KindPublicKey,
	}
	for name, encoding := range made(t) {
		report := Read(encoding, Options{At: time.Unix(1_850_000_000, 0)})
		if !report.Accepted || report.Encoding != DER || len(report.Items) != 1 || report.Items[0].Kind != kinds[name] {
			t.Errorf("%s: %s, %v %v", name, report.Encoding, report.Items, report.Refusals())
		}
	}
}

// labelOf are the labels that things of made have in PEM.
var labelOf = map[string]string{
	"certificate": "CERTIFICATE", "request": "CERTIFICATE REQUEST", "list": "X509 CRL", "PKCS #8": "PRIVATE KEY", "SEC 1": "EC PRIVATE KEY",
	"PKCS #1": "RSA PRIVATE KEY", "public": "PUBLIC KEY",
}

func TestWhatMayStandInOneText(t *testing.T) {
	things := made(t)
	for _, test := range []struct {
		names    []string
		accepted bool
	}{
		{[]string{"certificate", "certificate"}, true},
		{[]string{"list", "list"}, true},
		{[]string{"SEC 1"}, true},
		{[]string{"request", "request"}, false},
		{[]string{"certificate", "SEC 1"}, false},
		{[]string{"certificate", "list"}, false},
		{[]string{"request", "certificate"}, false},
	} {
		var text []byte
		for _, name := range test.names {
			text = pem.Append(text, labelOf[name], things[name])
		}
		if report := Read(text, Options{At: time.Unix(1_850_000_000, 0)}); report.Accepted != test.accepted || len(report.Items) != len(test.names) {
			t.Errorf("%v: accepted %v, %d items", test.names, report.Accepted, len(report.Items))
		}
	}
}

func TestPrivateKeysAreNeverShown(t *testing.T) {
	things := made(t)
	for _, name := range []string{"PKCS #8", "SEC 1", "PKCS #1"} {
		text := append(pem.Encode(labelOf[name], things[name]), pem.Encode("CERTIFICATE", things["certificate"])...)
		for _, input := range [][]byte{things[name], text, things[name][:len(things[name])-1], bytes.Replace(text, []byte("-----END"), []byte("----END"), 1)} {
			shown := show(t, Read(input, Options{}))
			for at := 0; at+8 < len(things[name]); at += 8 {
				for _, leak := range []string{string(things[name][at : at+8]), hexOf(things[name][at : at+8])} {
					// the public half is in the certificate, and may be shown
					if strings.Contains(shown, leak) {
						t.Fatalf("%s: octets of the key are shown: %q", name, shown)
					}
				}
			}
			lines := strings.Split(string(pem.Encode("X", things[name])), "\n")
			for _, line := range lines[1 : len(lines)-2] {
				if strings.Contains(shown, line) {
					t.Fatalf("%s: a line of the key is shown: %q", name, shown)
				}
			}
		}
	}
}

func hexOf(octets []byte) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for _, o := range octets {
		out.WriteByte(digits[o>>4])
		out.WriteByte(digits[o&15])
	}
	return out.String()
}

// show returns everything that can be shown of a report, and checks that a terminal may see it.
func show(t testing.TB, report *Report) string {
	t.Helper()
	var out bytes.Buffer
	page := NewPage(&out, false)
	report.Write(page)
	report.WriteShort(page)
	if err := page.Err(); err != nil {
		t.Fatal(err)
	}
	if err := EncodeJSON(&out, report); err != nil {
		t.Fatal(err)
	}
	printable(t, out.String())
	return out.String()
}
