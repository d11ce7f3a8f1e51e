package main

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf16"
)

// pemCase is a text in which a person or a tool wrote certificates.
type pemCase struct {
	name    string
	rule    string // that the text breaks, as the product names it; empty for none
	count   int    // of certificates
	section string
	what    string
	text    string
}

const (
	begin = "-----BEGIN CERTIFICATE-----"
	end   = "-----END CERTIFICATE-----"
)

// block is a PEM block of the lines.
func block(lines ...string) string {
	return begin + "\n" + strings.Join(lines, "\n") + "\n" + end + "\n"
}

// pemCases returns the corpus of texts.
func pemCases() *folder {
	f := newFolder("pem", "verdict", "certificates", "rule", "section", "what")
	for _, c := range append(goodTexts(), append(lossyTexts(), badTexts()...)...) {
		verdict, rule := "accept", "-"
		if c.rule != "" {
			verdict, rule = "reject", c.rule
		}
		f.add(c.name+".pem", []byte(c.text), verdict, strconv.Itoa(c.count), rule, c.section, c.what)
	}
	return f
}

// samples are two certificates as text, and the first one's base64 in lines of 64 and in one.
func samples() (leaf, issuer string, lines []string, whole string) {
	encoding := leafDraft().sign()
	leaf, issuer = string(certificatePEM(encoding)), string(certificatePEM(intermediateDraft().sign()))
	lines = strings.Split(strings.TrimSuffix(leaf, "\n"), "\n")
	return leaf, issuer, lines[1 : len(lines)-1], base64.StdEncoding.EncodeToString(encoding)
}

// padded returns a certificate whose base64 ends with the given number of padding characters.
func padded(count int) (lines []string, encoding []byte) {
	d := leafDraft()
	for i := 1; ; i++ {
		d.serial = tlv(tagInteger, []byte{1}, make([]byte, i))
		encoding = d.sign()
		text := base64.StdEncoding.EncodeToString(encoding)
		if strings.Count(text, "=") == count {
			for ; len(text) > 64; text = text[64:] {
				lines = append(lines, text[:64])
			}
			return append(lines, text), encoding
		}
	}
}

// goodTexts are read, since the standard grammar of RFC 7468 §3 has them.
func goodTexts() []pemCase {
	leaf, issuer, lines, whole := samples()
	one, _ := padded(1)
	two, _ := padded(2)
	none, _ := padded(0)
	last := two[len(two)-1]
	indent := func(text, with string) string { return strings.ReplaceAll(text, "\n", with) }
	var short []string
	for rest := whole; rest != ""; {
		n := min(13, len(rest))
		short, rest = append(short, rest[:n]), rest[n:]
	}
	return []pemCase{
		{"one", "", 1, "RFC 7468 §5", "one certificate", leaf},
		{"two", "", 2, "RFC 7468 §5", "two certificates", leaf + issuer},
		{"padding-one", "", 1, "RFC 4648 §4", "one padding character", block(one...)},
		{"padding-two", "", 1, "RFC 4648 §4", "two padding characters", block(two...)},
		{"padding-on-next-line", "", 1, "RFC 7468 §3", "the second padding character on a line of its own", block(append(append([]string(nil), two[:len(two)-1]...), strings.TrimSuffix(last, "="), "=")...)},
		{"crlf", "", 2, "RFC 7468 §3", "CRLF as line ends", indent(leaf+issuer, "\r\n")},
		{"cr", "", 2, "RFC 7468 §3", "CR as line ends", indent(leaf+issuer, "\r")},
		{"mixed-line-ends", "", 2, "RFC 7468 §3", "one block with LF, one with CRLF", leaf + indent(issuer, "\r\n")},
		{"no-final-line-end", "", 1, "RFC 7468 §3", "no line end after the last END", strings.TrimSuffix(leaf, "\n")},
		{"one-line", "", 1, "RFC 7468 §3", "base64 in one line", block(whole)},
		{"short-lines", "", 1, "RFC 7468 §3", "base64 in lines of 13", block(short...)},
		{"trailing-blanks", "", 1, "RFC 7468 §3", "blanks at line ends", indent(leaf, " \t\n")},
		{"blank-lines-after-begin", "", 1, "RFC 7468 §3", "empty lines after BEGIN", block(append([]string{"", " "}, lines...)...)},
		{"blank-line-before-end", "", 1, "RFC 7468 §3", "an empty line before END, after base64 without padding: the grammar's final line", block(append(append([]string(nil), none...), "")...)},
		{"blank-lines-around", "", 2, "RFC 7468 §2", "empty lines around blocks", "\n\n" + leaf + "\n \n" + issuer + "\n"},
		{"text-around", "", 2, "RFC 7468 §5.2", "text before, between and after", "Subject: CN=leaf\n" + leaf + "Subject: CN=issuer\n" + issuer + "the end\n"},
		{"text-utf8", "", 1, "RFC 7468 §5.2", "text that is not ASCII", "Für Prüfungen – nur zum Testen\n" + leaf},
		{"text-openssl", "", 1, "RFC 7468 §5.2", "what openssl x509 -text prints", "Certificate:\n    Data:\n        Version: 3 (0x2)\n        Serial Number:\n            4c:00\n" + leaf},
		{"text-mentions-begin", "", 1, "RFC 7468 §5.2", "a sentence about a boundary", "the line that says -----BEGIN starts a block\n" + leaf},
		{"text-list", "", 1, "RFC 7468 §5.2", "a list whose items begin with one hyphen", "- leaf\n- end of the list\n" + leaf},
		{"text-underline", "", 1, "RFC 7468 §5.2", "a line of hyphens", "Leaf\n-----------\n" + leaf},
		{"text-tab", "", 1, "RFC 7468 §5.2", "tabs in text", "leaf\tof\tthe corpus\n" + leaf},
		{"order-reversed", "", 2, "RFC 7468 §5", "issuer before leaf: the order is for the reader of chains to judge", issuer + leaf},
		{"same-twice", "", 2, "RFC 7468 §5", "a certificate twice: that is for the reader of chains to judge", leaf + leaf},
	}
}

