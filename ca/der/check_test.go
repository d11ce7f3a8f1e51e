package der_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/der"
)

// octets reads hexadecimal with blanks. A slip in it cuts the value short, which its test shows.
func octets(text string) []byte {
	out, _ := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	return out
}

func TestCheckAccepts(t *testing.T) {
	for name, encoding := range map[string]string{
		"an empty SEQUENCE":              "30 00",
		"nested SEQUENCEs":               "30 04 30 02 30 00",
		"BOOLEAN TRUE":                   "01 01 ff",
		"BOOLEAN FALSE":                  "01 01 00",
		"INTEGER zero":                   "02 01 00",
		"INTEGER 128":                    "02 02 00 80",
		"INTEGER -129":                   "02 02 ff 7f",
		"ENUMERATED":                     "0a 01 05",
		"a BIT STRING":                   "03 02 07 80",
		"an empty BIT STRING":            "03 01 00",
		"an empty OCTET STRING":          "04 00",
		"NULL":                           "05 00",
		"an OBJECT IDENTIFIER":           "06 03 55 1d 0f",
		"an arc of many octets":          "06 05 88 80 80 80 01",
		"UTF8String":                     "0c 02 c3 a4",
		"NumericString":                  "12 03 31 20 32",
		"PrintableString":                "13 05 41 27 2d 3f 20",
		"T61String":                      "14 01 e4",
		"IA5String":                      "16 03 61 40 62",
		"VisibleString":                  "1a 01 7e",
		"BMPString":                      "1e 02 00 e4",
		"UniversalString":                "1c 04 00 01 f6 00",
		"UTCTime":                        "17 0d 323430323239 323335393539 5a",
		"GeneralizedTime":                "18 0f 39393939313233313233353935395a",
		"GeneralizedTime with fraction":  "18 11 3939393931323331323335393539 2e 35 5a",
		"SET OF in order":                "31 06 02 01 01 02 01 02",
		"SET OF with equal elements":     "31 06 02 01 01 02 01 01",
		"a SET OF SEQUENCEs in order":    "31 0b 30 03 02 01 05 30 04 04 02 00 00",
		"a tagged value, primitive":      "80 03 ff ff ff",
		"a tagged value, constructed":    "a0 03 02 01 00",
		"an application tag":             "61 00",
		"a length of 127":                "04 7f" + strings.Repeat("00", 127),
		"a length of 128":                "04 81 80" + strings.Repeat("00", 128),
		"a length of 256":                "04 82 01 00" + strings.Repeat("00", 256),
		"sixteen levels":                 nested(16),
		"a SEQUENCE after a deeper one":  "30 08 30 02 30 00 30 00 05 00",
		"a SET OF within a SET OF":       "31 0a 31 03 02 01 07 31 03 02 01 09",
		"a SET OF whose elements differ": "31 05 02 01 01 04 00",
	} {
		t.Run(name, func(t *testing.T) {
			if err := der.Check(octets(encoding)); err != nil {
				t.Error(err)
			}
		})
	}
}

// nested returns as many SEQUENCEs within each other.
func nested(levels int) string {
	var out []byte
	for range levels {
		out = append([]byte{0x30, byte(len(out))}, out...)
	}
	return hex.EncodeToString(out)
}

func TestCheckRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		encoding string
		section  string
		offset   int
	}{
		"nothing":                               {"", "§8.1", 0},
		"a tag alone":                           {"30", "§8.1", 0},
		"a length cut short":                    {"30 82 01", "§8.1.3.5", 0},
		"contents cut short":                    {"04 05 00", "§8.1.3", 0},
		"a length of 2 GiB":                     {"30 84 7f ff ff ff 00", "§8.1.3", 0},
		"a length beyond 32 bits":               {"30 88 ff ff ff ff ff ff ff ff", "§8.1.3.5", 0},
		"the reserved length":                   {"30 ff", "§8.1.3.5", 0},
		"an element longer than its parent":     {"30 03 04 02 00 00", "§8.1.3", 2},
		"octets after the element":              {"30 00 00", "§8.1", 2},
		"octets after an element in a SEQUENCE": {"30 03 05 00 00", "§8.1", 4},
		"an indefinite length":                  {"30 80 00 00", "§10.1", 0},
		"an indefinite length inside":           {"30 04 30 80 00 00", "§10.1", 2},
		"a long form for a short length":        {"04 81 01 00", "§10.1", 0},
		"a long form with leading zeros":        {"04 82 00 80" + strings.Repeat("00", 128), "§10.1", 0},
		"end-of-contents":                       {"30 02 00 00", "§8.1.5", 2},
		"a high tag number":                     {"1f 1f 00", "§8.1.2.4", 0},
		"a high tag number in a class":          {"bf 81 00 00", "§8.1.2.4", 0},
		"a constructed OCTET STRING":            {"24 03 04 01 00", "§10.2", 0},
		"a constructed BIT STRING":              {"23 04 03 02 00 00", "§10.2", 0},
		"a constructed UTF8String":              {"2c 00", "§10.2", 0},
		"a constructed INTEGER":                 {"22 03 02 01 00", "§10.2", 0},
		"a primitive SEQUENCE":                  {"10 00", "§8.9.1", 0},
		"a primitive SET":                       {"11 00", "§8.9.1", 0},
		"REAL":                                  {"09 00", "§8.1.2", 0},
		"an unassigned universal type":          {"0f 00", "§8.1.2", 0},
		"BOOLEAN 01":                            {"01 01 01", "§11.1", 0},
		"an empty BOOLEAN":                      {"01 00", "§8.2.1", 0},
		"a long BOOLEAN":                        {"01 02 ff ff", "§8.2.1", 0},
		"an empty INTEGER":                      {"02 00", "§8.3.1", 0},
		"INTEGER with leading zeros":            {"02 02 00 05", "§8.3.2", 0},
		"INTEGER with leading ones":             {"02 02 ff 80", "§8.3.2", 0},
		"an empty BIT STRING without count":     {"03 00", "§8.6.2.3", 0},
		"eight unused bits":                     {"03 02 08 00", "§8.6.2.2", 0},
		"unused bits of nothing":                {"03 01 01", "§8.6.2.2", 0},
		"unused bits set":                       {"03 02 07 81", "§11.2.1", 0},
		"NULL with contents":                    {"05 01 00", "§8.8.2", 0},
		"an empty OBJECT IDENTIFIER":            {"06 00", "§8.19.2", 0},
		"an OBJECT IDENTIFIER cut short":        {"06 02 55 9d", "§8.19.2", 0},
		"an arc with leading zeros":             {"06 03 55 80 01", "§8.19.2", 0},
		"a first arc with leading zeros":        {"06 02 80 01", "§8.19.2", 0},
		"UTF8String, cut":                       {"0c 01 c3", "§8.23", 0},
		"UTF8String, overlong":                  {"0c 02 c0 80", "§8.23", 0},
		"UTF8String, surrogate":                 {"0c 03 ed a0 80", "§8.23", 0},
		"NumericString with a letter":           {"12 01 61", "§8.23", 0},
		"PrintableString with *":                {"13 01 2a", "§8.23", 0},
		"PrintableString with @":                {"13 01 40", "§8.23", 0},
		"PrintableString with &":                {"13 01 26", "§8.23", 0},
		"PrintableString with _":                {"13 01 5f", "§8.23", 0},
		"IA5String with eight bits":             {"16 01 e4", "§8.23", 0},
		"VisibleString with a line end":         {"1a 01 0a", "§8.23", 0},
		"BMPString of odd length":               {"1e 01 00", "§8.23", 0},
		"BMPString with a surrogate":            {"1e 02 d8 00", "§8.23", 0},
		"UniversalString beyond Unicode":        {"1c 04 00 11 00 00", "§8.23", 0},
		"UTCTime without seconds":               {"17 0b 32343032323932333539 5a", "§11.8", 0},
		"UTCTime with an offset":                {"17 11 323430323239323335393539 2b30313030", "§11.8", 0},
		"UTCTime with a small z":                {"17 0d 323430323239323335393539 7a", "§11.8", 0},
		"UTCTime with a leap second":            {"17 0d 323430323239323335393630 5a", "§11.8", 0},
		"UTCTime on 29 February 2023":           {"17 0d 323330323239323335393539 5a", "§11.8", 0},
		"UTCTime in month 13":                   {"17 0d 323331333031323335393539 5a", "§11.8", 0},
		"UTCTime at 24 hours":                   {"17 0d 323330313031323430303030 5a", "§11.8", 0},
		"GeneralizedTime without Z":             {"18 0e 3230323430323239323335393539", "§11.7", 0},
		"GeneralizedTime with a zero fraction":  {"18 11 3939393931323331323335393539 2e 30 5a", "§11.7", 0},
		"GeneralizedTime with a comma":          {"18 11 3939393931323331323335393539 2c 35 5a", "§11.7", 0},
		"SET OF not in order":                   {"31 06 02 01 02 02 01 01", "§11.6", 5},
		"SET OF SEQUENCEs not in order":         {"31 0b 30 04 04 02 00 00 30 03 02 01 05", "§11.6", 8},
		"seventeen levels":                      {nested(17), "", 32},
	} {
		t.Run(name, func(t *testing.T) {
			err := der.Check(octets(test.encoding))
			var refused *der.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want an Error", err)
			}
			if refused.Section != test.section || refused.Offset != test.offset {
				t.Errorf("got %v, want %q at octet %d", err, test.section, test.offset)
			}
		})
	}
}

func TestCheckBounds(t *testing.T) {
	two := octets("30 02 05 00")
	for _, test := range []struct {
		limits der.Limits
		ok     bool
	}{
		{der.Limits{MaxBytes: 4, MaxElements: 2}, true},
		{der.Limits{MaxBytes: 3}, false},
		{der.Limits{MaxElements: 1}, false},
	} {
		if err := der.CheckWithin(two, test.limits); (err == nil) != test.ok {
			t.Errorf("within %+v: %v", test.limits, err)
		}
	}
}

func TestErrorSentence(t *testing.T) {
	for want, encoding := range map[string]string{
		"octet 2: the length is indefinite; DER needs a definite one (X.690 §10.1)": "30 04 30 80 00 00",
		"octet 32: elements nest deeper than 16 levels":                             nested(17),
	} {
		if err := der.Check(octets(encoding)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestCheckContents(t *testing.T) {
	if err := der.CheckContents(2, []byte{0x00, 0x80}); err != nil {
		t.Errorf("INTEGER 128: %v", err)
	}
	for tag, contents := range map[uint8][]byte{1: {1}, 2: {0, 5}, 3: {}, 6: {0x80}, 12: {0xff}, 16: {}, 22: {0x80}} {
		if err := der.CheckContents(tag, contents); err == nil {
			t.Errorf("contents %x of type %d pass", contents, tag)
		}
	}
}
