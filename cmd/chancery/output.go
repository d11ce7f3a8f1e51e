package main

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// format is an output format. It is checked when the flags are read, so that nothing is done whose outcome could then not be shown.
type format string

// The output formats.
const (
	outputText format = "text"
	outputJSON format = "json"
)

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *format) Set(text string) error {
	switch format(text) {
	case outputText, outputJSON:
		*f = format(text)
		return nil
	default:
		return errors.New("it is text or json")
	}
}

func outputFlag(cmd *cobra.Command, output *format) {
	*output = outputText
	cmd.Flags().VarP(output, "output", "o", "output format: text or json")
}

// inFormat writes a result as the -o flag says.
func inFormat(output format, text, structured func() error) error {
	if output == outputJSON {
		return structured()
	}
	return text()
}

func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// maxShown bounds what is shown of a text that somebody else wrote.
const maxShown = 1 << 10

// printable returns a text of somebody else's for a terminal: one line, bounded, with everything escaped that could move the cursor, change
// the order of writing or forge a line.
func printable(text string) string {
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return escape(text, "")
}

// escape replaces every character that does not print, but for those in keep.
func escape(text, keep string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || strings.ContainsRune(keep, r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