// lossyTexts are those in which forgiving readers lose a certificate without a word.
func lossyTexts() []pemCase {
	leaf, issuer, lines, _ := samples()
	damaged := append([]string(nil), lines...)
	damaged[3] = damaged[3][:10] + "!" + damaged[3][11:]
	cut := leaf[:len(leaf)/2]
	return []pemCase{
		{"bom", "damaged-boundary", 0, "RFC 7468 §3", "a byte order mark before the leaf, which some readers then lose", "\ufeff" + leaf + issuer},
		{"end-missing", "begin-in-block", 0, "RFC 7468 §3", "the first block has no END", strings.TrimSuffix(leaf, end+"\n") + issuer},
		{"end-missing-last", "end-missing", 0, "RFC 7468 §3", "the last block has no END", leaf + strings.TrimSuffix(issuer, end+"\n")},
		{"end-label", "end-label", 0, "RFC 7468 §3", "END has another label", strings.Replace(leaf, "END CERTIFICATE", "END CERTIFICATE REQUEST", 1) + issuer},
		{"end-label-case", "end-label", 0, "RFC 7468 §3", "END's label is in small letters", strings.Replace(leaf, "END CERTIFICATE", "END certificate", 1) + issuer},
		{"end-four-hyphens", "end-line", 0, "RFC 7468 §3", "END ends with four hyphens", strings.Replace(leaf, end, strings.TrimSuffix(end, "-"), 1) + issuer},
		{"end-text-after", "end-line", 0, "RFC 7468 §3", "text after END", strings.Replace(leaf, end, end+" of leaf", 1) + issuer},
		{"end-not-on-own-line", "end-not-at-start", 0, "RFC 7468 §3", "no line end before END", strings.Replace(leaf, "\n"+end, end, 1) + issuer},
		{"end-without-begin", "stray-end", 0, "RFC 7468 §3", "END before any BEGIN", end + "\n" + leaf},
		{"begin-four-hyphens", "damaged-boundary", 0, "RFC 7468 §3", "BEGIN starts with four hyphens", strings.TrimPrefix(leaf, "-") + issuer},
		{"begin-six-hyphens", "damaged-boundary", 0, "RFC 7468 §3", "BEGIN starts with six hyphens", "-" + leaf + issuer},
		{"begin-small", "damaged-boundary", 0, "RFC 7468 §3", "BEGIN in small letters", strings.Replace(leaf, "BEGIN", "begin", 1) + issuer},
		{"begin-dashes", "damaged-boundary", 0, "RFC 7468 §3", "hyphens that a word processor made into dashes", strings.ReplaceAll(leaf, "-----", "–––––") + issuer},
		{"begin-indented", "damaged-boundary", 0, "RFC 7468 §3", "a blank before BEGIN", " " + leaf + issuer},
		{"begin-quoted", "damaged-boundary", 0, "RFC 7468 §3", "a block quoted as in mail", "> " + strings.ReplaceAll(strings.TrimSuffix(leaf, "\n"), "\n", "\n> ") + "\n" + issuer},
		{"begin-escaped", "damaged-boundary", 0, "RFC 4880 §7.1", "a block escaped by hyphen and blank", "- " + leaf + issuer},
		{"begin-text-before", "boundary-not-at-start", 0, "RFC 7468 §3", "text before BEGIN on its line", "leaf: " + leaf + issuer},
		{"begin-text-after", "begin-line", 0, "RFC 7468 §3", "text after BEGIN on its line", strings.Replace(leaf, begin, begin+" leaf", 1) + issuer},
		{"begin-two-blanks", "begin-line", 0, "RFC 7468 §3", "two blanks before the label", strings.Replace(leaf, "BEGIN ", "BEGIN  ", 1) + issuer},
		{"begin-no-blank", "begin-line", 0, "RFC 7468 §3", "no blank before the label", strings.Replace(leaf, "BEGIN ", "BEGIN", 1) + issuer},
		{"begin-twice", "begin-in-block", 0, "RFC 7468 §3", "BEGIN stands twice", begin + "\n" + leaf},
		{"joined-files", "end-line", 0, "RFC 7468 §3", "two files joined without a line end between them", strings.TrimSuffix(leaf, "\n") + issuer},
		{"cut-short", "end-missing", 0, "RFC 7468 §3", "the file is cut short", leaf + cut},
		{"damaged-middle", "body-character", 0, "RFC 4648 §4", "the middle one of three is damaged", leaf + block(damaged...) + issuer},
		{"header", "header", 0, "RFC 7468 §2", "a header in the block", strings.Replace(leaf, begin+"\n", begin+"\nComment: leaf\n\n", 1) + issuer},
		{"header-no-blank-line", "header", 0, "RFC 7468 §2", "a header without the empty line after it", strings.Replace(leaf, begin+"\n", begin+"\nComment: leaf\n", 1) + issuer},
		{"utf16", "text-control", 0, "RFC 7468 §5.2", "UTF-16 with a byte order mark, as Windows tools write", toUTF16("\ufeff" + leaf)},
		{"nul-text", "text-control", 0, "RFC 7468 §5.2", "a NUL in the text before", "a\x00b\n" + leaf},
		{"escape-text", "text-control", 0, "RFC 7468 §5.2", "a terminal's escape sequence in the text", "\x1b[31mleaf\x1b[0m\n" + leaf},
	}
}

