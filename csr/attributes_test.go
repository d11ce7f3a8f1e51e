package csr_test

import (
	"testing"

	"github.com/chancery-ca/chancery/csr"
)

func TestAttributes(t *testing.T) {
	const oidUnstructuredName, oidMicrosoftVersion, oidMicrosoftExtensions = "1.2.840.113549.1.9.2", "1.3.6.1.4.1.311.13.2.3", "1.3.6.1.4.1.311.2.1.14"
	password := attribute(oidChallengePassword, tlv(tagPrintable, []byte("hunter2")))
	names := san(dns("a.test"))
	many := make([][]byte, 17)
	for i := range many {
		many[i] = seq(tlv(0x06, []byte{0x2a, byte(i)}), set(tlv(0x05)))
	}
	for name, test := range map[string]struct {
		attributes []byte
		fragment   string
	}{
		"challenge password":               {attributes(password), ""},
		"unstructured name":                {attributes(attribute(oidUnstructuredName, tlv(tagUTF8, []byte("x")))), ""},
		"versions, as Windows has it":      {attributes(attribute(oidMicrosoftVersion, tlv(tagIA5, []byte("10.0.19045.2"))), request(names)), ""},
		"in order":                         {attributes(password, request(names)), ""},
		"in the order of crypto/x509":      {attributes(request(names), password), ""},
		"empty extension request":          {attributes(request()), ""}, // go#56140
		"extension request without values": {attributes(attribute(oidExtensionRequest)), "a set of at least one value"},
		"extension request of two values":  {attributes(attribute(oidExtensionRequest, seq(names), seq(names))), "it has not one value"},
		"extension request not a SEQUENCE": {attributes(attribute(oidExtensionRequest, set())), "it has not one value"},
		"two extension requests":           {attributes(request(names), request(names)), "1.2.840.113549.1.9.14 is there twice"},
		"two empty extension requests":     {attributes(request(), request()), "1.2.840.113549.1.9.14 is there twice"},
		"two challenge passwords":          {attributes(password, password), "1.2.840.113549.1.9.7 is there twice"},
		"Microsoft's extension request":    {attributes(attribute(oidMicrosoftExtensions, seq(names))), "use extensionRequest"},
		"both extension requests":          {attributes(attribute(oidMicrosoftExtensions, seq(names)), request(names)), "use extensionRequest"},
		"no values":                        {attributes(attribute(oidChallengePassword)), "a set of at least one value"},
		"no set":                           {attributes(seq(oid(oidChallengePassword))), "a set of at least one value"},
		"no type":                          {attributes(seq()), "a set of at least one value"},
		"value beside the set":             {attributes(seq(oid(oidChallengePassword), tlv(tagUTF8, []byte("x")))), "a set of at least one value"},
		"element after the set":            {attributes(seq(oid(oidChallengePassword), set(tlv(0x05)), tlv(0x05))), "a set of at least one value"},
		"not an attribute":                 {attributes(tlv(0x05)), "each is one type"},
		"values not in order":              {attributes(attribute("1.2.3.4", tlv(tagUTF8, []byte("b")), tlv(tagUTF8, []byte("a")))), "not strict DER"},
		"16 attributes":                    {attributes(many[:16]...), ""},
		"17 attributes":                    {attributes(many...), "more than 16"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecipe()
			r.attributes = test.attributes
			wants(t, r.der(), csr.Rules{}, test.fragment)
		})
	}
}
