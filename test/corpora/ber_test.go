package corpora_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/der"
	"github.com/chancery-ca/chancery/ca/pem"
)

func TestBER(t *testing.T) {
	each(t, "ber", 40, func(t *testing.T, r row, content []byte) {
		_, err := chain.ParseCertificate(content)
		judge(t, r, "ParseCertificate", err, r["strict"])
		for name, input := range map[string][]byte{"DER": content, "PEM": pem.Encode("CERTIFICATE", content)} {
			certificates, normalised, err := chain.ParseTolerant(input)
			judge(t, r, "ParseTolerant of "+name, err, r["tolerant"])
			if err != nil {
				// what does not start as DER does is read as a text
				if name == "PEM" {
					holdSection(t, r, err)
				}
				continue
			}
			if want := r["strict"] == "reject"; normalised != want {
				t.Errorf("%s: ParseTolerant of %s says that it was normalised: %v", r["what"], name, normalised)
			}
			if len(certificates) != 1 || !bytes.Equal(certificates[0].Raw, read(t, "ber", r["der"])) {
				t.Errorf("%s: ParseTolerant of %s does not return the DER of %s", r["what"], name, r["der"])
			}
		}
	})
}

// holdSection holds the section of X.690 that a refusal names against the index. What is DER is refused by the certificate's own rules.
func holdSection(t *testing.T, r row, err error) {
	t.Helper()
	var refused *der.Error
	section := "-"
	if errors.As(err, &refused) && refused.Section != "" {
		section = "X.690 " + refused.Section
	}
	if section != r["section"] {
		t.Errorf("%s: want a refusal by %s, got one by %s: %v", r["what"], r["section"], section, err)
	}
}

// TestHostileBER holds the parsers against inputs that are too large to keep: they have to be refused, without a deep stack or much time.
func TestHostileBER(t *testing.T) {
	open, closed := []byte{0x30, 0x80}, []byte{0, 0}
	wide := bytes.Repeat([]byte{0x04, 0x00}, 200_000)
	for name, input := range map[string][]byte{
		"100,000 levels":              join(bytes.Repeat(open, 100_000), bytes.Repeat(closed, 100_000)),
		"a million levels, open":      bytes.Repeat(open, 1_000_000),
		"six million levels, open":    bytes.Repeat(open, 6_000_000),
		"100,000 levels of [3]":       bytes.Repeat([]byte{0xa3, 0x80}, 100_000),
		"200,000 empty segments":      join([]byte{0x30, 0x83, 0x06, 0x1a, 0x84, 0x24, 0x83, 0x06, 0x1a, 0x80}, wide),
		"200,000 empty SEQUENCEs":     join([]byte{0x30, 0x83, 0x06, 0x1a, 0x80}, bytes.Repeat([]byte{0x30, 0x00}, 200_000)),
		"a megabyte of nothing":       join([]byte{0x30, 0x83, 0x10, 0x00, 0x00}, make([]byte, 1<<20)),
		"a megabyte of FF":            bytes.Repeat([]byte{0xff}, 1<<20),
		"zeros":                       make([]byte, 1<<20),
		"an open SEQUENCE of nothing": join(open, make([]byte, 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := chain.ParseTolerant(input); err == nil {
				t.Error("ParseTolerant accepts it")
			}
			if _, err := chain.ParseCertificate(input); err == nil {
				t.Error("ParseCertificate accepts it")
			}
			if _, _, err := der.Normalize(input, der.Limits{MaxBytes: 64 << 20, MaxElements: 10_000}); err == nil {
				t.Error("Normalize accepts it")
			}
			if _, err := chain.ParseCRL(input); err == nil {
				t.Error("ParseCRL accepts it")
			}
		})
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
