package csr_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/csr"
)

func TestDNSNames(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Join([]string{label, label, label, strings.Repeat("b", 61)}, ".") // 253 octets
	for name, fragment := range map[string]string{
		"a.test": "", "localhost": "", "WEB.Default.SVC": "", "1.example.test": "", "a--b.test": "", "r3---x.test": "", "0x1f.test": "",
		"xn--bcher-kva.test": "", "XN--Bcher-KVA.test": "", label + ".test": "", long: "",
		"":                                 "is empty",
		" ":                                "other than letters",
		"a b.test":                         "other than letters",
		"a_b.test":                         "other than letters",
		"a.test\x00.evil.test":             "other than letters",
		"a.test\n":                         "other than letters",
		"bücher.test":                      "other than letters",
		"a/b.test":                         "other than letters",
		"a.test:443":                       "other than letters",
		"a.test.":                          "ends with a dot",
		".":                                "ends with a dot",
		".a.test":                          "has an empty label",
		"a..test":                          "has an empty label",
		"-a.test":                          "begins or ends with a hyphen",
		"a-.test":                          "begins or ends with a hyphen",
		label + "a.test":                   "longer than 63",
		long + "b":                         "longer than 253",
		"10.0.0.7":                         "is an IP address or looks like one",
		"a.7":                              "is an IP address or looks like one",
		"7":                                "is an IP address or looks like one",
		"0x7f.0x1":                         "is an IP address or looks like one",
		"0X":                               "is an IP address or looks like one",
		"::1":                              "other than letters",
		"xn--a-ecp.ru":                     "is not one of IDNA",
		"xn--.test":                        "begins or ends with a hyphen",
		"xn--a.test":                       "is not one of IDNA",
		"xn--bcher-kva0.test":              "is not one of IDNA",
		"xn--99999999999999.test":          "is not one of IDNA",
		"*":                                "other than letters",
		"*.":                               "is empty",
		"*.a.test":                         "is a wildcard",
		"a*.test":                          "other than letters",
		"*a.test":                          "other than letters",
		"a.*.test":                         "other than letters",
		"*.*.test":                         "other than letters",
		"https://a.test":                   "other than letters",
		strings.Repeat("a", 300) + "\x00b": "longer than 253",
	} {
		t.Run(name, func(t *testing.T) {
			got := wants(t, newRecipe().withSAN(dns(name)).der(), csr.Rules{}, fragment)
			if fragment == "" && got.Names().DNS[0] != strings.ToLower(name) {
				t.Errorf("names are %v", got.Names())
			}
		})
	}
}

func TestWildcardsByRule(t *testing.T) {
	for name, fragment := range map[string]string{
		"*.example.test": "", "*.svc.cluster.local": "", "a.example.test": "",
		"*.test":         "covers a whole top-level domain",
		"*":              "other than letters",
		"**.a.test":      "other than letters",
		"*.*.test":       "other than letters",
		"a*.b.test":      "other than letters",
		"a.*.test":       "other than letters",
		"*.10.0.0":       "looks like one",
		"*.xn--a.b.test": "is not one of IDNA",
	} {
		t.Run(name, func(t *testing.T) {
			wants(t, newRecipe().withSAN(dns(name)).der(), csr.Rules{Wildcards: true}, fragment)
		})
	}
}

