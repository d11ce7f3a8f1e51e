package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/pem"
)

func certsCommand() *cobra.Command {
	cmd := groupCommand("certs", "Look into the ledger: what was issued, to whom, and what came of it")
	cmd.AddCommand(certsListCommand(), certsShowCommand())
	return cmd
}

type listOptions struct {
	config, identity, state      string
	since, until, validAt, after string
	issuerKey                    string
	limit                        int
	revoked                      bool
	output                       format
}

func certsListCommand() *cobra.Command {
	var options listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List issuances, newest first",
		Example: `  chancery certs list --identity spiffe://example.org/ns/shop/sa/cart
  chancery certs list --state reserved
  chancery certs list --since 24h --valid-at now`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := options.query(time.Now())
			if err != nil {
				return usageError{err}
			}
			return withLedger(cmd.Context(), options.config, func(roll ledger.Ledger) error {
				entries, err := roll.Find(cmd.Context(), query)
				if err != nil {
					return err
				}
				return inFormat(options.output, func() error { return listText(cmd.OutOrStdout(), entries, query) }, func() error {
					records := make([]record, 0, len(entries))
					for _, entry := range entries {
						records = append(records, recordOf(entry))
					}
					return writeJSON(cmd.OutOrStdout(), records)
				})
			})
		},
	}
	configFlag(cmd, &options.config)
	outputFlag(cmd, &options.output)
	flags := cmd.Flags()
	flags.StringVar(&options.identity, "identity", "", "only of this SPIFFE ID")
	flags.StringVar(&options.state, "state", "", "only in this state: reserved, issued or failed")
	flags.StringVar(&options.since, "since", "", "only those asked for at or after: RFC 3339 time, or a duration back from now")
	flags.StringVar(&options.until, "until", "", "only those asked for before: RFC 3339 time, or a duration back from now")
	flags.StringVar(&options.validAt, "valid-at", "", "only certificates valid at: RFC 3339 time, or now")
	flags.StringVar(&options.after, "after", "", "go on after this serial, the last of the page before")
	flags.BoolVar(&options.revoked, "revoked", false, "only revoked certificates")
	flags.StringVar(&options.issuerKey, "issuer-key", "", "only certificates of this issuer: the hexadecimal key identifier that certs show prints")
	flags.IntVar(&options.limit, "limit", 100, "at most this many, up to 1000")
	return cmd
}

func (o listOptions) query(now time.Time) (query ledger.Query, err error) {
	query = ledger.Query{Identity: o.identity, State: ledger.State(o.state), Revoked: o.revoked, Limit: o.limit}
	switch query.State {
	case "", ledger.Reserved, ledger.Issued, ledger.Failed:
	default:
		return query, fmt.Errorf("--state %q: it is reserved, issued or failed", o.state)
	}
	if o.identity != "" {
		if _, err := spiffeid.FromString(o.identity); err != nil {
			return query, fmt.Errorf("--identity %q: %w", o.identity, err)
		}
	}
	if o.limit < 1 || o.limit > 1000 {
		return query, fmt.Errorf("--limit %d: it is from 1 to 1000", o.limit)
	}
	if query.Since, err = parseTime("--since", o.since, now); err != nil {
		return query, err
	}
	if query.Until, err = parseTime("--until", o.until, now); err != nil {
		return query, err
	}
	if query.ValidAt, err = parseTime("--valid-at", o.validAt, now); err != nil {
		return query, err
	}
	if o.issuerKey != "" {
		if query.IssuerKeyID, err = hex.DecodeString(strings.ReplaceAll(o.issuerKey, ":", "")); err != nil || len(query.IssuerKeyID) == 0 {
			return query, fmt.Errorf("--issuer-key %q: it is a hexadecimal key identifier", o.issuerKey)
		}
	}
	if o.after != "" {
		if query.After, err = ledger.ParseSerial(o.after); err != nil {
			return query, fmt.Errorf("--after: %w", err)
		}
	}
	return query, nil
}

// parseTime reads an RFC 3339 time, "now", or a duration back from now.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	switch text {
	case "":
		return time.Time{}, nil
	case "now":
		return now, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if back, err := time.ParseDuration(text); err == nil && back >= 0 {
		return now.Add(-back), nil
	}
	return time.Time{}, fmt.Errorf("%s %q: it is a time such as 2026-01-31T12:00:00Z, \"now\", or a duration back from now such as 24h", flag, text)
}

func certsShowCommand() *cobra.Command {
	var path string
	var output format
	cmd := &cobra.Command{
		Use:   "show SERIAL",
		Short: "Show one issuance, with its certificate",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			serial, err := ledger.ParseSerial(args[0])
			if err != nil {
				return usageError{err}
			}
			return withLedger(cmd.Context(), path, func(roll ledger.Ledger) error {
				entry, err := roll.Get(cmd.Context(), serial)
				if errors.Is(err, ledger.ErrNotFound) {
					return refusedError{fmt.Errorf("serial %s is not in the ledger: this authority never reserved it", serial)}
				}
				if err != nil {
					return err
				}
				return inFormat(output, func() error { return showText(cmd.OutOrStdout(), entry) }, func() error {
					return writeJSON(cmd.OutOrStdout(), recordOf(entry))
				})
			})
		},
	}
	configFlag(cmd, &path)
	outputFlag(cmd, &output)
	return cmd
}

