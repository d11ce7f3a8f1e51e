// Command chancery is a certificate authority for workloads: the server and the operator's tools.
//
// Exit codes: 0 done; 1 refused or invalid; 2 usage or configuration; 3 unavailable, try again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/ledger"
)

// version and revision are set by the linker.
var (
	version  = "devel"
	revision = "unknown"
)

// The exit codes.
const (
	exitDone        = 0
	exitRefused     = 1
	exitUsage       = 2
	exitUnavailable = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process as if nobody had listened to the first
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand() //nolint:contextcheck // commands get theirs from ExecuteContext
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if text := err.Error(); text != "" {
		_, _ = fmt.Fprintf(stderr, "chancery: %s\n", escape(text, "\n\t")) // nobody is left to tell if this fails
	}
	return exitCode(err)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "chancery",
		Short: "A certificate authority for workloads",
		Long: `Chancery is a certificate authority for workloads. A workload shows the credential it
already holds, sends a certificate request, and gets a short-lived X.509 certificate
and the trust bundle.

Exit codes: 0 done; 1 refused or invalid; 2 usage or configuration; 3 unavailable, try again.`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(initCommand(), serveCommand(), requestCommand(), tokenCommand(), certsCommand(), revokeCommand(), inspectCommand(), verifyCommand(), lintCommand(),
		configCommand(), policyCommand())
	return root
}

// groupCommand returns a command that only holds others. It refuses what is none of them: cobra by itself would show the help and exit with 0.
func groupCommand(name, short string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
}

// required marks flags without which a command does not run.
func required(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		_ = cmd.MarkFlagRequired(name) // it fails for a flag that is not defined, and then the scripts do
	}
}

// usageError marks an error of the command line or the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// refusedError marks a verdict: what was asked was done, and the answer is no.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// exitCode is the one table from errors to exit codes.
func exitCode(err error) int {
	var usage usageError
	var refused refusedError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &refused):
		return exitRefused
	case errors.Is(err, ledger.ErrUnavailable), errkind.Of(err).Retryable():
		return exitUnavailable
	}
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK && s.Code() != codes.Unknown {
		switch s.Code() {
		case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted:
			return exitUnavailable
		default:
			return exitRefused
		}
	}
	if isUsage(err) {
		return exitUsage
	}
	return exitRefused
}

// isUsage knows cobra's own errors about arguments, which it does not type.
func isUsage(err error) bool {
	text := err.Error()
	for _, start := range []string{"unknown command", "unknown flag", "accepts ", "requires at least", "required flag", "if any flags in the group", "at least one of the flags"} {
		if len(text) >= len(start) && text[:len(start)] == start {
			return true
		}
	}
	return false
}
