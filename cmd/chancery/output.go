package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The output formats.
const (
	outputText = "text"
	outputJSON = "json"
)

func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", outputText, "output format: text or json")
}

// inFormat writes a result as the -o flag says.
func inFormat(output string, text, structured func() error) error {
	switch output {
	case outputText:
		return text()
	case outputJSON:
		return structured()
	default:
		return usageError{fmt.Errorf("--output %q: it is text or json", output)}
	}
}

func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