func toUTF16(text string) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		out.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return out.String()
}

// badTexts hold blocks with another label or another content.
func badTexts() []pemCase {
	leaf, issuer, lines, whole := samples()
	two, encoding := padded(2)
	none, _ := padded(0)
	last := len(two) - 1
	with := func(change func(lines []string) []string) string {
		return block(change(append([]string(nil), lines...))...)
	}
	// the two low bits before "==" are not zero
	loose := []byte(two[last])
	loose[len(loose)-3]++
	label := func(label string) string { return strings.ReplaceAll(leaf, "CERTIFICATE", label) }
	der := func(encodings ...[]byte) string { return string(certificatePEM(join(encodings...))) }
	return []pemCase{
		{"label-trusted", "label", 0, "RFC 7468 §5.1", "OpenSSL's own label, whose content is more than a certificate", label("TRUSTED CERTIFICATE")},
		{"label-x509", "label", 0, "RFC 7468 §5.1", "an old label", label("X509 CERTIFICATE")},
		{"label-request", "label", 0, "RFC 7468 §5.1", "the label of requests", label("CERTIFICATE REQUEST")},
		{"label-small", "label", 0, "RFC 7468 §3", "the label in small letters", label("certificate")},
		{"label-key-after", "label", 0, "RFC 7468 §5.1", "a private key after the certificate", leaf + "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"},
		{"label-empty", "label", 0, "RFC 7468 §3", "an empty label", strings.ReplaceAll(leaf, "CERTIFICATE", "")},
		{"body-empty", "empty", 0, "RFC 7468 §3", "a block of nothing", leaf + begin + "\n" + end + "\n"},
		{"body-indented", "body-blank", 0, "RFC 7468 §3", "indented lines", with(func(l []string) []string { l[1] = "  " + l[1]; return l })},
		{"body-inner-blank", "body-blank", 0, "RFC 7468 §3", "a blank inside a line", with(func(l []string) []string { l[1] = l[1][:8] + " " + l[1][8:]; return l })},
		{"body-blank-line", "body-after-end", 0, "RFC 7468 §3", "an empty line in the middle", with(func(l []string) []string { return append(append(append([]string(nil), l[:2]...), ""), l[2:]...) })},
		{"body-blank-lines-last", "body-after-end", 0, "RFC 7468 §3", "two empty lines before END", block(append(append([]string(nil), none...), "", "")...)},
		{"body-blank-line-after-padding", "body-after-end", 0, "RFC 7468 §3", "an empty line after the padding", block(append(append([]string(nil), two...), "")...)},
		{"body-url", "body-character", 0, "RFC 4648 §5", "the alphabet for URLs", with(func(l []string) []string { l[1] = "_" + l[1][1:]; return l })},
		{"body-nbsp", "body-character", 0, "RFC 4648 §4", "a no-break space", with(func(l []string) []string { l[1] += "\u00a0"; return l })},
		{"body-comment", "body-character", 0, "RFC 4648 §4", "a comment", with(func(l []string) []string { return append([]string{"# leaf"}, l...) })},
		{"padding-missing", "padding", 0, "RFC 4648 §4", "no padding", block(append(append([]string(nil), two[:last]...), strings.TrimRight(two[last], "="))...)},
		{"padding-one-of-two", "padding", 0, "RFC 4648 §4", "one padding character of two", block(append(append([]string(nil), two[:last]...), strings.TrimSuffix(two[last], "="))...)},
		{"padding-three", "padding", 0, "RFC 4648 §4", "three padding characters", block(append(append([]string(nil), two[:last]...), two[last]+"=")...)},
		{"padding-inside", "padding", 0, "RFC 4648 §4", "padding in the middle of a line", block(append(append([]string(nil), two[:last]...), "AA=="+two[last])...)},
		{"padding-then-data", "body-after-end", 0, "RFC 4648 §4", "base64 after the padding", block(append(append([]string(nil), two...), "AAAA")...)},
		{"bits-loose", "trailing-bits", 0, "RFC 4648 §3.5", "bits before the padding that are not zero: another text of the same octets", block(append(append([]string(nil), two[:last]...), string(loose))...)},
		{"one-character-less", "padding", 0, "RFC 4648 §4", "a character is lost", block(whole[:len(whole)/8*4+1], whole[len(whole)/8*4+2:])},
		{"der-trailing", "certificate", 0, "RFC 5280 §4.1", "an octet after the certificate in its block", der(encoding, []byte{0})},
		{"der-two", "certificate", 0, "RFC 7468 §2", "two certificates in one block", der(encoding, encoding)},
		{"der-cut", "certificate", 0, "RFC 5280 §4.1", "a certificate that is cut short", der(encoding[:len(encoding)-4])},
		{"der-text", "certificate", 0, "RFC 5280 §4.1", "text in the block", der([]byte("no certificate"))},
		{"der-ber", "certificate", 0, "RFC 7468 §5.1", "a certificate in BER", der(indefinite(tagSequence, contents(encoding)))},
		{"der-second", "certificate", 0, "RFC 5280 §4.1", "the second certificate is malformed", leaf + der(seq()) + issuer},
		{"der-itself", "text-control", 0, "RFC 7468 §2", "DER without PEM", string(encoding)},
		{"nothing", "no-block", 0, "RFC 7468 §2", "text without a block", "no certificate here\n"},
		{"empty", "no-block", 0, "RFC 7468 §2", "no octet", ""},
		{"base64-alone", "no-block", 0, "RFC 7468 §2", "base64 without boundaries", strings.Join(lines, "\n") + "\n"},
	}
}
