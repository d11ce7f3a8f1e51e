package main

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/tokenreview"
)

// maxTokenTTL bounds a join token's life: it is a secret that someone carries from one place to another.
const maxTokenTTL = 7 * 24 * time.Hour

func tokenCommand() *cobra.Command {
	cmd := groupCommand("token", "Make join tokens for workloads without a cluster")
	cmd.AddCommand(tokenCreateCommand())
	return cmd
}

func tokenCreateCommand() *cobra.Command {
	var path, id string
	var output format
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a join token: one certificate for one identity, once",
		Long: `Makes a join token and prints it; it is stored hashed and cannot be shown again. Whoever
has it can get one certificate for the identity. It runs beside the server, on the
same machine and as the same user.`,
		Example: `  chancery token create --identity spiffe://example.org/vm/web-1 --ttl 15m`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			identity, err := spiffeid.FromString(id)
			switch {
			case err != nil:
				return usageError{fmt.Errorf("--identity %q: %w", id, err)}
			case identity.Path() == "":
				return usageError{fmt.Errorf("--identity %q: it needs a path, such as spiffe://%s/vm/web-1", id, cfg.TrustDomain.Name())}
			case identity.TrustDomain() != cfg.TrustDomain:
				return usageError{fmt.Errorf("--identity %q: this authority's trust domain is %s", id, cfg.TrustDomain.Name())}
			case identity.Path() == "/chancery", strings.HasPrefix(identity.Path(), "/chancery/"):
				return usageError{fmt.Errorf("--identity %q: /chancery and paths below it are the authority's own; choose another", id)}
			case ttl < time.Second || ttl > maxTokenTTL:
				return usageError{fmt.Errorf("--ttl %s: it is from 1s to %s", ttl, maxTokenTTL)}
			case !cfg.Authentication.JoinTokens.Enabled:
				return usageError{fmt.Errorf("authentication.join_tokens.enabled is false in %s: the server would refuse the token", path)}
			}
			roll, err := openLedger(cmd.Context(), cfg, accessShare, rollTools{logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			defer roll.Close() // what it wrote is durable
			token, public, hash, err := tokenreview.NewJoinToken(rand.Reader)
			if err != nil {
				return err
			}
			now := time.Now()
			expires := now.Add(ttl + time.Second - 1).Truncate(time.Second) // whole seconds, and not less than was asked for
			if err := roll.AddToken(cmd.Context(), ledger.JoinToken{Hash: hash, ID: public, Identity: identity.String(), Created: now, Expires: expires}); err != nil {
				return fmt.Errorf("storing the token: %w", err)
			}
			return inFormat(output, func() error {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), token.Reveal()); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.ErrOrStderr(), "join token %s for %s, good once, until %s\n", public, identity, expires.UTC().Format(time.RFC3339))
				return err
			}, func() error {
				return writeJSON(cmd.OutOrStdout(), struct {
					Token    string    `json:"token"`
					ID       string    `json:"id"`
					Identity string    `json:"identity"`
					Expires  time.Time `json:"expires"`
				}{token.Reveal(), public, identity.String(), expires.UTC()})
			})
		},
	}
	configFlag(cmd, &path)
	outputFlag(cmd, &output)
	cmd.Flags().StringVar(&id, "identity", "", "SPIFFE ID that the token's holder gets (required)")
	cmd.Flags().DurationVar(&ttl, "ttl", 15*time.Minute, "how long the token is good, at most 168h")
	required(cmd, "identity")
	return cmd
}
