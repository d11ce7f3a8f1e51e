package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chancery-ca/chancery/api/client"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/internal/regularfile"
	"github.com/chancery-ca/chancery/signer/keystore"
)

type requestOptions struct {
	server, serverName   string
	root, fingerprint    string
	tokenFile, joinToken string
	certificate, key     string
	keepKey              bool
	out, profile         string
	output               format
	uris, dns, ips       []string
	lifetime, timeout    time.Duration
}

func requestCommand() *cobra.Command {
	var options requestOptions
	cmd := &cobra.Command{
		Use:   "request",
		Short: "Get a certificate for this workload",
		Long: `Makes a P-256 key, or keeps the one it has with --keep-key, asks the server for a certificate, checks the answer and writes
three files to --out: key.pem (mode 0600), chain.pem (leaf first) and bundle.pem (trust
anchors). The key never leaves this machine. Files of an earlier request are replaced, as
one set, only when the new certificate is there.`,
		Example: `  chancery request --server ca.example.org:8443 --root root.pem --token-file /var/run/secrets/tokens/chancery --out /run/certs
  chancery request --server ca.example.org:8443 --fingerprint 5e3a… --join-token - --out /etc/web/tls < token
  chancery request --server ca.example.org:8443 --root /etc/web/tls/bundle.pem --certificate /etc/web/tls/chain.pem --key /etc/web/tls/key.pem --out /etc/web/tls`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return options.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&options.server, "server", "", "the server, as host:port (required)")
	flags.StringVar(&options.serverName, "server-name", "", "name that the server's certificate has to be for, if not the host of --server")
	flags.StringVar(&options.root, "root", "", "PEM file of the trust anchors")
	flags.StringVar(&options.fingerprint, "fingerprint", "", "SHA-256 fingerprint of the root, as chancery init printed it")
	flags.StringVar(&options.tokenFile, "token-file", "", "file with a service-account token")
	flags.StringVar(&options.joinToken, "join-token", "", "file with a join token, \"-\" for standard input, or the token itself, which other users of the machine can then see")
	flags.StringVar(&options.certificate, "certificate", "", "PEM file of a certificate from this server and its chain, to renew it")
	flags.StringVar(&options.key, "key", "", "PEM file of that certificate's private key")
	flags.BoolVar(&options.keepKey, "keep-key", false, "ask for a certificate for the key of --key instead of a new one")
	flags.StringVar(&options.out, "out", "", "directory for key.pem, chain.pem and bundle.pem (required)")
	flags.StringVar(&options.profile, "profile", "", "profile to issue under (default workload)")
	flags.StringSliceVar(&options.uris, "uri", nil, "URI name wanted (repeatable; default the caller's own SPIFFE ID)")
	flags.StringSliceVar(&options.dns, "dns", nil, "DNS name wanted (repeatable)")
	flags.StringSliceVar(&options.ips, "ip", nil, "IP address wanted (repeatable)")
	flags.DurationVar(&options.lifetime, "lifetime", 0, "lifetime wanted (default the profile's)")
	flags.DurationVar(&options.timeout, "timeout", 15*time.Second, "how long to wait for the server")
	outputFlag(cmd, &options.output)
	cmd.MarkFlagsOneRequired("root", "fingerprint")
	cmd.MarkFlagsMutuallyExclusive("root", "fingerprint")
	cmd.MarkFlagsOneRequired("token-file", "join-token", "certificate")
	cmd.MarkFlagsMutuallyExclusive("token-file", "join-token", "certificate")
	cmd.MarkFlagsRequiredTogether("certificate", "key")
	required(cmd, "server", "out")
	return cmd
}

