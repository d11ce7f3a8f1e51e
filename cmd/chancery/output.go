package main

import (
	"encoding/json"
	"errors"
	"io"

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
