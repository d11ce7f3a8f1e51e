package pem_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/pem"
)

// octets are what the blocks of these tests hold: two whole lines and a line that needs one padding character.
var octets = bytes.Repeat([]byte("0123456789"), 11)

func certificates() pem.Rules { return pem.Rules{Labels: []string{"CERTIFICATE"}} }

// block returns the canonical block of which the tests change one thing.
func block() string { return string(pem.Encode("CERTIFICATE", octets)) }

// change replaces the first old in the canonical block.
func change(old, new string) string { return strings.Replace(block(), old, new, 1) }

func TestAcceptedTexts(t *testing.T) {
	body := strings.TrimSuffix(strings.TrimPrefix(block(), "-----BEGIN CERTIFICATE-----\n"), "-----END CERTIFICATE-----\n")
	joined := strings.ReplaceAll(body, "\n", "")
	for name, test := range map[string]struct {
		text   string
		blocks int
		line   int
	}{
		"a canonical block":              {block(), 1, 1},
		"two blocks":                     {block() + block(), 2, 1},
		"text before, between and after": {"Subject: CN=x — y\n\n" + block() + "next:\n" + block() + "-- end of bundle --\n", 2, 3},
		"CRLF line ends":                 {strings.ReplaceAll(block(), "\n", "\r\n"), 1, 1},
		"CR line ends":                   {strings.ReplaceAll("text\n"+block(), "\n", "\r"), 1, 2},
		"mixed line ends":                {"a\r\nb\rc\n" + change("\n", "\r"), 1, 4},
		"blanks at the end of lines":     {strings.ReplaceAll(block(), "\n", " \t\n"), 1, 1},
		"an empty line after BEGIN":      {change("CERTIFICATE-----\n", "CERTIFICATE-----\n\n  \n"), 1, 1},
		"an empty line before END":       {"-----BEGIN CERTIFICATE-----\nAAAA\n \n-----END CERTIFICATE-----\n", 1, 1},
		"base64 on one line":             {"-----BEGIN CERTIFICATE-----\n" + joined + "\n-----END CERTIFICATE-----\n", 1, 1},
		"base64 four characters a line":  {"-----BEGIN CERTIFICATE-----\n" + fold(joined, 4) + "-----END CERTIFICATE-----\n", 1, 1},
		"no line end after END":          {strings.TrimSuffix(block(), "\n"), 1, 1},
		"padding over two lines":         {"-----BEGIN CERTIFICATE-----\nAA=\n=\n-----END CERTIFICATE-----\n", 1, 1},
		"a sentence about a boundary":    {"a chain starts with -----BEGIN CERTIFICATE----- as always\n" + block(), 1, 2},
		"a rule of hyphens":              {"-----\n--- end of part 1 ---\n" + block() + "-----\n", 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			blocks, err := pem.Decode([]byte(test.text), certificates())
			if err != nil {
				t.Fatal(err)
			}
			if len(blocks) != test.blocks {
				t.Fatalf("got %d blocks, want %d", len(blocks), test.blocks)
			}
			for _, b := range blocks {
				if b.Label != "CERTIFICATE" || !bytes.Equal(b.Bytes, octets) && len(bytes.Trim(b.Bytes, "\x00")) > 0 {
					t.Errorf("got block %q of %x", b.Label, b.Bytes)
				}
			}
			if blocks[0].Line != test.line {
				t.Errorf("first block is at line %d, want %d", blocks[0].Line, test.line)
			}
		})
	}
}