func (o requestOptions) run(cmd *cobra.Command) error {
	if err := client.CheckAddress(o.server); err != nil {
		return usageError{fmt.Errorf("--server: %w", err)}
	}
	switch {
	case o.timeout <= 0:
		return usageError{fmt.Errorf("--timeout %s: it has to be positive", o.timeout)}
	case o.lifetime < 0:
		return usageError{fmt.Errorf("--lifetime %s: it has to be positive, or left out for the profile's default", o.lifetime)}
	case o.keepKey && o.key == "":
		return usageError{errors.New("--keep-key needs --certificate and --key")}
	}
	token, held, err := o.credential(cmd)
	if err != nil {
		return err
	}
	// before the token is shown: one that is good once must not pay for a certificate that cannot be kept
	if err := prepareSet(o.out, setNames); err != nil {
		return usageError{fmt.Errorf("--out: %w", err)}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	roots, err := o.roots(ctx)
	if err != nil {
		return explain(o.server, err)
	}
	connection, err := client.Dial(client.Config{
		Address: o.server, Roots: roots, ServerName: o.serverName, Certificate: func() (*tls.Certificate, error) { return held, nil },
	})
	if err != nil {
		return usageError{err}
	}
	defer connection.Close()
	key, err := o.newKey(held)
	if err != nil {
		return err
	}
	certificate, err := connection.Issue(ctx, client.Request{
		Key: key, Token: token, Profile: o.profile, URIs: o.uris, DNSNames: o.dns, IPAddresses: o.ips, Lifetime: o.lifetime,
	})
	if err != nil {
		return explain(o.server, err)
	}
	if err := o.write(key, certificate); err != nil {
		return err
	}
	return o.report(cmd, certificate)
}

// credential returns what is shown to the server: a token, or a certificate with its key.
func (o requestOptions) credential(cmd *cobra.Command) (token string, held *tls.Certificate, err error) {
	if o.certificate == "" {
		token, err = o.token(cmd)
		return token, nil, err
	}
	text, err := regularfile.Read(o.certificate, maxChainFile)
	if err != nil {
		return "", nil, usageError{fmt.Errorf("--certificate: %w", err)}
	}
	chain, err := chain.ParsePEM(text)
	if err != nil {
		return "", nil, usageError{fmt.Errorf("--certificate %s: %w", o.certificate, err)}
	}
	key, err := keystore.LoadFile(o.key)
	if err != nil {
		return "", nil, usageError{fmt.Errorf("--key: %w", err)}
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(chain[0].PublicKey) {
		return "", nil, usageError{fmt.Errorf("--key %s is not the key of the first certificate in %s", o.key, o.certificate)}
	}
	held = &tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, certificate := range chain {
		held.Certificate = append(held.Certificate, certificate.Raw)
	}
	return "", held, nil
}

const maxChainFile = 1 << 20

// newKey returns the key that the certificate is to be for.
func (o requestOptions) newKey(held *tls.Certificate) (crypto.Signer, error) {
	if o.keepKey {
		if key, ok := held.PrivateKey.(crypto.Signer); ok {
			return key, nil
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key: %w", err)
	}
	return key, nil
}

// maxToken bounds what is sent as a token; the server refuses more than this as well.
const maxToken = 8 << 10

func (o requestOptions) token(cmd *cobra.Command) (string, error) {
	source := o.tokenFile
	if source == "" {
		source = o.joinToken
		if strings.HasPrefix(source, joinTokenPrefix) {
			return source, nil
		}
	}
	data, err := readInput(source, cmd.InOrStdin())
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	switch {
	case token == "":
		return "", usageError{fmt.Errorf("%s holds no token", source)}
	case len(token) > maxToken:
		return "", usageError{fmt.Errorf("%s holds %d bytes; a token has at most %d", source, len(token), maxToken)}
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", usageError{fmt.Errorf("%s does not hold one token: there are blanks or other characters in it that no token has", source)}
	}
	return token, nil
}

// joinTokenPrefix tells a join token from the name of a file.
const joinTokenPrefix = "cjt_"

func (o requestOptions) roots(ctx context.Context) ([]*x509.Certificate, error) {
	if o.root == "" {
		fingerprint, err := client.ParseFingerprint(o.fingerprint)
		if err != nil {
			return nil, usageError{fmt.Errorf("--fingerprint: %w", err)}
		}
		root, err := client.FetchRoot(ctx, o.server, fingerprint)
		if errors.Is(err, client.ErrFingerprint) {
			return nil, refusedError{fmt.Errorf("%w; nothing was sent to it", err)}
		}
		if err != nil {
			return nil, err
		}
		return []*x509.Certificate{root}, nil
	}
	text, err := os.ReadFile(o.root)
	if err != nil {
		return nil, usageError{fmt.Errorf("--root: %w", err)}
	}
	roots, err := chain.ParsePEM(text)
	if err != nil {
		return nil, usageError{fmt.Errorf("--root %s: %w", o.root, err)}
	}
	return roots, nil
}

// setNames are the files that a request writes.
var setNames = []string{"key.pem", "chain.pem", "bundle.pem"}

// write puts the three files in place as one set.
func (o requestOptions) write(key crypto.Signer, certificate *client.Certificate) error {
	text, err := keystore.Encode(key)
	if err != nil {
		return err
	}
	return writeSet(o.out, []setFile{
		{setNames[0], text, 0o600},
		{setNames[1], encode(certificate.Chain), 0o644},
		{setNames[2], encode(certificate.Bundle.Anchors), 0o644},
	})
}

func encode(certificates []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, certificate := range certificates {
		out.Write(pem.Encode("CERTIFICATE", certificate.Raw))
	}
	return out.Bytes()
}

func (o requestOptions) report(cmd *cobra.Command, certificate *client.Certificate) error {
	leaf := certificate.Chain[0]
	var names []string
	for _, uri := range leaf.URIs {
		names = append(names, "URI:"+uri.String())
	}
	for _, name := range leaf.DNSNames {
		names = append(names, "DNS:"+name)
	}
	for _, ip := range leaf.IPAddresses {
		names = append(names, "IP:"+ip.String())
	}
	return inFormat(o.output, func() error {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "certificate %s\n  names       %s\n  not after   %s\n  renew at    %s\n  bundle      %s, sequence %d\n  files       %s\n",
			serialOf(leaf), printable(strings.Join(names, ", ")), stamp(leaf.NotAfter), stamp(certificate.RenewAt), printable(certificate.Bundle.TrustDomain),
			certificate.Bundle.Sequence, filepath.Join(o.out, "{key,chain,bundle}.pem"))
		if certificate.Clamped != "" && err == nil {
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "the lifetime is shorter than asked for: %s\n", printable(certificate.Clamped))
		}
		return err
	}, func() error {
		return writeJSON(cmd.OutOrStdout(), struct {
			Serial         string    `json:"serial"`
			Names          []string  `json:"names"`
			NotBefore      time.Time `json:"not_before"`
			NotAfter       time.Time `json:"not_after"`
			RenewAt        time.Time `json:"renew_at"`
			TrustDomain    string    `json:"trust_domain"`
			BundleSequence uint64    `json:"bundle_sequence"`
			Clamped        string    `json:"lifetime_clamp,omitempty"`
			Key            string    `json:"key"`
			Chain          string    `json:"chain"`
			Bundle         string    `json:"bundle"`
		}{
			serialOf(leaf), names, leaf.NotBefore, leaf.NotAfter, certificate.RenewAt, certificate.Bundle.TrustDomain,
			certificate.Bundle.Sequence, certificate.Clamped, filepath.Join(o.out, "key.pem"), filepath.Join(o.out, "chain.pem"), filepath.Join(o.out, "bundle.pem"),
		})
	})
}

// serialOf writes a serial number as the ledger does.
func serialOf(certificate *x509.Certificate) string {
	number, err := ledger.SerialFromInt(certificate.SerialNumber)
	if err != nil {
		return fmt.Sprintf("%x", certificate.SerialNumber)
	}
	return number.String()
}

// explain makes a sentence of what a server or a connection said.
func explain(server string, err error) error {
	if s, ok := status.FromError(err); ok && s.Code() != codes.Unknown {
		return &serverError{server: server, status: s}
	}
	if errors.Is(err, client.ErrServer) || errors.Is(err, client.ErrAnswer) {
		return refusedError{fmt.Errorf("%s: %w", server, err)}
	}
	return err
}

// serverError is a gRPC status with the server's name in front.
type serverError struct {
	server string
	status *status.Status
}

func (e *serverError) Error() string {
	return fmt.Sprintf("%s: %s (%s)", e.server, printable(e.status.Message()), e.status.Code())
}

// GRPCStatus lets the table of exit codes see the code.
func (e *serverError) GRPCStatus() *status.Status { return e.status }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
