package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/chancery-ca/chancery/ca/ledger"
)

func revokeCommand() *cobra.Command {
	var path, reason string
	cmd := &cobra.Command{
		Use:   "revoke SERIAL",
		Short: "Revoke a certificate, for good",
		Long: `Revokes a certificate by the serial that chancery certs list shows. From then on it
cannot renew itself. Whoever verifies certificates does not learn of it: keep lifetimes
short. It runs beside the server, on the same machine and as the same user. Revoking what
is revoked already changes nothing.

A certificate that was got by renewing this one is another, and stays. Whoever had the key
may have renewed: chancery certs list --identity ID --valid-at now shows what its holder
has, and certs show of each the serial that it renews.

Reasons (RFC 5280 section 5.3.1): unspecified, key-compromise, affiliation-changed,
superseded, cessation-of-operation, privilege-withdrawn.`,
		Example: `  chancery revoke 46f03da2… --reason key-compromise`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			serial, err := ledger.ParseSerial(args[0])
			if err != nil {
				return usageError{err}
			}
			why, err := ledger.ParseRevocationReason(reason)
			if err != nil {
				return usageError{fmt.Errorf("--reason: %w", err)}
			}
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			roll, err := openLedger(cmd.Context(), cfg, accessShare, rollTools{logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			defer roll.Close() // what it wrote is durable
			err = roll.Revoke(cmd.Context(), serial, ledger.Revocation{At: time.Now(), Reason: why, By: operator()})
			switch {
			case errors.Is(err, ledger.ErrNotFound):
				return refusedError{fmt.Errorf("serial %s is not in the ledger, or nothing has come of it yet; see: chancery certs list", serial)}
			case errors.Is(err, ledger.ErrNotIssued):
				return refusedError{fmt.Errorf("serial %s: nothing was issued under it", serial)}
			case err != nil:
				return err
			}
			entry, err := roll.Get(cmd.Context(), serial)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "certificate %s of %s is revoked since %s (%s)\n", serial, printable(entry.Identity),
				stamp(entry.Revoked.At), entry.Revoked.Reason)
			return err
		},
	}
	configFlag(cmd, &path)
	cmd.Flags().StringVar(&reason, "reason", "unspecified", "why")
	return cmd
}

// operator names whoever runs the command, for the ledger.
func operator() string {
	if who, err := user.Current(); err == nil && who.Username != "" {
		return who.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
