package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/internal/config"
)

// explainFlags are the question of "chancery policy explain".
type explainFlags struct {
	config, caller, id, kubernetes string
	request                        caseRequest
	addresses                      []string
	lifetime                       time.Duration
	output                         format
}

func policyExplainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say which rule decides about a request, and what every other rule says",
		Long: `Asks the rules of the configuration about one caller and request, exactly as the
server would, and then every rule that the server would not have asked any more. The
caller is a file with a principal, as in a case (docs/policy.md), or --id, with
--kubernetes for a service account. Without names the caller's own identity is meant.
The rule for node proxies looks at running pods; it is not asked here.
Exit code 0: the request is allowed; 1: it is denied; 2: something is wrong.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	configFlag(cmd, &f.config)
	outputFlag(cmd, &f.output)
	flags := cmd.Flags()
	flags.StringVar(&f.caller, "caller", "", "file that describes the caller; - for standard input")
	flags.StringVar(&f.id, "id", "", "the caller's SPIFFE ID, or its path")
	flags.StringVar(&f.kubernetes, "kubernetes", "", "the caller's service account, as NAMESPACE/NAME")
	flags.StringVar(&f.request.Profile, "profile", "", "profile (default workload)")
	flags.StringSliceVar(&f.request.URIs, "uri", nil, "SPIFFE ID to ask for")
	flags.StringSliceVar(&f.request.DNSNames, "dns", nil, "DNS name to ask for")
	flags.StringSliceVar(&f.addresses, "ip", nil, "IP address to ask for")
	flags.DurationVar(&f.lifetime, "lifetime", 0, "lifetime to ask for (default that of the profile)")
	flags.StringVar(&f.request.Door, "door", "", "how the request comes: chancery or istio (default chancery)")
	flags.StringVar(&f.request.Key, "key", "", "kind of key, as in keys.algorithms (default ecdsa-p256)")
	cmd.MarkFlagsOneRequired("caller", "id")
	cmd.MarkFlagsMutuallyExclusive("caller", "id")
	cmd.MarkFlagsMutuallyExclusive("caller", "kubernetes")
	return cmd
}

func (f *explainFlags) run(cmd *cobra.Command) error {
	cfg, err := loadConfig(f.config)
	if err != nil {
		return err
	}
	desk, err := newPolicyDesk(cfg)
	if err != nil {
		return err
	}
	caller, err := f.principal(cmd)
	if err != nil {
		return usageError{err}
	}
	principal, err := caller.principal(cfg.TrustDomain)
	if err != nil {
		return usageError{err}
	}
	f.request.Lifetime = f.lifetime
	for _, text := range f.addresses {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return usageError{fmt.Errorf("--ip: %w", err)}
		}
		f.request.IPAddresses = append(f.request.IPAddresses, address)
	}
	request, err := desk.request(principal, f.request)
	explained := explanation{Principal: principal.ID.String(), Method: string(principal.Method), Profile: request.Profile, Names: request.Names.List()}
	if err != nil { // the rules are not asked
		explained.Answer = newAnswer(request, authorize.Verdict{}, err)
	} else {
		e := desk.rules.Explain(cmd.Context(), request)
		explained.Answer, explained.Rules = newAnswer(request, e.Verdict, e.Err), newExplainedRules(e.Outcomes)
	}
	out := cmd.OutOrStdout()
	err = inFormat(f.output, func() error { return explained.write(out) }, func() error { return writeJSON(out, explained) })
	if err == nil && explained.Answer.Decision == decisionDeny {
		return refusedError{errors.New("the request is denied")}
	}
	return err
}

// principal returns the caller that the flags describe.
func (f *explainFlags) principal(cmd *cobra.Command) (casePrincipal, error) {
	if f.caller == "" {
		p := casePrincipal{ID: f.id}
		if f.kubernetes != "" {
			namespace, name, ok := strings.Cut(f.kubernetes, "/")
			if !ok || namespace == "" || name == "" {
				return p, fmt.Errorf("--kubernetes: %q is not NAMESPACE/NAME", f.kubernetes)
			}
			p.Kubernetes = caseKubernetes{Namespace: namespace, ServiceAccount: name}
		}
		return p, nil
	}
	data, err := readCaseFile(cmd, f.caller)
	if err != nil {
		return casePrincipal{}, err
	}
	var file struct {
		Principal casePrincipal `yaml:"principal"`
	}
	_, err = config.Decode(f.caller, data, &file)
	return file.Principal, err
}

// explanation is the answer to a question and what every rule said.
type explanation struct {
	Principal string          `json:"principal"`
	Method    string          `json:"method"`
	Profile   string          `json:"profile"`
	Names     []string        `json:"names"`
	Answer    answer          `json:"answer"`
	Rules     []explainedRule `json:"rules"`
}

type explainedRule struct {
	Rule    string `json:"rule"`
	Effect  string `json:"effect"`
	Answer  string `json:"answer"` // allow, deny, no, failed or profile
	Decided bool   `json:"decided"`
	Detail  string `json:"detail,omitempty"`
}

func newExplainedRules(outcomes []authorize.Outcome) []explainedRule {
	rules := make([]explainedRule, 0, len(outcomes))
	for _, o := range outcomes {
		rules = append(rules, explainedRule{Rule: o.Rule, Effect: string(o.Effect), Answer: string(o.Answer), Decided: o.Decided, Detail: o.Detail})
	}
	return rules
}

func (e explanation) write(out io.Writer) error {
	a := e.Answer
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s) asks for %s under profile %s\n", printable(e.Principal), printable(e.Method), printable(strings.Join(e.Names, ", ")), printable(e.Profile))
	switch {
	case a.Decision == decisionAllow:
		fmt.Fprintf(&b, "allow, by rule %s, for at most %s\n", a.Rule, a.Lifetime)
	case a.Rule != "":
		fmt.Fprintf(&b, "deny, by rule %s (%s)\n  %s\n", a.Rule, a.Reason, printable(a.Message))
	default:
		fmt.Fprintf(&b, "deny (%s)\n  %s\n", a.Reason, printable(a.Message))
	}
	if len(e.Rules) > 0 {
		var cells strings.Builder
		table := tabwriter.NewWriter(&cells, 0, 0, 2, ' ', 0)
		fmt.Fprint(table, "\n\tRULE\tEFFECT\tANSWER\tDETAIL\n")
		for _, r := range e.Rules {
			mark := ""
			if r.Decided {
				mark = "*"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", mark, r.Rule, r.Effect, ruleWords(r.Answer), printable(r.Detail))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for line := range strings.Lines(cells.String()) {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// ruleWords are the answers of rules as a reader takes them at once.
func ruleWords(answer string) string {
	switch authorize.Answer(answer) {
	case authorize.NotHere:
		return "not under this profile"
	case authorize.Allows, authorize.Denies, authorize.No, authorize.Failed:
		return answer
	default:
		return answer
	}
}