func withLedger(ctx context.Context, path string, use func(ledger.Ledger) error) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	roll, err := openLedger(ctx, cfg, accessRead, rollTools{logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return errors.Join(use(roll), roll.Close())
}

// record is the JSON form of a ledger entry. Its field names are stable.
type record struct {
	Serial      string        `json:"serial"`
	State       ledger.State  `json:"state"`
	Identity    string        `json:"identity"`
	Profile     string        `json:"profile"`
	Rule        string        `json:"rule"`
	Names       []string      `json:"names"`
	Origin      ledger.Origin `json:"origin"`
	KeySHA256   string        `json:"key_sha256"`
	Created     time.Time     `json:"created"`
	Settled     *time.Time    `json:"settled,omitempty"`
	NotBefore   *time.Time    `json:"not_before,omitempty"`
	NotAfter    *time.Time    `json:"not_after,omitempty"`
	IssuerKeyID string        `json:"issuer_key_id,omitempty"`
	Reason      string        `json:"reason,omitempty"`
	Certificate string        `json:"certificate,omitempty"`
	Revoked     *revoked      `json:"revoked,omitempty"`
}

// revoked is the JSON form of a revocation.
type revoked struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
}

func recordOf(entry ledger.Entry) record {
	out := record{
		Serial: entry.Serial.String(), State: entry.State, Identity: entry.Identity, Profile: entry.Profile, Rule: entry.Rule, Names: entry.Names,
		Origin: entry.Origin, KeySHA256: fmt.Sprintf("%x", entry.KeyID), Created: entry.Created.UTC(), Settled: optional(entry.Settled),
		NotBefore: optional(entry.Outcome.NotBefore), NotAfter: optional(entry.Outcome.NotAfter), Reason: entry.Outcome.Reason,
	}
	if r := entry.Revoked; r != nil {
		out.Revoked = &revoked{At: r.At.UTC(), Reason: r.Reason.String(), By: r.By}
	}
	if len(entry.Outcome.IssuerKeyID) > 0 {
		out.IssuerKeyID = fmt.Sprintf("%x", entry.Outcome.IssuerKeyID)
	}
	if len(entry.Outcome.Certificate) > 0 {
		out.Certificate = string(pem.Encode("CERTIFICATE", entry.Outcome.Certificate))
	}
	return out
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func listText(w io.Writer, entries []ledger.Entry, query ledger.Query) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, err := fmt.Fprintln(table, "SERIAL\tSTATE\tIDENTITY\tPROFILE\tCREATED\tNOT AFTER")
	for _, entry := range entries {
		notAfter := "-"
		if !entry.Outcome.NotAfter.IsZero() {
			notAfter = entry.Outcome.NotAfter.UTC().Format(time.RFC3339)
		}
		state := string(entry.State)
		if entry.Revoked != nil {
			state = "revoked"
		}
		_, rowErr := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", entry.Serial, state, entry.Identity, entry.Profile,
			entry.Created.UTC().Format(time.RFC3339), notAfter)
		err = errors.Join(err, rowErr)
	}
	if err = errors.Join(err, table.Flush()); err != nil {
		return err
	}
	if len(entries) == query.Limit {
		_, err = fmt.Fprintf(w, "there may be more: chancery certs list --after %s\n", entries[len(entries)-1].Serial)
	}
	return err
}

func showText(w io.Writer, entry ledger.Entry) error {
	r := recordOf(entry)
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(table, "%s\t%s\n", name, value) // a tabwriter keeps its error for Flush
		}
	}
	when := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.Format(time.RFC3339)
	}
	row("serial", r.Serial)
	row("state", string(r.State))
	row("reason", r.Reason)
	if r.Revoked != nil {
		row("revoked", fmt.Sprintf("%s, %s, by %s", r.Revoked.At.Format(time.RFC3339), r.Revoked.Reason, printable(r.Revoked.By)))
	}
	row("identity", r.Identity)
	row("names", strings.Join(r.Names, ", "))
	row("profile", r.Profile)
	row("rule", r.Rule)
	row("created", when(&r.Created))
	row("settled", when(r.Settled))
	row("not before", when(r.NotBefore))
	row("not after", when(r.NotAfter))
	row("method", r.Origin.Method)
	row("credential", r.Origin.CredentialID)
	row("door", r.Origin.Door)
	row("remote", r.Origin.Remote)
	row("cluster", r.Origin.Cluster)
	row("namespace", r.Origin.Namespace)
	row("account", uid(r.Origin.Account, r.Origin.AccountUID))
	row("pod", uid(r.Origin.Pod, r.Origin.PodUID))
	row("node", uid(r.Origin.Node, r.Origin.NodeUID))
	row("issuer", printable(r.Origin.Issuer))
	row("subject", printable(r.Origin.Subject))
	row("renews", r.Origin.Renews)
	row("first method", r.Origin.FirstMethod)
	row("key sha256", r.KeySHA256)
	row("issuer key", r.IssuerKeyID)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, r.Certificate)
	return err
}

func uid(name, id string) string {
	if id == "" {
		return name
	}
	return fmt.Sprintf("%s (uid %s)", name, id)
}
