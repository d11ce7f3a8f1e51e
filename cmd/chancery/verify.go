package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/internal/inspect"
)

type verifyOptions struct {
	roots, intermediates, crls []string
	host, uri, spiffeID        string
	usages, policies           []string
	conforming, requireCRLs    bool
	policyInputs               chain.PolicyOptions
	pathLength                 int
	allowBER                   bool
	at                         moment
	colour                     colour
	output                     format
}

func verifyCommand() *cobra.Command {
	var options verifyOptions
	cmd := &cobra.Command{
		Use:   "verify --root FILE FILE",
		Short: "Verify a certificate up to a trust anchor that you give, and say why it is not valid",
		Long: `Builds a path from the first certificate of FILE to one of the trust anchors and validates
it by RFC 5280 section 6: signatures, validity, constraints, usages, policies, and
revocation where lists are given; then each certificate below the anchor needs one. The other certificates of FILE, and those of
--intermediate, are used where they fit; nothing but --root is trusted, and nothing is
fetched. Files may be PEM, DER, SPIFFE bundles or Kubernetes' CertificateSigningRequest
objects; one of them may be "-", standard input.

What no conforming CA issues is refused, except where certificates in use break the rule;
the output names those, and --conforming refuses them, too. A damaged certificate is never
part of a path; a damaged text or revocation list is a refusal.

Exit codes: 0 valid; 1 not valid, as the output says; 2 usage. The JSON form is described
in docs/inspect.md.`,
		Example: `  chancery verify --root root.pem chain.pem
  chancery verify --root bundle.json --spiffe-id spiffe://example.org/web --usage server chain.pem
  chancery verify --root root.pem --intermediate issuing.pem --crl root.crl --crl issuing.crl leaf.pem`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("require-crls") {
				options.requireCRLs = len(options.crls) > 0
			}
			return options.run(cmd, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&options.roots, "root", nil, "file of trust anchors (required, repeatable)")
	flags.StringArrayVar(&options.intermediates, "intermediate", nil, "file of certificates that the path may go through (repeatable)")
	flags.StringArrayVar(&options.crls, "crl", nil, "file of revocation lists (repeatable); every certificate below the anchor needs one, and must not be revoked")
	flags.BoolVar(&options.requireCRLs, "require-crls", false, "refuse a path of which no list given is about a certificate; set with --crl unless =false is said")
	flags.StringVar(&options.host, "host", "", "DNS name or IP address that the certificate has to be for")
	flags.StringVar(&options.uri, "uri", "", "URI that the certificate has to be for")
	flags.StringVar(&options.spiffeID, "spiffe-id", "", "SPIFFE ID that the certificate has to be for")
	flags.StringSliceVar(&options.usages, "usage", nil, "what the path has to allow (repeatable): "+strings.Join(usageNames(), ", "))
	flags.StringSliceVar(&options.policies, "policy", nil, "object identifier of a certificate policy that is acceptable (repeatable); left out, any is")
	flags.BoolVar(&options.policyInputs.Explicit, "explicit-policy", false, "refuse a path that is valid for no acceptable policy")
	flags.BoolVar(&options.policyInputs.InhibitMapping, "inhibit-policy-mapping", false, "do not map policies to others")
	flags.BoolVar(&options.policyInputs.InhibitAny, "inhibit-any-policy", false, "do not take anyPolicy for a policy")
	flags.IntVar(&options.pathLength, "path-length", -1, "most intermediates, self-issued ones aside, that a path may have; -1 for 8")
	flags.BoolVar(&options.conforming, "conforming", false, "refuse also those breaches of rules for issuers that certificates in use have")
	atFlag(cmd, &options.at)
	outputFlag(cmd, &options.output)
	colourFlag(cmd, &options.colour)
	allowBERFlag(cmd, &options.allowBER)
	return cmd
}

var verifyUsages = map[string]x509.ExtKeyUsage{
	"server": x509.ExtKeyUsageServerAuth, "client": x509.ExtKeyUsageClientAuth, "code": x509.ExtKeyUsageCodeSigning,
	"email": x509.ExtKeyUsageEmailProtection, "time": x509.ExtKeyUsageTimeStamping, "ocsp": x509.ExtKeyUsageOCSPSigning,
}

func usageNames() []string { return slices.Sorted(maps.Keys(verifyUsages)) }

func (o *verifyOptions) run(cmd *cobra.Command, path string) error {
	if len(o.roots) == 0 {
		return usageError{errors.New("--root is needed: a file of the trust anchors that a path may end at")}
	}
	if err := onceStdin(append(slices.Concat(o.roots, o.intermediates, o.crls), path)); err != nil {
		return err
	}
	with, err := o.verification()
	if err != nil {
		return usageError{err}
	}
	v := &verdict{Schema: "chancery.verify.v1", At: with.At.UTC(), Unused: []unused{}, lists: len(o.crls) > 0}
	if err := o.verify(cmd, path, with, v); err != nil {
		return err
	}
	err = inFormat(o.output, func() error {
		page := o.colour.page(cmd)
		v.write(page)
		return page.Err()
	}, func() error { return inspect.EncodeJSON(cmd.OutOrStdout(), v) })
	if err == nil && !v.Valid {
		return told
	}
	return err
}

// onceStdin refuses standard input for more than one file.
func onceStdin(paths []string) error {
	if first := slices.Index(paths, "-"); first >= 0 && slices.Contains(paths[first+1:], "-") {
		return usageError{errors.New("standard input can be one of the files only")}
	}
	return nil
}

// verification returns what the flags ask for.
func (o *verifyOptions) verification() (with chain.VerifyOptions, err error) {
	with = chain.VerifyOptions{At: o.at.orNow().Truncate(time.Second), Host: o.host, URI: o.uri, Conforming: o.conforming, RequireCRLs: o.requireCRLs,
		Policies: o.policyInputs}
	for _, name := range o.usages {
		usage, ok := verifyUsages[name]
		if !ok {
			return with, fmt.Errorf("--usage %q: it is one of %s", name, strings.Join(usageNames(), ", "))
		}
		with.Usages = append(with.Usages, usage)
	}
	if o.pathLength >= 0 {
		with.PathLength = &o.pathLength
	}
	for _, name := range o.policies {
		policy, err := x509.ParseOID(name)
		if err != nil {
			return with, fmt.Errorf("--policy %q is not an object identifier as 2.23.140.1.2.1", name)
		}
		with.Policies.Acceptable = append(with.Policies.Acceptable, policy)
	}
	if o.spiffeID != "" {
		if with.SPIFFEID, err = spiffeid.FromString(o.spiffeID); err != nil {
			return with, fmt.Errorf("--spiffe-id %q: %w", o.spiffeID, err)
		}
	}
	return with, nil
}

// verify reads the files and fills in the verdict. An error is one of the command; that something is not valid is none.
func (o *verifyOptions) verify(cmd *cobra.Command, path string, with chain.VerifyOptions, v *verdict) error {
	files := verifyFiles{cmd: cmd, options: inspect.Options{At: with.At, AllowBER: o.allowBER}, verdict: v}
	leaf := files.read(path, true)
	for _, name := range o.roots {
		with.Roots = append(with.Roots, files.read(name, false)...)
	}
	for _, name := range o.intermediates {
		with.Intermediates = append(with.Intermediates, files.read(name, false)...)
	}
	for _, name := range o.crls {
		with.CRLs = append(with.CRLs, files.lists(name)...)
	}
	switch {
	case files.err != nil:
		return files.err
	case v.Failure != nil:
		return nil
	case len(with.Roots) == 0:
		v.Failure = &failure{Rule: "a path ends at a trust anchor", Detail: "none of the certificates given by --root can be used"}
		return nil
	}
	with.Intermediates = append(with.Intermediates, leaf[1:]...)
	found, err := chain.Verify(leaf[0], with)
	var broken *chain.Error
	switch {
	case errors.As(err, &broken):
		v.Failure = &failure{Position: broken.Position, Subject: broken.Subject, Rule: broken.Rule, Detail: broken.Detail}
		if broken.Position == 1 {
			v.Failure.For = inspect.Describe(leaf[0], with.At).For()
		}
	case err != nil:
		v.Failure = &failure{Rule: "the work is bounded", Detail: err.Error()}
	default:
		v.accept(found, with.At)
	}
	return nil
}

// verifyFiles reads the files of a verification. The first error ends it.
type verifyFiles struct {
	cmd     *cobra.Command
	options inspect.Options
	verdict *verdict
	err     error
}

// read returns the certificates of a file that may be part of a path. The first of the file to verify has to be one of them.
func (f *verifyFiles) read(path string, first bool) []*x509.Certificate {
	if f.err != nil || f.verdict.Failure != nil {
		return nil
	}
	input, err := readInput(path, f.cmd.InOrStdin())
	if err != nil {
		f.err = err
		return nil
	}
	report := inspect.Read(input, f.options)
	items := report.Certificates()
	for _, finding := range report.Findings {
		if finding.Severity == inspect.Refused {
			f.verdict.Failure = &failure{File: path, Rule: finding.Section, Detail: finding.Detail}
			return nil
		}
	}
	if len(items) == 0 {
		f.verdict.Failure = &failure{File: path, Rule: "RFC 7468 §5", Detail: "there is no certificate in it"}
		return nil
	}
	var out []*x509.Certificate
	for n, item := range items {
		if certificate := item.X509(); certificate != nil {
			out = append(out, certificate)
			continue
		}
		finding := firstRefusal(item.Findings)
		if first && n == 0 {
			f.verdict.Failure = &failure{File: path, Position: 1, Rule: finding.Section, Detail: finding.Detail}
			return nil
		}
		f.verdict.Unused = append(f.verdict.Unused, unused{File: path, Position: n + 1, Detail: finding.String()})
	}
	return out
}

// lists returns the revocation lists of a file. One that cannot be read could say that a certificate is revoked, so it is a refusal.
func (f *verifyFiles) lists(path string) []*chain.CRL {
	if f.err != nil || f.verdict.Failure != nil {
		return nil
	}
	input, err := readInput(path, f.cmd.InOrStdin())
	if err != nil {
		f.err = err
		return nil
	}
	lists, err := chain.ParseCRLs(input)
	if err != nil {
		f.verdict.Failure = &failure{File: path, Rule: "RFC 5280 §5", Detail: err.Error()}
	}
	return lists
}

func firstRefusal(findings []inspect.Finding) inspect.Finding {
	for _, finding := range findings {
		if finding.Severity == inspect.Refused {
			return finding
		}
	}
	return inspect.Finding{Section: "RFC 5280 §4.1", Detail: "it cannot be read"}
}
