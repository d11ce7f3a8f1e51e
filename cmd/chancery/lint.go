package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chancery-ca/chancery/internal/inspect"
)

// lintKind is what a file is linted as.
type lintKind string

const (
	lintKindCertificate lintKind = "certificate"
	lintKindRequest     lintKind = "csr"
	lintKindChain       lintKind = "chain"
)

// Set implements pflag.Value.
func (k *lintKind) Set(text string) error {
	switch lintKind(text) {
	case lintKindCertificate, lintKindRequest, lintKindChain:
		*k = lintKind(text)
		return nil
	default:
		return errors.New("it is certificate, csr or chain")
	}
}

// String implements pflag.Value.
func (k *lintKind) String() string { return string(*k) }

// Type implements pflag.Value.
func (k *lintKind) Type() string { return "kind" }

type lintOptions struct {
	kind   lintKind
	output format
}

func lintCommand() *cobra.Command {
	var options lintOptions
	cmd := &cobra.Command{
		Use:   "lint --kind certificate|csr|chain FILE",
		Short: "Say whether issuance and its checker would let a certificate, a request or a chain pass",
		Long: `Holds a file against the rules that everything Chancery issues has to pass, under a
profile that allows its names, and prints one finding a line: rule, section, sentence.

  certificate  one certificate: the strict parser, zlint's rules for RFC 5280, and the
               checker's rules for a leaf or, if it is a CA certificate, for an issuer
  csr          one request: its parser, the default key policy, and the lints over what
               would be issued for it
  chain        a leaf and the certificates above it, leaf first: all of that, and how they
               fit together; the last one is taken for the trust anchor

The clock plays no part. "-" is standard input.

Exit codes: 0 no finding; 1 findings; 2 usage.`,
		Example: `  chancery lint --kind certificate leaf.pem
  openssl req -new -key key.pem -subj / | chancery lint --kind csr -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return options.run(cmd, args[0]) },
	}
	cmd.Flags().Var(&options.kind, "kind", "what the file is: certificate, csr or chain (required)")
	outputFlag(cmd, &options.output)
	return cmd
}

// lintFinding is one rule that is broken.
type lintFinding struct {
	Certificate int    `json:"certificate,omitempty"` // of a chain, 1 is the leaf
	Rule        string `json:"rule"`
	Section     string `json:"section"`
	Detail      string `json:"detail"`
}

func (o *lintOptions) run(cmd *cobra.Command, path string) error {
	if o.kind == "" {
		return usageError{errors.New("--kind is needed: certificate, csr or chain")}
	}
	input, err := readInput(path, cmd.InOrStdin())
	if err != nil {
		return err
	}
	findings, err := o.lint(input)
	if err != nil {
		return err
	}
	err = inFormat(o.output, func() error {
		page := inspect.NewPage(cmd.OutOrStdout(), false)
		for _, finding := range findings {
			page.Line(inspect.Plain, "%s", finding)
		}
		return page.Err()
	}, func() error {
		return inspect.EncodeJSON(cmd.OutOrStdout(), struct {
			Schema   string        `json:"schema"`
			Kind     lintKind      `json:"kind"`
			Passed   bool          `json:"passed"`
			Findings []lintFinding `json:"findings"`
		}{"chancery.lint.v1", o.kind, len(findings) == 0, append([]lintFinding{}, findings...)})
	})
	if err == nil && len(findings) > 0 {
		return told
	}
	return err
}

func (o *lintOptions) lint(input []byte) ([]lintFinding, error) {
	rules, err := newLintRules()
	if err != nil {
		return nil, err
	}
	if o.kind == lintKindRequest {
		return rules.request(input)
	}
	// a BER certificate is not what an issuer makes
	report := inspect.Read(input, inspect.Options{})
	if o.kind == lintKindChain {
		return rules.chain(report)
	}
	return rules.certificate(report)
}

// String returns the finding as a line: rule, section, sentence.
func (f lintFinding) String() string {
	who := ""
	if f.Certificate > 0 {
		who = fmt.Sprintf("certificate %d: ", f.Certificate)
	}
	return fmt.Sprintf("%s [%s] %s%s", f.Rule, f.Section, who, f.Detail)
}
