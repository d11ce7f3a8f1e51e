package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/ledger/sqlite"
	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/internal/config"
	"github.com/chancery-ca/chancery/signer/keystore"
	"github.com/chancery-ca/chancery/signer/local"
)

type initOptions struct {
	dir         string
	trustDomain string
	dns         []string
	ips         []string
	listenGRPC  string
	listenHTTP  string
}

// The files of a new authority, below its directory. They are what default.yaml names.
const (
	configFile    = "chancery.yaml"
	ledgerFile    = "chancery.db"
	pkiDirectory  = "pki"
	rootFile      = "pki/roots.pem"
	rootKeyFile   = "pki/root-key.pem"
	issuerFile    = "pki/issuer.pem"
	issuerKeyFile = "pki/issuer-key.pem"
)

func initCommand() *cobra.Command {
	var options initOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a new authority: keys, certificates, configuration, ledger",
		Long: `Makes a root (P-256, 10 years), an issuing intermediate (P-256, 1 year), a
configuration file that states every default, and an empty ledger, and prints the
root's SHA-256 fingerprint. An existing authority is never touched.`,
		Example: `  chancery init --dir /etc/chancery --trust-domain example.org --dns ca.example.org --ip 192.0.2.1`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return initialise(cmd, options) },
	}
	flags := cmd.Flags()
	flags.StringVar(&options.dir, "dir", "", "directory to make the authority in (required)")
	flags.StringVar(&options.trustDomain, "trust-domain", "cluster.local", "trust domain of every identity that the authority certifies")
	flags.StringSliceVar(&options.dns, "dns", nil, "DNS name under which clients reach the server (repeatable; default localhost if no --ip is given)")
	flags.StringSliceVar(&options.ips, "ip", nil, "IP address under which clients reach the server (repeatable; default 127.0.0.1 and ::1 if neither is given)")
	flags.StringVar(&options.listenGRPC, "listen-grpc", "", "address of the gRPC server (default :8443)")
	flags.StringVar(&options.listenHTTP, "listen-http", "", "address of the metrics and health server (default :9090)")
	required(cmd, "dir")
	return cmd
}

func initialise(cmd *cobra.Command, options initOptions) error {
	trustDomain, err := spiffeid.TrustDomainFromString(options.trustDomain)
	if err != nil {
		return usageError{fmt.Errorf("--trust-domain %q: %w", options.trustDomain, err)}
	}
	text, err := initialConfig(options, trustDomain)
	if err != nil {
		return usageError{err}
	}
	if err := refuseExisting(options.dir); err != nil {
		return refusedError{err}
	}
	if err := os.MkdirAll(options.dir, 0o700); err != nil {
		return refusedError{fmt.Errorf("making the directory: %w", err)}
	}
	hierarchy, err := local.Create(trustDomain, time.Now())
	if err != nil {
		return err
	}
	// everything is made in a folder beside its place and moved when it is whole, the configuration last: without it nothing starts
	staging, err := os.MkdirTemp(options.dir, ".init-")
	if err != nil {
		return refusedError{fmt.Errorf("making the authority: %w", err)}
	}
	defer os.RemoveAll(staging) // what cannot be removed is named .init- and holds nothing that was promised
	if err := writeAuthority(cmd, staging, hierarchy, text); err != nil {
		return err
	}
	for _, name := range []string{pkiDirectory, ledgerFile, configFile} {
		if err := os.Rename(filepath.Join(staging, name), filepath.Join(options.dir, name)); err != nil {
			return refusedError{fmt.Errorf("putting %s in its place: %w", name, err)}
		}
	}
	return reportAuthority(cmd, options.dir, trustDomain, hierarchy)
}

