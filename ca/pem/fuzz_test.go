package pem_test

import (
	"bytes"
	stdpem "encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/pem"
)

// FuzzDecode holds these rules: what Decode accepts, encoding/pem reads as the same blocks, none more and none fewer; and its canonical
// encoding decodes to the same blocks.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		block(), "text\n" + block() + "text\r\n" + strings.ReplaceAll(block(), "\n", "\r\n"), strings.ReplaceAll(block(), "\n", "\r"),
		"\ufeff" + block(), change("CERTIFICATE-----\n", "CERTIFICATE-----\n\n \t"), change("\n-----END", "\n\n-----END"),
		"-----BEGIN CERTIFICATE-----\nAA=\n=\n-----END CERTIFICATE-----", strings.TrimSuffix(block(), "\n") + block(),
		change("CERTIFICATE-----\n", "CERTIFICATE-----\nA: b\n\n"), "> " + block(), string(pem.Encode("A-B C", octets)),
	} {
		f.Add([]byte(text))
	}
	rules := pem.Rules{Labels: []string{"CERTIFICATE", "A-B C"}, MaxBlocks: 1000}
	f.Fuzz(func(t *testing.T, text []byte) {
		blocks, err := pem.Decode(text, rules)
		if err != nil {
			return
		}
		// encoding/pem does not know the line end CR
		rest := bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		var canonical []byte
		for i, b := range blocks {
			var std *stdpem.Block
			if std, rest = stdpem.Decode(rest); std == nil {
				t.Fatalf("encoding/pem does not see block %d", i)
			}
			if std.Type != b.Label || !bytes.Equal(std.Bytes, b.Bytes) || len(std.Headers) > 0 {
				t.Fatalf("encoding/pem reads block %d as %q %x", i, std.Type, std.Bytes)
			}
			canonical = pem.Append(canonical, b.Label, b.Bytes)
		}
		if extra, _ := stdpem.Decode(rest); extra != nil {
			t.Fatalf("encoding/pem sees another block, %q", extra.Type)
		}
		again, err := pem.Decode(canonical, pem.Rules{Labels: rules.Labels, MaxBlocks: rules.MaxBlocks, MaxBytes: len(canonical)})
		if err != nil || !slices.EqualFunc(again, blocks, func(a, b pem.Block) bool { return a.Label == b.Label && bytes.Equal(a.Bytes, b.Bytes) }) {
			t.Fatalf("the canonical encoding decodes to %v, %v", again, err)
		}
	})
}

// FuzzEncode holds this rule: what Encode writes, Decode and encoding/pem read back.
func FuzzEncode(f *testing.F) {
	f.Add(octets)
	f.Add(octets[:48])
	f.Add(octets[:1])
	f.Fuzz(func(t *testing.T, der []byte) {
		if len(der) == 0 {
			return
		}
		text := pem.Encode("CERTIFICATE", der)
		blocks, err := pem.Decode(text, pem.Rules{Labels: []string{"CERTIFICATE"}, MaxBytes: len(text)})
		if err != nil || len(blocks) != 1 || !bytes.Equal(blocks[0].Bytes, der) {
			t.Fatalf("decoded %v, %v", blocks, err)
		}
		if std := stdpem.EncodeToMemory(&stdpem.Block{Type: "CERTIFICATE", Bytes: der}); !bytes.Equal(std, text) {
			t.Fatalf("encoding/pem writes %q, this package %q", std, text)
		}
	})
}

// BenchmarkHostile shows that time and memory stay linear in texts made to hurt.
func BenchmarkHostile(b *testing.B) {
	const size = 10 << 20
	for name, text := range map[string][]byte{
		"noise without line ends": bytes.Repeat([]byte{'.'}, size),
		"empty lines CR":          bytes.Repeat([]byte{'\r'}, size),
		"empty lines LF":          bytes.Repeat([]byte{'\n'}, size),
		"half boundaries":         bytes.Repeat([]byte("x-----BEGIN "), size/12),
		"open block":              append([]byte("-----BEGIN CERTIFICATE-----\n"), bytes.Repeat([]byte("AAAA\n"), size/5)...),
		"blanks in a block":       append([]byte("-----BEGIN CERTIFICATE-----\n"), bytes.Repeat([]byte{' '}, size)...),
		"padding":                 append([]byte("-----BEGIN CERTIFICATE-----\n"), bytes.Repeat([]byte{'='}, size)...),
	} {
		rules := certificates()
		rules.MaxBytes = 2 * size
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := pem.Decode(text, rules); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}

func BenchmarkDecodeChain(b *testing.B) {
	text := bytes.Repeat([]byte(string(pem.Encode("CERTIFICATE", bytes.Repeat(octets, 5)))), 3)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pem.Decode(text, certificates()); err != nil {
			b.Fatal(err)
		}
	}
}