func TestRefusedTexts(t *testing.T) {
	const good = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	for name, test := range map[string]struct {
		text string
		rule string
		line int
	}{
		"nothing":                                {"", "no-block", 0},
		"text only":                              {"hello\n", "no-block", 0},
		"END missing at the end of the text":     {good + change("-----END CERTIFICATE-----\n", ""), "end-missing", 4},
		"END missing before another block":       {change("-----END CERTIFICATE-----\n", "") + good, "begin-in-block", 5},
		"a block cut short within its last line": {block()[:120], "end-missing", 1},
		"BEGIN missing":                          {strings.TrimPrefix(block(), "-----BEGIN CERTIFICATE-----\n"), "stray-end", 4},
		"END first":                              {"-----END CERTIFICATE-----\n" + good, "stray-end", 1},
		"END twice":                              {good + "-----END CERTIFICATE-----\n", "stray-end", 4},
		"END with another label":                 {change("END CERTIFICATE", "END CERTIFICATE REQUEST"), "end-label", 5},
		"END in lower case":                      {change("-----END CERTIFICATE", "-----end CERTIFICATE"), "body-character", 5},
		"a label that was not asked for":         {good + string(pem.Encode("PRIVATE KEY", octets)), "label", 4},
		"OpenSSL's trusted label":                {string(pem.Encode("TRUSTED CERTIFICATE", octets)), "label", 1},
		"a label in lower case":                  {string(pem.Encode("certificate", octets)), "label", 1},
		"an empty label":                         {string(pem.Encode("", octets)), "label", 1},
		"two spaces after BEGIN":                 {change("BEGIN ", "BEGIN  "), "begin-line", 1},
		"a tab after BEGIN":                      {change("BEGIN ", "BEGIN\t"), "begin-line", 1},
		"no space after BEGIN":                   {change("BEGIN ", "BEGIN"), "begin-line", 1},
		"text after BEGIN":                       {change("CERTIFICATE-----", "CERTIFICATE----- x"), "begin-line", 1},
		"text after END":                         {change("END CERTIFICATE-----", "END CERTIFICATE-----x"), "end-line", 5},
		"six hyphens at the end of BEGIN":        {change("CERTIFICATE-----", "CERTIFICATE------"), "begin-line", 1},
		"four hyphens at the end of BEGIN":       {change("CERTIFICATE-----", "CERTIFICATE----"), "begin-line", 1},
		"six hyphens before BEGIN":               {change("-----BEGIN", "------BEGIN"), "damaged-boundary", 1},
		"four hyphens around both":               {good + strings.ReplaceAll(block(), "-----", "----"), "damaged-boundary", 4},
		"dashes instead of hyphens":              {good + strings.ReplaceAll(block(), "-----", "——-"), "damaged-boundary", 4},
		"one em dash instead of hyphens":         {good + strings.ReplaceAll(block(), "-----", "—"), "damaged-boundary", 4},
		"boundaries in lower case":               {good + strings.ToLower(block()), "damaged-boundary", 4},
		"a byte order mark":                      {"\ufeff" + block(), "damaged-boundary", 1},
		"a byte order mark in the middle":        {good + "\ufeff" + block(), "damaged-boundary", 4},
		"an indented block":                      {good + " " + strings.ReplaceAll(block(), "\n", "\n "), "damaged-boundary", 4},
		"a block behind no-break spaces":         {good + "\u00a0" + strings.ReplaceAll(block(), "\n", "\n\u00a0"), "damaged-boundary", 4},
		"a quoted block":                         {good + "> " + strings.ReplaceAll(block(), "\n", "\n> "), "damaged-boundary", 4},
		"a dash-escaped block":                   {good + "- " + strings.ReplaceAll(block(), "\n-", "\n- -"), "damaged-boundary", 4},
		"a block behind a key of YAML":           {good + "cert: " + block(), "boundary-not-at-start", 4},
		"a block after a form feed":              {good + "x\f" + block(), "boundary-not-at-start", 4},
		"blocks joined without a line end":       {strings.TrimSuffix(good, "\n") + good, "end-line", 3},
		"text joined to a block":                 {"hello" + good, "boundary-not-at-start", 1},
		"NUL around the block":                   {"junk\x00junk\n" + block(), "text-control", 1},
		"NUL after the block":                    {block() + "\x00", "text-control", 6},
		"UTF-16":                                 {utf16(block()), "text-control", 1},
		"NUL in the block":                       {change("MDEy", "MDE\x00"), "body-character", 2},
		"a header":                               {change("CERTIFICATE-----\n", "CERTIFICATE-----\nX-Note: hi\n\n"), "header", 2},
		"encryption headers":                     {change("CERTIFICATE-----\n", "CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n\n"), "header", 2},
		"an indented line":                       {change("\nNjc4", "\n Njc4"), "body-blank", 4},
		"a blank within a line":                  {change("MDEy", "MDEy "), "body-blank", 2},
		"an empty line in the middle":            {change("\nNjc4", "\n\nNjc4"), "body-after-end", 5},
		"a no-break space in the block":          {change("MDEy", "MDEy\u00a0"), "body-character", 2},
		"the URL-safe alphabet":                  {change("MDEy", "MD-y"), "body-character", 2},
		"a comment in the block":                 {change("\nNjc4", "\n# x\nNjc4"), "body-character", 4},
		"an empty line after padding":            {change("\n-----END", "\n\n-----END"), "body-after-end", 5},
		"padding missing":                        {change("=\n", "\n"), "padding", 5},
		"padding superfluous":                    {"-----BEGIN CERTIFICATE-----\nAAAA====\n-----END CERTIFICATE-----\n", "padding", 2},
		"padding superfluous on its own line":    {"-----BEGIN CERTIFICATE-----\nAAAA\n====\n-----END CERTIFICATE-----\n", "padding", 3},
		"padding in the middle of a line":        {"-----BEGIN CERTIFICATE-----\nAA==AAAA\n-----END CERTIFICATE-----\n", "padding", 2},
		"base64 after padding":                   {"-----BEGIN CERTIFICATE-----\nAA==\nAAAA\n-----END CERTIFICATE-----\n", "body-after-end", 3},
		"padding over three lines":               {"-----BEGIN CERTIFICATE-----\nA=\n=\n=\n-----END CERTIFICATE-----\n", "body-after-end", 4},
		"base64 cut by a character":              {change("MDEy", "MDE"), "padding", 5},
		"trailing bits that are not zero":        {"-----BEGIN CERTIFICATE-----\nAB==\n-----END CERTIFICATE-----\n", "trailing-bits", 3},
		"END on a base64 line":                   {change("\n-----END", "-----END"), "end-not-at-start", 4},
		"END indented":                           {change("\n-----END", "\n -----END"), "end-not-at-start", 5},
		"an empty block":                         {"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "empty", 1},
		"a block of empty lines":                 {"-----BEGIN CERTIFICATE-----\n\n\n-----END CERTIFICATE-----\n", "empty", 1},
		"a block of padding":                     {"-----BEGIN CERTIFICATE-----\n==\n-----END CERTIFICATE-----\n", "empty", 1},
	} {
		t.Run(name, func(t *testing.T) {
			blocks, err := pem.Decode([]byte(test.text), certificates())
			var refused *pem.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %d blocks and error %v, want an Error", len(blocks), err)
			}
			if blocks != nil {
				t.Errorf("got %d blocks besides the error", len(blocks))
			}
			if refused.Rule != test.rule || refused.Line != test.line {
				t.Errorf("got rule %s in line %d (%v), want %s in line %d", refused.Rule, refused.Line, err, test.rule, test.line)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	two := []byte(block() + block())
	rules := certificates()
	rules.MaxBlocks = 1
	wantRule(t, two, rules, "max-blocks")
	rules.MaxBlocks, rules.MaxBytes = 2, len(two)
	if _, err := pem.Decode(two, rules); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
	rules.MaxBytes--
	wantRule(t, two, rules, "max-bytes")
	wantRule(t, bytes.Repeat([]byte(block()), pem.DefaultMaxBlocks+1), certificates(), "max-blocks")
	wantRule(t, make([]byte, pem.DefaultMaxBytes+1), certificates(), "max-bytes")
	wantRule(t, two, pem.Rules{}, "label")
}

func wantRule(t *testing.T, text []byte, rules pem.Rules, rule string) {
	t.Helper()
	_, err := pem.Decode(text, rules)
	var refused *pem.Error
	if !errors.As(err, &refused) || refused.Rule != rule {
		t.Errorf("got error %v, want rule %s", err, rule)
	}
}

func TestErrorsShowNoMoreThanALabel(t *testing.T) {
	secret := strings.Repeat("SECRETKEY", 20)
	for _, text := range []string{
		"-----BEGIN " + secret + "-----\n" + secret + "\n-----END " + secret + "-----\n",
		"-----BEGIN CERTIFICATE-----\n" + secret + "!\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END " + secret + "-----\n",
		secret + " -----BEGIN CERTIFICATE-----\n",
		"-----BEGIN \u202e" + secret + "-----\n",
	} {
		_, err := pem.Decode([]byte(text), certificates())
		if err == nil || strings.Contains(err.Error(), secret[:40]) || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestErrorSentence(t *testing.T) {
	_, err := pem.Decode([]byte(change("END CERTIFICATE", "END CERTIFICATE REQUEST")), certificates())
	const want = `line 5: END says "CERTIFICATE REQUEST", BEGIN on line 1 said "CERTIFICATE" (RFC 7468 §3)`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestEncodeIsCanonical(t *testing.T) {
	const want = "-----BEGIN X-----\n" +
		"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3\nODk=\n-----END X-----\n"
	if got := pem.Encode("X", octets[:50]); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := pem.Append([]byte("before\n"), "X", octets[:50]); string(got) != "before\n"+want {
		t.Errorf("appended: %q", got)
	}
}

func fold(text string, columns int) string {
	var out strings.Builder
	for ; len(text) > columns; text = text[columns:] {
		out.WriteString(text[:columns] + "\n")
	}
	return out.String() + text + "\n"
}

func utf16(text string) string {
	out := "\xff\xfe"
	for _, c := range []byte(text) {
		out += string([]byte{c, 0})
	}
	return out
}
