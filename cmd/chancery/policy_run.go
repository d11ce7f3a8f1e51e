package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chancery-ca/chancery/internal/regularfile"
)

// maxCaseFile bounds a file of cases or of a caller; what is longer is told as such by the reader of the document.
const maxCaseFile = 1<<20 + 1

func policyCommand() *cobra.Command {
	cmd := groupCommand("policy", "Try the rules of a configuration")
	cmd.AddCommand(policyTestCommand(), policyExplainCommand())
	return cmd
}

func policyTestCommand() *cobra.Command {
	var path string
	var output format
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Hold the rules against a file of cases",
		Long: `Asks the rules of the configuration about each case in FILE, exactly as the server
would, and compares the answers. It needs no key, ledger or cluster. docs/policy.md has
the format. FILE may be - for standard input.
Exit code 0: every case got the answer it expects; 1: some did not; 2: a file is wrong.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			desk, err := newPolicyDesk(cfg)
			if err != nil {
				return err
			}
			data, err := readCaseFile(cmd, args[0])
			if err != nil {
				return err
			}
			cases, document, err := readCases(args[0], data, cfg.TrustDomain)
			if err != nil {
				return usageError{err}
			}
			results, err := desk.test(cmd.Context(), cases)
			if err != nil {
				return err
			}
			for i := range results {
				results[i].Line = document.Line(fmt.Sprintf("cases[%d]", i))
			}
			return reportCases(cmd.OutOrStdout(), output, args[0], results)
		},
	}
	configFlag(cmd, &path)
	outputFlag(cmd, &output)
	return cmd
}

func readCaseFile(cmd *cobra.Command, path string) ([]byte, error) {
	var from io.Reader = cmd.InOrStdin()
	if path != "-" {
		file, err := regularfile.Open(path)
		if err != nil {
			return nil, usageError{err}
		}
		defer file.Close()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, maxCaseFile))
	if err != nil {
		return nil, usageError{err}
	}
	return data, nil
}

// caseResult is what became of one case.
type caseResult struct {
	Name        string   `json:"name"`
	Line        int      `json:"line"`
	Passed      bool     `json:"passed"`
	Differences []string `json:"differences,omitempty"`
	Answer      answer   `json:"answer"`
}

func (d *policyDesk) test(ctx context.Context, cases []policyCase) ([]caseResult, error) {
	results := make([]caseResult, 0, len(cases))
	for _, c := range cases {
		principal, err := c.Principal.principal(d.cfg.TrustDomain)
		if err != nil {
			return nil, usageError{fmt.Errorf("case %q: %w", c.Name, err)}
		}
		result := caseResult{Name: c.Name, Answer: d.decide(ctx, principal, c.Request)}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		result.Differences = c.Expect.differences(result.Answer)
		result.Passed = len(result.Differences) == 0
		results = append(results, result)
	}
	return results, nil
}

// differences returns what is not as expected.
func (e caseExpect) differences(got answer) []string {
	var out []string
	differ := func(what, got, want string) {
		if got != want {
			out = append(out, fmt.Sprintf("%s is %q, want %q", what, got, want))
		}
	}
	differ("decision", got.Decision, e.Decision)
	if e.Rule != "" {
		differ("rule", got.Rule, e.Rule)
	}
	if e.Reason != "" {
		differ("reason", got.Reason, e.Reason)
	}
	if e.Decision == decisionAllow && got.Decision == decisionAllow && got.max != e.MaxLifetime {
		differ("max_lifetime", got.max.String(), e.MaxLifetime.String())
	}
	return out
}

func reportCases(out io.Writer, output format, file string, results []caseResult) error {
	failed := 0
	for _, r := range results {
		if !r.Passed {
			failed++
		}
	}
	err := inFormat(output, func() error {
		for _, r := range results {
			if err := r.write(out, file); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(out, "%d cases, %d failed\n", len(results), failed)
		return err
	}, func() error { return writeJSON(out, results) })
	switch {
	case err != nil:
		return err
	case failed > 0:
		return refusedError{errors.New("the rules do not do what the cases expect")}
	default:
		return nil
	}
}

func (r caseResult) write(out io.Writer, file string) error {
	verdict := r.Answer.Decision
	if r.Answer.Rule != "" {
		verdict += " by " + r.Answer.Rule
	}
	if r.Answer.Reason != "" {
		verdict += " (" + r.Answer.Reason + ")"
	}
	if r.Passed {
		_, err := fmt.Fprintf(out, "ok    %s: %s\n", printable(r.Name), verdict)
		return err
	}
	_, err := fmt.Fprintf(out, "FAIL  %s: %s\n      %s:%d: %s\n", printable(r.Name), verdict, printable(file), r.Line, strings.Join(r.Differences, "; "))
	if err == nil && r.Answer.Cause != "" {
		_, err = fmt.Fprintf(out, "      %s\n", printable(r.Answer.Cause))
	}
	return err
}