func TestURIs(t *testing.T) {
	for text, fragment := range map[string]string{
		goodURI: "", "spiffe://td_1.example/a": "", "https://a.test": "", "https://a.test:8443/x?y=z#f": "", "https://[2001:db8::1]:443/": "",
		"https://10.0.0.7/": "", "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6": "", "mailto:a@b.test": "", "file:///etc/x": "", "x:/y": "",
		"https://a.test/%C3%A9":              "",
		"":                                   "is not absolute",
		"web":                                "is not absolute",
		"/ns/default":                        "is not absolute",
		"//a.test/x":                         "is not absolute",
		"a.test:443":                         "", // a scheme "a.test", as RFC 3986 has it
		"https:":                             "is not absolute",
		"https://":                           "is not absolute",
		":":                                  "is malformed",
		"1x://a":                             "is malformed",
		"https://a.test/ x":                  "characters that a URI may not hold",
		"https://a.test/\x00":                "characters that a URI may not hold",
		"https://a.test/é":                   "characters that a URI may not hold",
		"https://a.test/\\":                  "characters that a URI may not hold",
		"https://a.test/<x>":                 "characters that a URI may not hold",
		"https://a.test/%zz":                 "is malformed",
		"https://a.test/%2":                  "is malformed",
		"https://a.test:x/":                  "is malformed",
		"https://u@a.test/":                  "a user or a password",
		"https://u:p@a.test/":                "a user or a password",
		"https://a..test/":                   "has an empty label",
		"https://a.test./":                   "ends with a dot",
		"https://a_b.test/":                  "other than letters",
		"https://%61.test/":                  "is malformed",
		"https://1.2.3/":                     "looks like one",
		"https://:443/":                      "is empty",
		"https://[fe80::1%25e]":              "other than letters",
		"spiffe://cluster.local/ns//sa":      "is malformed",
		"spiffe://cluster.local/a/":          "is malformed",
		"spiffe://cluster.local/../x":        "is malformed",
		"spiffe://cluster.local/a?b":         "is malformed",
		"spiffe://cluster.local/a#b":         "is malformed",
		"spiffe://cluster.local:443/a":       "is malformed",
		"spiffe://u@cluster.local/a":         "is malformed",
		"spiffe://Cluster.Local/a":           "is malformed",
		"spiffe://cluster.local/%61":         "is malformed",
		"spiffe:///a":                        "is malformed",
		"spiffe:a":                           "is malformed",
		"SPIFFE://cluster.local/a":           "is malformed",
		"spiffe://cluster.local./a":          "has an empty label",
		"spiffe://a..b/a":                    "has an empty label",
		"spiffe://a/" + rep("b", 2037):       "",
		"spiffe://a/" + rep("b", 2038):       "longer than 2048",
		"https://a.test/" + rep("b", 3000):   "longer than 2048",
		"https://a.test/?q=" + rep("%00", 9): "",
	} {
		t.Run(text, func(t *testing.T) {
			got := wants(t, newRecipe().withSAN(uri(text)).der(), csr.Rules{}, fragment)
			if fragment == "" && got.Names().URIs[0] != text {
				t.Errorf("names are %v", got.Names())
			}
		})
	}
}

func rep(s string, count int) string { return strings.Repeat(s, count) }

func TestOneSPIFFEID(t *testing.T) {
	for name, test := range map[string]struct {
		names    [][]byte
		fragment string
	}{
		"one, and names of other kinds": {[][]byte{uri(goodURI), dns("a.test"), ip(10, 0, 0, 7)}, ""},
		"two":                           {[][]byte{uri(goodURI), uri(goodURI + "2")}, "an X.509-SVID has one URI"},
		"two, the same":                 {[][]byte{uri(goodURI), uri(goodURI)}, "an X.509-SVID has one URI"},
		"before another URI":            {[][]byte{uri(goodURI), uri("https://a.test")}, "an X.509-SVID has one URI"},
		"after another URI":             {[][]byte{uri("https://a.test"), dns("a.test"), uri(goodURI)}, "an X.509-SVID has one URI"},
		"two other URIs":                {[][]byte{uri("https://a.test"), uri("https://b.test")}, ""},
	} {
		t.Run(name, func(t *testing.T) { wants(t, newRecipe().withSAN(test.names...).der(), csr.Rules{}, test.fragment) })
	}
}

func TestIPAddresses(t *testing.T) {
	v6 := func(first, last byte) []byte { return append(append([]byte{first}, make([]byte, 14)...), last) }
	mapped := append(append(make([]byte, 10), 0xff, 0xff), 192, 0, 2, 1)
	for name, test := range map[string]struct {
		octets   []byte
		fragment string
	}{
		"IPv4":             {[]byte{10, 0, 0, 7}, ""},
		"loopback":         {[]byte{127, 0, 0, 1}, ""},
		"IPv6":             {v6(0xfd, 1), ""},
		"IPv6 loopback":    {v6(0, 1), ""},
		"link-local":       {append([]byte{0xfe, 0x80}, v6(0, 1)[2:]...), ""},
		"unspecified":      {make([]byte, 4), "0.0.0.0 is not the address of a host"},
		"IPv6 unspecified": {make([]byte, 16), ":: is not the address of a host"},
		"multicast":        {[]byte{224, 0, 0, 1}, "not the address of a host"},
		"IPv6 multicast":   {v6(0xff, 1), "not the address of a host"},
		"broadcast":        {bytes.Repeat([]byte{255}, 4), "not the address of a host"},
		"IPv4 in IPv6":     {mapped, "::ffff:192.0.2.1 is an IPv4 address in 16 octets"},
		"empty":            {nil, "has 4 or 16 octets, not 0"},
		"three octets":     {make([]byte, 3), "has 4 or 16 octets, not 3"},
		"with a mask":      {[]byte{10, 0, 0, 0, 255, 0, 0, 0}, "has 4 or 16 octets, not 8"},
		"IPv6 with a mask": {make([]byte, 32), "has 4 or 16 octets, not 32"},
		"as text":          {[]byte("10.0.0.7"), "has 4 or 16 octets"},
	} {
		t.Run(name, func(t *testing.T) {
			wants(t, newRecipe().withSAN(ip(test.octets...)).der(), csr.Rules{}, test.fragment)
		})
	}
}

