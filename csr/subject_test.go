package csr_test

import (
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/csr"
)

func TestSubject(t *testing.T) {
	const oidC, oidOU, oidEmail = "2.5.4.6", "2.5.4.11", "1.2.840.113549.1.9.1"
	utf16 := func(s string) string {
		return strings.Join(strings.Split("\x00"+strings.Join(strings.Split(s, ""), "\x00"), ""), "")
	}
	many := make([][]byte, 65)
	for i := range many {
		many[i] = text(oidOU, "x")
	}
	for name, test := range map[string]struct {
		subject  []byte
		fragment string
	}{
		"empty":                        {seq(), ""},
		"all the usual":                {name(textAs(oidC, tagPrintable, "CH"), text(oidO, "Example"), text(oidOU, "Ops"), text(oidOU, "Dev"), text(oidCN, "web")), ""},
		"two attributes in one RDN":    {seq(set(text(oidCN, "web"), text(oidOU, "Ops"))), ""},
		"one empty organization":       {name(textAs(oidO, tagPrintable, "")), ""}, // Istio agents
		"email address as IA5String":   {name(textAs(oidEmail, tagIA5, "a@example.test")), ""},
		"other alphabets":              {name(text(oidO, "Überprüfung 株式会社")), ""},
		"64 characters":                {name(text(oidCN, strings.Repeat("é", 64))), ""},
		"65 characters":                {name(text(oidCN, strings.Repeat("a", 65))), "attribute 2.5.4.3 has 65 characters, and 1 to 64 are allowed"},
		"organization of 65":           {name(text(oidO, strings.Repeat("a", 65))), "attribute 2.5.4.10 has 65 characters"},
		"other attribute of 256":       {name(text("2.5.4.9", strings.Repeat("a", 256))), "attribute 2.5.4.9 has 256 characters"},
		"empty common name":            {name(text(oidCN, "")), "attribute 2.5.4.3 has 0 characters"},
		"empty unit":                   {name(text(oidOU, "")), "attribute 2.5.4.11 has 0 characters"},
		"country of three":             {name(textAs(oidC, tagPrintable, "CHE")), "attribute 2.5.4.6 has 3 characters"},
		"two common names":             {name(text(oidCN, "a"), text(oidCN, "b")), "it has 2 common names"},
		"two in one RDN":               {seq(set(text(oidCN, "a"), text(oidCN, "b"))), "2.5.4.3 is twice"},
		"three, not adjacent":          {name(text(oidCN, "a"), text(oidO, "x"), text(oidCN, "a"), text(oidOU, "x"), text(oidCN, "a")), "it has 3 common names"},
		"NUL":                          {name(text(oidCN, "web\x00.example.test")), "control characters"},
		"line end":                     {name(text(oidCN, "web\nadmin")), "control characters"},
		"C1 control":                   {name(text(oidCN, "web\u0085")), "control characters"},
		"TeletexString":                {name(textAs(oidCN, tagTeletex, "web")), "not a UTF8String"},
		"BMPString":                    {name(textAs(oidCN, tagBMP, utf16("web"))), "not a UTF8String"},
		"BMPString hides system:":      {name(textAs(oidO, tagBMP, utf16("system:masters"))), "not a UTF8String"},
		"OCTET STRING":                 {name(textAs(oidCN, 0x04, "web")), "not a UTF8String"},
		"SEQUENCE":                     {name(seq(oid(oidCN), seq(textAs(oidCN, tagUTF8, "web")))), "not a UTF8String"},
		"not UTF-8":                    {name(text(oidCN, "w\xffb")), "not strict DER"},
		"star in a PrintableString":    {name(textAs(oidCN, tagPrintable, "*")), "not strict DER"},
		"RDN not in order":             {seq(set(text(oidOU, "Ops"), text(oidCN, "web"))), "not strict DER"},
		"RDN empty":                    {seq(set()), "subject: missing or malformed"},
		"RDN a SEQUENCE":               {seq(seq(text(oidCN, "web"))), "subject: missing or malformed"},
		"attribute without a value":    {name(seq(oid(oidCN))), "subject: missing or malformed"},
		"attribute with two values":    {name(seq(oid(oidCN), tlv(tagUTF8, []byte("a")), tlv(tagUTF8, []byte("b")))), "subject: missing or malformed"},
		"attribute without a type":     {name(seq(tlv(tagUTF8, []byte("a")))), "subject: missing or malformed"},
		"64 attributes":                {name(many[:64]...), ""},
		"65 attributes":                {name(many...), "more than 64 attributes"},
		"65 attributes, in one RDN":    {seq(set(distinct(65)...)), "more than 64 attributes"},
		"group of Kubernetes":          {name(text(oidO, "system:masters"), text(oidCN, "x")), `"system:masters"`},
		"group in the second O":        {name(text(oidO, "Example"), text(oidO, "system:nodes")), `"system:nodes"`},
		"user of Kubernetes":           {name(text(oidCN, "system:node:worker")), `"system:node:worker"`},
		"in capitals":                  {name(text(oidO, "System:Masters")), `"System:Masters"`},
		"after a blank":                {name(text(oidO, " system:masters")), `" system:masters"`},
		"in another attribute":         {name(text(oidOU, "system:masters")), `"system:masters"`},
		"as PrintableString":           {name(textAs(oidO, tagPrintable, "system:masters")), `"system:masters"`},
		"system without a colon":       {name(text(oidO, "system")), ""},
		"system: further on":           {name(text(oidO, "the system:masters")), ""},
		"an endless type":              {name(seq(tlv(0x06, []byte{0x2a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), tlv(tagUTF8, []byte("a")))), "subject: missing or malformed"},
		"a type of 200 octets":         {name(seq(tlv(0x06, make([]byte, 200)), tlv(tagUTF8, []byte("a")))), "subject: missing or malformed"},
		"a message of bounded length":  {name(text(oidO, "system:"+strings.Repeat("x", 57))), "leave it out"},
		"host name without a SAN's":    {name(text(oidCN, "leaf.example.test")), "is not among the subject alternative names"},
		"host name that the SAN lists": {name(text(oidCN, "WEB.default.svc")), ""},
		"name that is no host":         {name(text(oidCN, "the web server, v1.2")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecipe()
			r.subject = test.subject
			wants(t, r.der(), csr.Rules{}, test.fragment)
		})
	}
}

// distinct returns attributes of so many types, in order.
func distinct(count int) [][]byte {
	out := make([][]byte, count)
	for i := range out {
		out[i] = seq(tlv(0x06, []byte{0x55, 0x04, byte(i)}), tlv(tagUTF8, []byte("xx")))
	}
	return out
}

func TestSystemSubjectsByRule(t *testing.T) {
	r := newRecipe()
	r.subject = name(text(oidO, "system:nodes"), text(oidCN, "system:node:worker"))
	wants(t, r.der(), csr.Rules{SystemSubjects: true}, "")
	for _, group := range []string{"system:masters", "SYSTEM:masters", "system:masters "} {
		r.subject = name(text(oidO, group))
		wants(t, r.der(), csr.Rules{SystemSubjects: true}, "Kubernetes' own users and groups")
	}
}

func TestStrayCommonNames(t *testing.T) {
	for name, test := range map[string]struct {
		commonName string
		names      [][]byte
		fragment   string
	}{
		"no names at all":             {"leaf.example.test", nil, ""},
		"names of other kinds only":   {"leaf.example.test", [][]byte{uri(goodURI), ip(10, 0, 0, 7)}, ""},
		"listed":                      {"leaf.example.test", [][]byte{dns("a.test"), dns("leaf.example.test")}, ""},
		"not listed":                  {"leaf.example.test", [][]byte{dns("a.test")}, `"leaf.example.test" is not among`},
		"part of one listed":          {"example.test", [][]byte{dns("leaf.example.test")}, "is not among"},
		"wildcard not listed":         {"*.example.test", [][]byte{dns("leaf.example.test")}, "is not among"},
		"single label":                {"web", [][]byte{dns("leaf.example.test")}, ""},
		"address listed":              {"10.0.0.7", [][]byte{ip(10, 0, 0, 7), dns("a.test")}, ""},
		"address not listed":          {"10.0.0.8", [][]byte{ip(10, 0, 0, 7)}, "is not among"},
		"IPv6 in another form":        {"2001:DB8:0::1", [][]byte{ip(0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)}, ""},
		"address among DNS names":     {"10.0.0.8", [][]byte{dns("a.test")}, ""},
		"host name in other capitals": {"Leaf.Example.Test", [][]byte{dns("leaf.EXAMPLE.test")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecipe()
			r.subject = nameOf(test.commonName)
			if r.attributes = attributes(); test.names != nil {
				r.withSAN(test.names...)
			}
			wants(t, r.der(), csr.Rules{}, test.fragment)
			wants(t, r.der(), csr.Rules{StrayCommonName: true}, "")
		})
	}
}

func nameOf(commonName string) []byte { return name(text(oidCN, commonName)) }
