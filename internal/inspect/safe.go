package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxShown is how many bytes of one text a person is shown: a SPIFFE ID, which may have 2048, is whole.
const maxShown = 2100

// Clean returns a text as a terminal may see it: what is not printable is written out, control characters and those that turn the direction of
// writing among them, and what is very long is cut.
func Clean(text string) string {
	cut := len(text)
	if cut > maxShown {
		for cut = maxShown; cut > maxShown-utf8.UTFMax && !utf8.RuneStart(text[cut]); {
			cut--
		}
	}
	var out strings.Builder
	for at := 0; at < cut; {
		r, size := utf8.DecodeRuneInString(text[at:cut])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[at])
		case unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		at += size
	}
	if cut < len(text) {
		fmt.Fprintf(&out, "… (%d bytes more)", len(text)-cut)
	}
	return out.String()
}

// EncodeJSON writes a value as indented JSON in which everything that is not printable is escaped, so that it can be shown as it is.
func EncodeJSON(w io.Writer, value any) error {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	// outside of strings there is ASCII only, and inside the encoder has escaped what is below the space
	out := make([]byte, 0, buffer.Len())
	for text := buffer.Bytes(); len(text) > 0; {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = append(out, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	_, err := w.Write(out)
	return err
}