func TestEmailsByRule(t *testing.T) {
	wants(t, newRecipe().withSAN(email("a@example.test")).der(), csr.Rules{}, "workloads get none")
	for address, fragment := range map[string]string{
		"a@example.test": "", "first.last+tag@Example.test": "",
		"":                          "is not of the form",
		"a":                         "is not of the form",
		"@example.test":             "is not of the form",
		"a@":                        "is not of the form",
		"a@b@c.test":                "is not of the form",
		"a b@c.test":                "is not of the form",
		`"a"@c.test`:                "is not of the form",
		"A <a@c.test>":              "is not of the form",
		".a@c.test":                 "is not of the form",
		"a..b@c.test":               "is not of the form",
		"é@c.test":                  "is not of the form",
		"a@c.test.":                 "is not of the form",
		"a@10.0.0.7":                "is not of the form",
		"a@c.test\x00":              "is not of the form",
		rep("a", 65) + "@c.test":    "is not of the form",
		"a@" + rep("b.", 200) + "c": "is not of the form",
	} {
		t.Run(address, func(t *testing.T) {
			got := wants(t, newRecipe().withSAN(email(address)).der(), csr.Rules{Emails: true}, fragment)
			if fragment == "" && (len(got.Emails()) != 1 || got.Emails()[0] != address || !got.Names().Empty()) {
				t.Errorf("emails are %v", got.Emails())
			}
		})
	}
}

func TestOtherKindsOfNames(t *testing.T) {
	good := dns("a.test")
	for name, test := range map[string]struct {
		name     []byte
		fragment string
	}{
		"otherName":               {tlv(0xa0, oid("1.3.6.1.4.1.311.20.2.3"), tlv(0xa0, tlv(tagUTF8, []byte("a@b")))), "the kind otherName may not"},
		"x400Address":             {tlv(0xa3), "the kind x400Address may not"},
		"directoryName":           {tlv(0xa4, seq()), "the kind directoryName may not"},
		"ediPartyName":            {tlv(0xa5), "the kind ediPartyName may not"},
		"registeredID":            {tlv(0x88, []byte{0x2a, 3}), "the kind registeredID may not"},
		"[9]":                     {tlv(0x89), "the kind unknown may not"},
		"[30]":                    {tlv(0x9e), "the kind unknown may not"},
		"constructed dNSName":     {tlv(0xa2, tlv(tagIA5, []byte("a.test"))), "the kind unknown may not"},
		"IA5String, not tagged":   {tlv(tagIA5, []byte("a.test")), "the kind unknown may not"},
		"SEQUENCE":                {seq(), "the kind unknown may not"},
		"application class":       {tlv(0x42, []byte("a.test")), "the kind unknown may not"},
		"private class":           {tlv(0xc2, []byte("a.test")), "the kind unknown may not"},
		"tag of more octets":      {[]byte{0x9f, 0x81, 0x02, 0x00}, "subjectAltName: missing or malformed"},
		"length in a longer form": {[]byte{0x82, 0x81, 0x01, 'a'}, "subjectAltName: missing or malformed"},
		"length beyond the end":   {[]byte{0x82, 0x10, 'a'}, "subjectAltName: missing or malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			wants(t, newRecipe().withSAN(good, test.name).der(), csr.Rules{Emails: true, Wildcards: true}, test.fragment)
		})
	}
	wants(t, newRecipe().withSAN().der(), csr.Rules{}, "subjectAltName: malformed")
	wants(t, newRecipe().withExtensions(extension(oidSAN, seq(good), good)).der(), csr.Rules{}, "subjectAltName: malformed")
	wants(t, newRecipe().withExtensions(extension(oidSAN, good)).der(), csr.Rules{}, "subjectAltName: malformed")
	wants(t, newRecipe().withExtensions(extension(oidSAN)).der(), csr.Rules{}, "subjectAltName: malformed")
}

func TestNamesAreCounted(t *testing.T) {
	names := make([][]byte, 101)
	for i := range names {
		names[i] = dns("host-" + strconv.Itoa(i) + ".test")
	}
	got := wants(t, newRecipe().withSAN(names[:100]...).der(), csr.Rules{}, "")
	if len(got.Names().DNS) != 100 {
		t.Errorf("%d names", len(got.Names().DNS))
	}
	wants(t, newRecipe().withSAN(names...).der(), csr.Rules{}, "more than 100 names")
	wants(t, newRecipe().withSAN(names...).der(), csr.Rules{MaxNames: 101}, "")
	wants(t, newRecipe().withSAN(names[:3]...).der(), csr.Rules{MaxNames: 2}, "more than 2 names")
	// raw: the same name again counts
	wants(t, newRecipe().withSAN(names[0], names[0], names[0]).der(), csr.Rules{MaxNames: 2}, "more than 2 names")
}
