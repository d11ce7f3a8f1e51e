package ledger_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/ledger"
)

func TestSerialFromInt(t *testing.T) {
	largest := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 159), big.NewInt(1))
	for name, test := range map[string]struct {
		number *big.Int
		want   string // empty: refused
	}{
		"one":            {big.NewInt(1), "01"},
		"a leading bit":  {big.NewInt(0x80), "80"},
		"the largest":    {largest, "7f" + strings.Repeat("ff", 19)},
		"one too large":  {new(big.Int).Add(largest, big.NewInt(1)), ""},
		"zero":           {big.NewInt(0), ""},
		"negative":       {big.NewInt(-1), ""},
		"none":           {nil, ""},
		"several octets": {big.NewInt(0x010203), "010203"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ledger.SerialFromInt(test.number)
			if (err == nil) != (test.want != "") || s.String() != test.want {
				t.Fatalf("got %q, %v, want %q", s, err, test.want)
			}
			if err == nil && s.Int().Cmp(test.number) != 0 {
				t.Errorf("it came back as %v", s.Int())
			}
		})
	}
}

func TestParseSerial(t *testing.T) {
	for text, want := range map[string]string{
		"1":                     "01",
		"0001":                  "01",
		"AB:cd:0f":              "abcd0f",
		"":                      "",
		"00":                    "",
		"xyz":                   "",
		"-1":                    "",
		strings.Repeat("f", 40): "",
	} {
		s, err := ledger.ParseSerial(text)
		if (err == nil) != (want != "") || s.String() != want {
			t.Errorf("%q: got %q, %v, want %q", text, s, err, want)
		}
	}
}

// FuzzParseSerial: what is accepted is a positive number of at most 20 octets, and its text is accepted as the same serial.
func FuzzParseSerial(f *testing.F) {
	f.Add("01:ff")
	f.Add("7fffffffffffffffffffffffffffffffffffffff")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ledger.ParseSerial(text)
		if err != nil {
			return
		}
		if n := s.Int(); n.Sign() <= 0 || n.BitLen() > 159 || len(s) > 20 || s[0] == 0 {
			t.Fatalf("%q was accepted as %v", text, n)
		}
		if again, err := ledger.ParseSerial(s.String()); err != nil || again != s {
			t.Fatalf("%q is %s, which is %s, %v", text, s, again, err)
		}
	})
}
