package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/chancery-ca/chancery/internal/inspect"
)

type inspectOptions struct {
	at       moment
	colour   colour
	output   format
	allowBER bool
	short    bool
}

func inspectCommand() *cobra.Command {
	var options inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Say what is in a file: what it is, for whom, until when, and what is odd about it",
		Long: `Reads certificates, chains, certificate requests, revocation lists, keys, SPIFFE bundles
(JSON) and Kubernetes' CertificateSigningRequest objects (YAML or JSON, as kubectl prints
them), in PEM or DER; "-" is standard input. Private keys and challenge passwords are
never shown. Nothing is verified against a trust anchor: chancery verify does that.

Exit codes: 0 every reader of Chancery takes it; 1 the text or the encoding is wrong, as
the output says; 2 usage. What is odd but readable is no error. The JSON form is described
in docs/inspect.md.`,
		Example: `  chancery inspect chain.pem
  chancery inspect --short /etc/ssl/certs/ca-certificates.crt
  kubectl get csr web-1 -o yaml | chancery inspect -
  chancery inspect -o json leaf.pem | jq -r .items[0].certificate.validity.not_after`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return options.run(cmd, args[0]) },
	}
	atFlag(cmd, &options.at)
	outputFlag(cmd, &options.output)
	colourFlag(cmd, &options.colour)
	allowBERFlag(cmd, &options.allowBER)
	cmd.Flags().BoolVar(&options.short, "short", false, "one line for each thing in the file")
	return cmd
}

func (o *inspectOptions) run(cmd *cobra.Command, path string) error {
	input, err := readInput(path, cmd.InOrStdin())
	if err != nil {
		return err
	}
	report := inspect.Read(input, inspect.Options{At: o.at.orNow(), AllowBER: o.allowBER})
	if o.output == outputText && len(report.Items) == 0 && !report.Accepted {
		return refusedError{fmt.Errorf("%s: %s", path, inspect.Clean(report.Refusals()[0].String()))}
	}
	err = inFormat(o.output, func() error {
		page := o.colour.page(cmd)
		if o.short {
			report.WriteShort(page)
		} else {
			report.Write(page)
		}
		return page.Err()
	}, func() error { return inspect.EncodeJSON(cmd.OutOrStdout(), report) })
	if err == nil && !report.Accepted {
		return told
	}
	return err
}

// told is a refusal that the output has explained.
var told = refusedError{errors.New("")}

// moment is a time given by a flag.
type moment struct{ time.Time }

func atFlag(cmd *cobra.Command, at *moment) {
	cmd.Flags().Var(at, "at", "the time to look from, as 2026-01-31T12:00:00Z (default now)")
}

// Set implements pflag.Value.
func (m *moment) Set(text string) error {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return errors.New("it is a time such as 2026-01-31T12:00:00Z (RFC 3339)")
	}
	m.Time = t
	return nil
}

// String implements pflag.Value.
func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return stamp(m.Time)
}

// Type implements pflag.Value.
func (m *moment) Type() string { return "time" }

func (m *moment) orNow() time.Time {
	if m.IsZero() {
		return time.Now()
	}
	return m.Time
}

// colour says when text is coloured.
type colour string

const (
	colourAuto   colour = "auto"
	colourAlways colour = "always"
	colourNever  colour = "never"
)

func colourFlag(cmd *cobra.Command, c *colour) {
	*c = colourAuto
	cmd.Flags().Var(c, "color", "colour the text: auto (on a terminal, unless NO_COLOR is set), always or never")
}

// Set implements pflag.Value.
func (c *colour) Set(text string) error {
	switch colour(text) {
	case colourAuto, colourAlways, colourNever:
		*c = colour(text)
		return nil
	default:
		return errors.New("it is auto, always or never")
	}
}

// String implements pflag.Value.
func (c *colour) String() string { return string(*c) }

// Type implements pflag.Value.
func (c *colour) Type() string { return "when" }

// page returns the page of a command's output.
func (c *colour) page(cmd *cobra.Command) *inspect.Page {
	on := *c == colourAlways
	if file, ok := cmd.OutOrStdout().(*os.File); ok && *c == colourAuto {
		// https://no-color.org: any value but the empty one
		on = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
	}
	return inspect.NewPage(cmd.OutOrStdout(), on)
}

func allowBERFlag(cmd *cobra.Command, allow *bool) {
	cmd.Flags().BoolVar(allow, "allow-ber", false, "read certificates whose outer encoding is BER, as the DER that it stands for")
}