func initialConfig(options initOptions, trustDomain spiffeid.TrustDomain) ([]byte, error) {
	changes := map[string]any{"trust_domain": trustDomain.Name()}
	if len(options.dns)+len(options.ips) > 0 {
		dns, ips := options.dns, options.ips
		if dns == nil {
			dns = []string{}
		}
		if ips == nil {
			ips = []string{}
		}
		for _, ip := range ips {
			if _, err := netip.ParseAddr(ip); err != nil {
				return nil, fmt.Errorf("--ip %q is not an IP address", ip)
			}
		}
		changes["server.dns_names"], changes["server.ip_addresses"] = dns, ips
	}
	if options.listenGRPC != "" {
		changes["listen.grpc"] = options.listenGRPC
	}
	if options.listenHTTP != "" {
		changes["listen.http"] = options.listenHTTP
	}
	text, err := config.RenderDefault(changes)
	if problems, ok := errors.AsType[*config.Error](err); ok {
		return nil, flagProblems(problems)
	}
	return text, err
}

// initFlags are the flags of init by the settings that they make.
var initFlags = map[string]string{
	"trust_domain": "--trust-domain", "server.dns_names": "--dns", "server.ip_addresses": "--ip", "listen.grpc": "--listen-grpc", "listen.http": "--listen-http",
}

// flagProblems says what is wrong with a configuration in terms of the flags that it was made of. Nobody has seen the file.
func flagProblems(found *config.Error) error {
	var all []error
	for _, problem := range found.Problems {
		setting, _, _ := strings.Cut(problem.Path, "[")
		name, ok := initFlags[setting]
		if !ok {
			name = setting
		}
		all = append(all, fmt.Errorf("%s: %s", name, problem.Message))
	}
	return errors.Join(all...)
}

func refuseExisting(dir string) error {
	for _, name := range []string{configFile, ledgerFile, pkiDirectory} {
		path := filepath.Join(dir, name)
		_, err := os.Lstat(path)
		switch {
		case err == nil:
			return fmt.Errorf("%s exists: an authority is there already, and it was not touched; choose another --dir", path)
		case !errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("looking for an authority in %s: %w", dir, err)
		}
	}
	return nil
}

func writeAuthority(cmd *cobra.Command, dir string, hierarchy *local.Hierarchy, text []byte) error {
	if err := os.Mkdir(filepath.Join(dir, pkiDirectory), 0o700); err != nil {
		return refusedError{err}
	}
	err := errors.Join(
		keystore.Create(filepath.Join(dir, rootKeyFile), hierarchy.RootKey),
		keystore.Create(filepath.Join(dir, issuerKeyFile), hierarchy.IssuerKey),
		writeFile(filepath.Join(dir, rootFile), pem.Encode("CERTIFICATE", hierarchy.Root.Raw), 0o644),
		writeFile(filepath.Join(dir, issuerFile), pem.Encode("CERTIFICATE", hierarchy.Issuer.Raw), 0o644),
		writeFile(filepath.Join(dir, configFile), text, 0o644),
	)
	if err != nil {
		return refusedError{err}
	}
	roll, err := sqlite.Open(cmd.Context(), sqlite.Config{Path: filepath.Join(dir, ledgerFile)})
	if err != nil {
		return err
	}
	return roll.Close()
}

func reportAuthority(cmd *cobra.Command, dir string, trustDomain spiffeid.TrustDomain, hierarchy *local.Hierarchy) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), `Made an authority for the trust domain %s in %s.

  root    %s, until %s
  issuer  %s, until %s
  config  %s

The root's SHA-256 fingerprint, by which clients recognise the authority:

  %x

The root's key is needed again only to sign the next issuer. Move %s to a safe place.

Next, start the server:

  chancery serve --config %s
`, trustDomain.Name(), dir,
		hierarchy.Root.Subject.CommonName, hierarchy.Root.NotAfter.Format(time.DateOnly),
		hierarchy.Issuer.Subject.CommonName, hierarchy.Issuer.NotAfter.Format(time.DateOnly),
		filepath.Join(dir, configFile), sha256.Sum256(hierarchy.Root.Raw), filepath.Join(dir, rootKeyFile), filepath.Join(dir, configFile))
	return err
}
