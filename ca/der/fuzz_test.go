package der_test

import (
	"bytes"
	"encoding/asn1"
	"testing"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/der"
)

// FuzzCheck holds these rules: what Check accepts, encoding/asn1 takes for exactly one value, and an independent encoder makes the
// same octets of it again.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		canonical, "31 0b 30 03 02 01 05 30 04 04 02 00 00", "30 04 30 80 00 00", "04 81 01 00", "03 02 07 80", "06 03 55 1d 0f",
		"18 0f 39393939313233313233353935395a", "a0 03 02 01 00", "80 03 ff ff ff", "1e 02 00 e4", "0c 02 c3 a4", nested(17),
	} {
		f.Add(octets(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if der.Check(in) != nil {
			return
		}
		var value asn1.RawValue
		if rest, err := asn1.Unmarshal(in, &value); err != nil || len(rest) > 0 {
			t.Fatalf("encoding/asn1 says %v and leaves %x", err, rest)
		}
		var b cryptobyte.Builder
		encodeAgain(t, &b, cryptobyte.String(in))
		if out, err := b.Bytes(); err != nil || !bytes.Equal(out, in) {
			t.Fatalf("encoded again: %x, %v", out, err)
		}
	})
}

func encodeAgain(t *testing.T, b *cryptobyte.Builder, in cryptobyte.String) {
	for !in.Empty() {
		var contents cryptobyte.String
		var tag cryptobyte_asn1.Tag
		if !in.ReadAnyASN1(&contents, &tag) {
			t.Fatal("cryptobyte does not read it")
		}
		b.AddASN1(tag, func(b *cryptobyte.Builder) {
			if tag&0x20 == 0 {
				b.AddBytes(contents)
				return
			}
			encodeAgain(t, b, contents)
		})
	}
}

// FuzzNormalize holds these rules: DER comes back as it is; what comes back is DER that Normalize does not change again; and
// tbsCertificate and the signature in it stand in the input byte for byte.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{
		canonical, "30 80" + tbs + algorithm + signature + "00 00", "30 84 00 00 00 20" + tbs + algorithm + signature,
		"30 80" + tbs + "30 80 06 83 00 00 09 2a 86 48 86 f7 0d 01 01 0b 05 81 00 00 00" + "03 84 00 00 00 05 00 de ad be ef" + "00 00",
		"30 80" + tbs + algorithm + "23 80 03 02 00 00 00 00 00 00", "30 80 30 80 00 00 00 00",
		"30 80 30 00 30 80 06 01 2a 30 80 a0 80 02 01 05 00 00 a1 81 07 30 80 02 01 06 00 00 00 00 00 00 03 01 00 00 00",
	} {
		f.Add(octets(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		isDER := der.Check(in) == nil
		out, normalised, err := der.Normalize(in, der.Limits{})
		if isDER && (err != nil || normalised || !bytes.Equal(in, out)) {
			t.Fatalf("DER became %x, %v, %v", out, normalised, err)
		}
		if err != nil {
			return
		}
		if err := der.Check(out); err != nil {
			t.Fatalf("the result %x is not DER: %v", out, err)
		}
		if normalised == isDER {
			t.Fatalf("normalised is %v", normalised)
		}
		if !normalised {
			return
		}
		s := cryptobyte.String(out)
		var tbs, algorithm, signature cryptobyte.String
		if !s.ReadASN1(&s, cryptobyte_asn1.SEQUENCE) || !s.ReadASN1Element(&tbs, cryptobyte_asn1.SEQUENCE) ||
			!s.ReadAnyASN1(&algorithm, nil) || !s.ReadASN1(&signature, cryptobyte_asn1.BIT_STRING) || !s.Empty() {
			t.Fatalf("the result %x is not three elements", out)
		}
		if !bytes.Contains(in, tbs) || !bytes.Contains(in, signature) {
			t.Fatalf("the result %x holds what the input does not", out)
		}
	})
}

// BenchmarkHostile shows that time and memory stay linear in inputs made to hurt.
func BenchmarkHostile(b *testing.B) {
	const size = 12 << 20
	limits := der.Limits{MaxBytes: 2 * size, MaxElements: 1 << 20}
	definite := octets("30 83 c0 00 00")
	for name, in := range map[string][]byte{
		"indefinite lengths all the way down": bytes.Repeat([]byte{0x30, 0x80}, size/2),
		"end-of-contents":                     append([]byte{0x30, 0x80}, make([]byte, size)...),
		"empty elements":                      append(definite, bytes.Repeat([]byte{0x05, 0x00}, size/2)...),
		"empty elements in the algorithm": append(octets("30 80"+tbs+"30 83 c0 00 00"),
			bytes.Repeat([]byte{0x05, 0x00}, size/2)...),
		"a SET of equal elements": append(octets("31 83 c0 00 00"), bytes.Repeat([]byte{0x05, 0x00}, size/2)...),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = der.Normalize(in, limits)
			}
		})
		b.Run(name+", default bounds", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := der.Normalize(in, der.Limits{}); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}
