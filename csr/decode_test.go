package csr_test

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/csr"
)

func encode(label string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
}

func TestInputForms(t *testing.T) {
	der := newRecipe().der()
	block := encode("CERTIFICATE REQUEST", der)
	for name, test := range map[string]struct {
		input    []byte
		fragment string
	}{
		"DER":                        {der, ""},
		"PEM":                        {block, ""},
		"PEM, the older label":       {encode("NEW CERTIFICATE REQUEST", der), ""},
		"PEM with CRLF":              {bytes.ReplaceAll(block, []byte("\n"), []byte("\r\n")), ""},
		"PEM after text":             {append([]byte("0 is how this text begins\n"), block...), ""},
		"empty":                      {nil, "it is empty"},
		"text":                       {[]byte("please"), "neither DER nor exactly one PEM block"},
		"the digit 0":                {[]byte("0"), "not strict DER"},
		"two blocks":                 {append(bytes.Clone(block), block...), "neither DER nor exactly one PEM block"},
		"certificate":                {encode("CERTIFICATE", der), "neither DER nor exactly one PEM block"},
		"private key":                {encode("PRIVATE KEY", der), "neither DER nor exactly one PEM block"},
		"DER with a line end":        {append(bytes.Clone(der), '\n'), "not strict DER"},
		"line end before DER":        {append([]byte{'\n'}, der...), "neither DER nor exactly one PEM block"},
		"PEM with trailing DER":      {encode("CERTIFICATE REQUEST", append(bytes.Clone(der), 0)), "not strict DER"},
		"cut short":                  {der[:len(der)-1], "not strict DER"},
		"indefinite length":          {append([]byte{0x30, 0x80}, der...), "not strict DER"},
		"PEM around text":            {encode("CERTIFICATE REQUEST", []byte("please")), "not strict DER"},
		"PEM around a SET":           {encode("CERTIFICATE REQUEST", set()), "not one SEQUENCE"},
		"PEM around an empty SEQ":    {encode("CERTIFICATE REQUEST", seq()), "certificationRequestInfo: missing"},
		"PEM without its last dash":  {bytes.TrimRight(block, "-\n"), "neither DER nor exactly one PEM block"},
		"PEM with a byte order mark": {append([]byte("\ufeff"), block...), "neither DER nor exactly one PEM block"},
	} {
		t.Run(name, func(t *testing.T) { wants(t, test.input, csr.Rules{}, test.fragment) })
	}
}

// TestDERIsNotTrimmed takes requests whose last octet is one that text tools trim (cfssl's parser loses one in forty).
func TestDERIsNotTrimmed(t *testing.T) {
	left := map[byte]bool{' ': true, '\n': true, '\t': true, '\r': true}
	for tries := 0; len(left) > 0 && tries < 20000; tries++ {
		der := newRecipe().der()
		last := der[len(der)-1]
		if !left[last] {
			continue
		}
		delete(left, last)
		wants(t, der, csr.Rules{}, "")
		wants(t, encode("CERTIFICATE REQUEST", der), csr.Rules{}, "")
	}
	if len(left) > 0 {
		t.Errorf("no request ended in %v", left)
	}
}

// TestSizeIsBounded pads a request to the limit exactly, and beyond.
func TestSizeIsBounded(t *testing.T) {
	// an ignored attribute carries the padding
	padded := func(size int) []byte {
		r := newRecipe()
		for padding := size - 400; ; padding++ {
			r.attributes = attributes(attribute("1.3.6.1.4.1.32473.1", tlv(0x04, make([]byte, padding))))
			der := r.der()
			if len(der) == size {
				return der
			}
			if len(der) > size {
				padding -= 4 // the signature varies in length
			}
		}
	}
	at, above := padded(csr.MaxDER), padded(csr.MaxDER+1)
	wants(t, at, csr.Rules{}, "")
	wants(t, encode("CERTIFICATE REQUEST", at), csr.Rules{}, "")
	wants(t, above, csr.Rules{}, "at most 16384 are read")
	wants(t, encode("CERTIFICATE REQUEST", above), csr.Rules{}, "at most 16384 are read")
	block := encode("CERTIFICATE REQUEST", newRecipe().der())
	wants(t, append(bytes.Repeat([]byte("#"), csr.MaxPEM-len(block)-1), append([]byte{'\n'}, block...)...), csr.Rules{}, "")
	wants(t, append(bytes.Repeat([]byte("#"), csr.MaxPEM-len(block)), append([]byte{'\n'}, block...)...), csr.Rules{}, "at most 24576 are read")
}

// TestHostileInputsAreCheap gives what has stalled other parsers. The bound is a hundred times what is measured.
func TestHostileInputsAreCheap(t *testing.T) {
	names := make([][]byte, 1<<20/8)
	for i := range names {
		names[i] = dns("a.test")
	}
	small := make([][]byte, 3000)
	for i := range small {
		small[i] = dns("a")
	}
	values := make([][]byte, 2000)
	for i := range values {
		values[i] = tlv(tagUTF8)
	}
	nested := []byte{}
	for range 4000 {
		nested = seq(nested)
		if len(nested) > 16000 {
			break
		}
	}
	rdns := make([][]byte, 1000)
	for i := range rdns {
		rdns[i] = set(textAs(oidO, tagUTF8, "x"))
	}
	many := newRecipe()
	many.subject = seq(rdns...)
	dots := strings.Repeat(".", 16000)
	for name, input := range map[string][]byte{
		"1 MiB of names":      newRecipe().withSAN(names...).der(),
		"3000 short names":    newRecipe().withSAN(small...).der(),
		"64 KiB of garbage":   bytes.Repeat([]byte{0x30, 0x80, 0xff, '-'}, 16<<10),
		"16 KiB of dots":      []byte(dots),
		"a name of dots":      newRecipe().withSAN(dns(dots[:15000])).der(),
		"a URI of dots":       newRecipe().withSAN(uri("https://" + dots[:15000])).der(),
		"a label without end": newRecipe().withSAN(dns("xn--" + strings.Repeat("a", 15000))).der(),
		"nested sequences":    nested,
		"empty values":        seq(seq(attributes(attribute("1.2.3", values...)))),
		"many organizations":  many.der(),
		"dashes":              bytes.Repeat([]byte("-----BEGIN "), 2000),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if _, err := csr.Parse(input, csr.Rules{}); err == nil {
				t.Error("accepted")
			} else if len(err.Error()) > 1024 {
				t.Errorf("an error of %d octets", len(err.Error()))
			}
			if took := time.Since(start); took > 500*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	}
}
