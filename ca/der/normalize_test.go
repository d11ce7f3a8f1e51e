package der_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/der"
)

// A certificate's outline: what stands in tbsCertificate does not matter to Normalize as long as it is DER.
const (
	tbs       = "30 08 02 01 07 04 03 01 02 03"
	algorithm = "30 0d 06 09 2a 86 48 86 f7 0d 01 01 0b 05 00"
	signature = "03 05 00 de ad be ef"
	canonical = "30 20" + tbs + algorithm + signature
)

func TestNormalizeReturnsDERAsItIs(t *testing.T) {
	in := octets(canonical)
	out, normalised, err := der.Normalize(in, der.Limits{})
	if err != nil || normalised || &out[0] != &in[0] || len(out) != len(in) {
		t.Errorf("got %x, %v, %v", out, normalised, err)
	}
}

func TestNormalizeTolerates(t *testing.T) {
	for name, ber := range map[string]string{
		"an outer length of four octets":           "30 84 00 00 00 20" + tbs + algorithm + signature,
		"an indefinite outer length":               "30 80" + tbs + algorithm + signature + "00 00",
		"a long signatureAlgorithm length":         "30 21" + tbs + "30 81 0d 06 09 2a 86 48 86 f7 0d 01 01 0b 05 00" + signature,
		"an indefinite signatureAlgorithm":         "30 22" + tbs + "30 80 06 09 2a 86 48 86 f7 0d 01 01 0b 05 00 00 00" + signature,
		"a long OBJECT IDENTIFIER length":          "30 21" + tbs + "30 0e 06 81 09 2a 86 48 86 f7 0d 01 01 0b 05 00" + signature,
		"a long NULL length":                       "30 22" + tbs + "30 0f 06 09 2a 86 48 86 f7 0d 01 01 0b 05 82 00 00" + signature,
		"a long signatureValue length":             "30 21" + tbs + algorithm + "03 81 05 00 de ad be ef",
		"all of them":                              "30 80" + tbs + "30 80 06 83 00 00 09 2a 86 48 86 f7 0d 01 01 0b 05 81 00 00 00" + "03 84 00 00 00 05 00 de ad be ef" + "00 00",
		"an outer length of two octets, first one": "30 82 00 20" + tbs + algorithm + signature,
	} {
		t.Run(name, func(t *testing.T) {
			out, normalised, err := der.Normalize(octets(ber), der.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if !normalised || !bytes.Equal(out, octets(canonical)) {
				t.Errorf("got %x, normalised %v", out, normalised)
			}
		})
	}
}

func TestNormalizeKeepsParametersThatNest(t *testing.T) {
	const (
		want = "30 18" + "30 00" + "30 11 06 01 2a 30 0c a0 03 02 01 05 a1 05 30 03 02 01 06" + "03 01 00"
		ber  = "30 80" + "30 00" + "30 80 06 01 2a 30 80 a0 80 02 01 05 00 00 a1 81 05 30 80 02 01 06 00 00 00 00 00 00" + "03 01 00" + "00 00"
	)
	// the second [1] is longer than it says when its contents are indefinite
	out, _, err := der.Normalize(octets(strings.Replace(ber, "a1 81 05", "a1 81 07", 1)), der.Limits{})
	if err != nil || !bytes.Equal(out, octets(want)) {
		t.Errorf("got %x, %v; want %s", out, err, want)
	}
	if out, _, err := der.Normalize(octets(ber), der.Limits{}); err == nil {
		t.Errorf("a length that cuts through end-of-contents octets passes as %x", out)
	}
}

func TestNormalizeRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		ber     string
		section string
	}{
		"nothing":                                      {"", "§8.1"},
		"no SEQUENCE":                                  {"31 80 00 00", "§8.9.1"},
		"a tbsCertificate of indefinite length":        {"30 22 30 80 02 01 07 04 03 01 02 03 00 00" + algorithm + signature, "§10.1"},
		"a tbsCertificate with a long length":          {"30 21 30 81 08 02 01 07 04 03 01 02 03" + algorithm + signature, "§10.1"},
		"BER within tbsCertificate":                    {"30 80 30 08 02 01 07 24 03 04 01 03" + algorithm + signature + "00 00", "§10.2"},
		"a BOOLEAN of 01 within tbsCertificate":        {"30 80 30 03 01 01 01" + algorithm + signature + "00 00", "§11.1"},
		"a primitive tbsCertificate":                   {"30 80 04 00" + algorithm + signature + "00 00", "§8.9.1"},
		"a constructed signatureValue":                 {"30 80" + tbs + algorithm + "23 04 03 02 00 00 00 00", "§10.2"},
		"a constructed indefinite signatureValue":      {"30 80" + tbs + algorithm + "23 80 03 02 00 00 00 00 00 00", "§10.2"},
		"a primitive signatureValue, indefinite":       {"30 80" + tbs + algorithm + "03 80 00 de 00 00 00 00", "§10.2"},
		"a constructed OBJECT IDENTIFIER":              {"30 80" + tbs + "30 05 26 03 06 01 2a" + signature + "00 00", "§10.2"},
		"a primitive value of indefinite length":       {"30 80" + tbs + "30 80 05 80 00 00 00 00" + signature + "00 00", "§8.1.3.2"},
		"octets after end-of-contents":                 {"30 80" + tbs + algorithm + signature + "00 00 00", "§8.1"},
		"octets after a definite length":               {"30 81 20" + tbs + algorithm + signature + "00", "§8.1"},
		"octets after signatureValue":                  {"30 81 22" + tbs + algorithm + signature + "05 00", "§8.1"},
		"a fourth element":                             {"30 80" + tbs + algorithm + signature + "05 00 00 00", "§8.1.5"},
		"end-of-contents in a definite length":         {"30 81 22" + tbs + algorithm + signature + "00 00", "§8.1"},
		"end-of-contents in signatureAlgorithm":        {"30 81 22" + tbs + "30 0f 06 09 2a 86 48 86 f7 0d 01 01 0b 05 00 00 00" + signature, "§8.1.5"},
		"end-of-contents missing":                      {"30 80" + tbs + algorithm + signature, "§8.1.5"},
		"end-of-contents missing in the algorithm":     {"30 80" + tbs + "30 80 05 00" + signature + "00 00", "§8.1"},
		"end-of-contents with a long length":           {"30 80" + tbs + algorithm + signature + "00 81 00", "§8.1.5"},
		"signatureValue missing":                       {"30 80" + tbs + algorithm + "00 00", "§10.2"},
		"the length FF":                                {"30 ff" + tbs + algorithm + signature, "§8.1.3.5"},
		"a length of five octets":                      {"30 85 00 00 00 00 20" + tbs + algorithm + signature, "§8.1.3.5"},
		"a length beyond the input":                    {"30 84 7f ff ff ff" + tbs + algorithm + signature, "§8.1.3"},
		"a length shorter than the contents":           {"30 81 1f" + tbs + algorithm + signature, "§8.1"},
		"a non-minimal INTEGER in signatureAlgorithm":  {"30 80" + tbs + "30 04 02 02 00 05" + signature + "00 00", "§8.3.2"},
		"unused bits that are set, in signatureValue":  {"30 80" + tbs + algorithm + "03 02 01 01 00 00", "§11.2.1"},
		"nothing but indefinite lengths":               {strings.Repeat("30 80", 64) + strings.Repeat("00 00", 64), "§10.1"},
		"indefinite lengths within signatureAlgorithm": {"30 80" + tbs + strings.Repeat("30 80", 64) + strings.Repeat("00 00", 64) + signature + "00 00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := der.Normalize(octets(test.ber), der.Limits{})
			var refused *der.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %x, %v; want an Error", out, err)
			}
			if refused.Section != test.section {
				t.Errorf("got %v, want %q", err, test.section)
			}
		})
	}
}

func TestNormalizeBounds(t *testing.T) {
	ber := octets("30 80" + tbs + algorithm + signature + "00 00")
	for _, limits := range []der.Limits{{MaxBytes: len(ber) - 1}, {MaxElements: 2}, {MaxElements: 6}} {
		if _, _, err := der.Normalize(ber, limits); err == nil {
			t.Errorf("within %+v: no error", limits)
		}
	}
	if _, _, err := der.Normalize(ber, der.Limits{MaxBytes: len(ber), MaxElements: 8}); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
}
