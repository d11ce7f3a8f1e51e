package chain_test

import (
	"bytes"
	"crypto/x509"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/der"
	"github.com/chancery-ca/chancery/ca/pem"
)

func BenchmarkParseIssued(b *testing.B) {
	encoding := leafDraft().sign(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := chain.ParseIssued(encoding); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStandardLibrary is the part of BenchmarkParseIssued that is crypto/x509.
func BenchmarkStandardLibrary(b *testing.B) {
	encoding := leafDraft().sign(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x509.ParseCertificate(encoding); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParsePEMChain(b *testing.B) {
	text := pem.Append(pem.Encode("CERTIFICATE", leafDraft().sign(b)), "CERTIFICATE", caDraft().sign(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := chain.ParsePEM(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHostile shows what inputs made to hurt cost.
func BenchmarkHostile(b *testing.B) {
	big := func(change func(*draft)) []byte {
		d := leafDraft()
		change(d)
		return d.sign(b)
	}
	for name, input := range map[string][]byte{
		"12 MiB of 30 80": bytes.Repeat([]byte{0x30, 0x80}, 6<<20),
		"1 MiB of 30 80":  bytes.Repeat([]byte{0x30, 0x80}, 1<<19),
		"1 MiB of dots":   bytes.Repeat([]byte{'.'}, 1<<20),
		"50,000 names":    big(func(d *draft) { d.set(oidSAN, nil, manyNames(50_000)) }),
		"9,000 names":     big(func(d *draft) { d.set(oidSAN, nil, manyNames(9_000)) }),
		"9,000 bad names": big(func(d *draft) { d.set(oidSAN, nil, names(bytes.Repeat(dns("a b"), 9_000))) }),
		"a name of dots":  big(func(d *draft) { d.set(oidSAN, nil, names(dns(string(bytes.Repeat([]byte{'.'}, 1<<19))))) }),
		"2,000 extensions": big(func(d *draft) {
			d.wrap = func([]byte) []byte { return tlv(0xa3, seq(bytes.Repeat(unhex("3007 0601 2a 04020500"), 2000))) }
		}),
		"3,000 attributes": big(func(d *draft) { d.subject = seq(tlv(0x31, bytes.Repeat(seq(text(6, oidPrivate), utf8("a")), 3000))) }),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = chain.ParseTolerant(input)
			}
		})
	}
	if _, err := chain.ParseCertificate(big(func(d *draft) { d.set(oidSAN, nil, manyNames(9_000)) })); err != nil {
		b.Error(err)
	}
	if err := der.Check(leafDraft().sign(b)); err != nil {
		b.Error(err)
	}
}
