package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Each case is the default configuration with one thing changed, and the exact problems that it has to bring.
func TestRefuses(t *testing.T) {
	rule := func(s string) string {
		return "rules: [{name: a, profile: serving, identity: spiffe://cluster.local/a, " + s + "}]"
	}
	cluster := func(entries string) string {
		return "authentication: {kubernetes: {enabled: true, clusters: [" + entries + "]}}"
	}
	oidc := func(change string) string { // the last of two equal keys would be refused as such, so one replaces another
		entry := "name: ci, issuer: \"https://a\", audiences: [a], identity: x"
		key, _, _ := strings.Cut(change, ":")
		for _, pair := range strings.Split(entry, ", ") {
			if strings.HasPrefix(pair, key+":") {
				entry = strings.Replace(entry, pair, change, 1)
			}
		}
		return "authentication: {oidc: [{" + entry + "}]}"
	}
	for name, test := range map[string]struct {
		text string
		want string // problems, without "chancery.yaml:", joined by newlines; a final … stands for any rest
	}{
		"unknown key":                {"\nserver:\n  dns_nams: [a]", `3: server.dns_nams: unknown key; did you mean "dns_names"?`},
		"singular key":               {"authentication:\n  kubernetes:\n    audience: a", `3: authentication.kubernetes.audience: unknown key; did you mean "audiences"?`},
		"camel case key":             {"trustDomain: a", `1: trustDomain: unknown key; did you mean "trust_domain"?`},
		"key like no other":          {"zzz: 1", "1: zzz: unknown key"},
		"key of another case":        {"Log: {level: debug}", `1: Log: unknown key; did you mean "log"?`},
		"odd key":                    {"\"a\\nb\": 1", `1: "a\nb": unknown key`},
		"list as key":                {"[a]: 1", "1: a key has to be a plain name"},
		"duplicate key":              {"log: {level: info}\nlog: {level: info}", "2: log: duplicate key; it is in line 1 already"},
		"duplicate key inside":       {"log:\n  level: info\n  level: info", "3: log.level: duplicate key; it is in line 2 already"},
		"not YAML":                   {"a: [", "…"},
		"not UTF-8":                  {"trust_domain: \"\xff\"", "…"},
		"a list":                     {"- a", "1: needs key: value pairs"},
		"a scalar":                   {"hello", "1: needs key: value pairs"},
		"two documents":              {"log: {level: info}\n---\nlog: {level: info}", "2: a second document; the configuration is one"},
		"an alias":                   {"server: &s {dns_names: [a]}\nlog: *s", "1: anchors (&s) are not supported\n2: aliases (*s) are not supported; write the value out"},
		"a merge key":                {"log: {<<: {level: info}}", "1: log.<<: merge keys are not supported"},
		"a tag":                      {"trust_domain: !!str x", "1: tags (!!str) are not supported"},
		"an own tag":                 {"trust_domain: !x y", "1: tags (!x) are not supported"},
		"no value":                   {"trust_domain:", "1: trust_domain: has no value; give it one or remove the key"},
		"no section":                 {"log: ~", "1: log: has no value; give it one or remove the key"},
		"no list":                    {"rules:", "1: rules: has no value; give it one or remove the key ([] is the empty list)"},
		"no profile":                 {"profiles: {serving: }", "1: profiles.serving: has no value; give it one or remove the key"},
		"scalar for a section":       {"log: info", "1: log: needs key: value pairs"},
		"section for a scalar":       {"trust_domain: {a: b}", "1: trust_domain: needs a single value"},
		"scalar for a list":          {"server: {dns_names: a}", "1: server.dns_names: needs a list, such as [a, b]"},
		"scalar for a rule":          {"rules: [a]", "1: rules[0]: needs key: value pairs"},
		"number for a string":        {"trust_domain: 12", `1: trust_domain: needs a string; write "12"`},
		"date for a string":          {"trust_domain: 2001-01-01", `1: trust_domain: needs a string; write "2001-01-01"`},
		"control characters":         {`ledger: {sqlite: {path: "a\0b"}}`, "1: ledger.sqlite.path: must not contain control characters"},
		"yes for a bool":             {"istio: {enabled: yes}", "1: istio.enabled: needs true or false"},
		"string for a bool":          {`istio: {enabled: "true"}`, "1: istio.enabled: needs true or false"},
		"string for a number":        {`limits: {in_flight: "1"}`, "1: limits.in_flight: needs a whole number"},
		"fraction for a number":      {"limits: {in_flight: 1.5}", "1: limits.in_flight: needs a whole number"},
		"octal number":               {"limits: {in_flight: 010}", "1: limits.in_flight: needs a whole number, in decimal"},
		"hexadecimal number":         {"limits: {in_flight: 0x10}", "1: limits.in_flight: needs a whole number, in decimal"},
		"number out of range":        {"limits: {in_flight: 99999999999999999999}", "1: limits.in_flight: needs a whole number…"},
		"not a number":               {"istio: {lifetime_jitter: .nan}", "1: istio.lifetime_jitter: needs a number"},
		"duration without unit":      {"server: {request_timeout: 10}", "1: server.request_timeout: needs a duration with a unit, such as 10s, 5m, 24h or 90d"},
		"list for a duration":        {"server: {request_timeout: [1s]}", "1: server.request_timeout: needs a single value"},
		"duration out of range":      {"server: {certificate_lifetime: 106752d}", "1: server.certificate_lifetime: needs a duration…"},
		"unknown enum":               {"log: {format: jsn}", `1: log.format: "jsn" is not one of json, text; did you mean "json"?`},
		"unknown level":              {"log: {level: INFO}", `1: log.level: "INFO" is not one of debug, info, warn, error`},
		"unknown driver":             {"signer: {driver: vault}", `1: signer.driver: "vault" is not one of local, cfssl`},
		"empty trust domain":         {`trust_domain: ""`, "1: trust_domain: trust domain is missing"},
		"bad trust domain":           {"trust_domain: Example.org", "1: trust_domain: trust domain characters are limited to lowercase letters, numbers, dots, dashes, and underscores"},
		"trust domain as URI":        {"trust_domain: spiffe://a", `1: trust_domain: needs the name alone…`},
		"address without port":       {"listen: {grpc: localhost}", `1: listen.grpc: "localhost" is not host:port…`},
		"named port":                 {`listen: {grpc: ":https"}`, `1: listen.grpc: "https" is not a port from 0 to 65535`},
		"port too high":              {`listen: {grpc: ":65536"}`, `1: listen.grpc: "65536" is not a port from 0 to 65535`},
		"bad host":                   {`listen: {grpc: "a b:1"}`, `1: listen.grpc: "a b" is neither an IP address nor a DNS name`},
		"same address":               {`listen: {grpc: ":9090"}`, "1: listen.grpc: listen.grpc (:9090) and listen.http (:9090) cannot both be listened on"},
		"same port on all":           {`istio: {listen: "127.0.0.1:8443"}`, "1: istio.listen: listen.grpc (:8443) and istio.listen (127.0.0.1:8443) cannot both be listened on"},
		"bad server name":            {"server: {dns_names: [a_b]}", `1: server.dns_names[0]: "a_b" is not a DNS name…`},
		"wildcard server name":       {`server: {dns_names: ["*.a"]}`, `1: server.dns_names[0]: "*.a" is not a DNS name…`},
		"address as server name":     {"server: {dns_names: [10.0.0.1]}", `1: server.dns_names[0]: "10.0.0.1" is not a DNS name…`},
		"server name twice":          {"server: {dns_names: [a, a]}", "1: server.dns_names[1]: a is in the list already, as entry 0"},
		"wildcard address":           {`server: {ip_addresses: ["::"]}`, "1: server.ip_addresses[0]: :: is not the address of a server"},
		"zoned address":              {`server: {ip_addresses: ["fe80::1%eth0"]}`, `1: server.ip_addresses[0]: "fe80::1%eth0" is not an IP address`},
		"nameless server":            {"server: {dns_names: [], ip_addresses: []}", "1: server.dns_names: needs a name, or…"},
		"no lifetime":                {"server: {certificate_lifetime: 0s}", "1: server.certificate_lifetime: 0s is not from 5m to 90d"},
		"negative timeout":           {"server: {request_timeout: -1s}", "1: server.request_timeout: -1s is not from 100ms to 5m"},
		"limit of zero":              {"limits: {connections: 0}", "1: limits.connections: 0 is not from 1 to 1000000"},
		"empty path":                 {`signer: {local: {key: ""}}`, "1: signer.local.key: is empty"},
		"cluster without a name":     {"authentication: {kubernetes: {cluster: \"\"}}", "1: authentication.kubernetes.cluster: \"\" is not…"},
		"unknown mode":               {"authentication: {kubernetes: {mode: online}}", `1: authentication.kubernetes.mode: "online" is not one of tokenreview, offline+liveness, offline…`},
		"offline without an issuer":  {"authentication: {kubernetes: {mode: offline}}", "1: authentication.kubernetes.mode: mode offline needs issuer…"},
		"live without an issuer":     {"authentication: {kubernetes: {mode: offline+liveness}}", "1: authentication.kubernetes.mode: mode offline+liveness needs issuer…"},
		"keys over http":             {"authentication: {kubernetes: {jwks_url: \"http://a/keys\"}}", `1: authentication.kubernetes.jwks_url: "http://a/keys" is not an https URL…`},
		"keys with a password":       {"authentication: {kubernetes: {jwks_url: \"https://u:p@a/keys\"}}", "1: authentication.kubernetes.jwks_url: …"},
		"keys from two places":       {"authentication: {kubernetes: {jwks_url: \"https://a/keys\", jwks_file: b}}", "1: authentication.kubernetes.jwks_file: set jwks_url or jwks_file, not both"},
		"unknown algorithm":          {"authentication: {kubernetes: {algorithms: [HS256]}}", `1: authentication.kubernetes.algorithms[0]: "HS256" is not one of RS256, ES256, ES384, ES512…`},
		"no token algorithm":         {"authentication: {kubernetes: {algorithms: []}}", "1: authentication.kubernetes.algorithms: needs at least 1"},
		"proxy without a namespace":  {"authentication: {kubernetes: {node_proxies: [ztunnel]}}", `1: authentication.kubernetes.node_proxies[0]: "ztunnel" is not NAMESPACE/NAME of a service account`},
		"proxies without a view":     {"authentication: {kubernetes: {mode: offline, issuer: a, node_proxies: [a/b]}}", "1: authentication.kubernetes.node_proxies: needs a view…"},
		"identity without account":   {"authentication: {kubernetes: {spiffe_id: \"/ns/{namespace}\"}}", "1: authentication.kubernetes.spiffe_id: identity path \"/ns/{namespace}\" lacks the segment {service_account}…"},
		"identity of the authority":  {"authentication: {kubernetes: {spiffe_id: \"/{namespace}/{service_account}\"}}", "1: authentication.kubernetes.spiffe_id: …"},
		"stale for too long":         {"authentication: {kubernetes: {max_staleness: 2h}}", "1: authentication.kubernetes.max_staleness: 2h is not from 10s to 1h"},
		"clusters, none accepted":    {"authentication: {kubernetes: {clusters: [{name: b, mode: tokenreview, issuer: x, kubeconfig: k}]}}", "1: authentication.kubernetes.clusters: needs kubernetes.enabled: true…"},
		"cluster of the same name":   {cluster("{name: local, mode: tokenreview, issuer: x, kubeconfig: k}"), `1: authentication.kubernetes.clusters[0].name: "local" is that of the first cluster already`},
		"cluster with a taken id":    {cluster("{name: b, mode: tokenreview, issuer: x, kubeconfig: k, cluster_ids: [Kubernetes]}"), `1: authentication.kubernetes.clusters[0].cluster_ids[0]: "Kubernetes" is that of the first cluster already`},
		"cluster without an issuer":  {cluster("{name: b, mode: tokenreview, issuer: \"\", kubeconfig: k}"), "1: authentication.kubernetes.clusters[0].issuer: is empty; it tells…"},
		"cluster without kubeconfig": {cluster("{name: b, mode: tokenreview, issuer: x}"), "1: authentication.kubernetes.clusters[0].kubeconfig: is empty; only mode offline can do without"},
		"clusters of one issuer":     {cluster("{name: b, mode: offline, issuer: x}, {name: c, mode: offline, issuer: x}"), `1: authentication.kubernetes.clusters[1].issuer: "x" is that of authentication.kubernetes.clusters[0] already`},
		"ID tokens over http":        {oidc("issuer: \"http://a\""), `1: authentication.oidc[0].issuer: "http://a" is not an https URL…`},
		"ID tokens for nobody":       {oidc("audiences: []"), "1: authentication.oidc[0].audiences: needs at least 1"},
		"ID tokens of no identity":   {oidc("identity: \" \""), "1: authentication.oidc[0].identity: is empty"},
		"ID tokens of a cluster":     {"authentication: {kubernetes: {issuer: \"https://a\"}, oidc: [{name: ci, issuer: \"https://a\", audiences: [a], identity: x}]}", `1: authentication.oidc[0].issuer: "https://a" is the issuer of a cluster already…`},
		"certificates of nothing":    {"authentication: {certificates: {origins: []}}", "1: authentication.certificates.origins: needs at least 1"},
		"certificates of a server":   {"authentication: {certificates: {origins: [server]}}", `1: authentication.certificates.origins[0]: "server" is not one of join_token, oidc, kubernetes…`},
		"a grace too long":           {"authentication: {certificates: {grace: 31d}}", "1: authentication.certificates.grace: 31d is not from 0s to 30d"},
		"a negative queue":           {"limits: {queue: -1}", "1: limits.queue: -1 is not from 0 to 1000000"},
		"a negative rate":            {"limits: {identity_rate: -0.5}", "1: limits.identity_rate: -0.5 is not from 0 to 100000"},
		"no burst":                   {"limits: {node_burst: 0}", "1: limits.node_burst: 0 is not from 1 to 100000"},
		"nobody can authenticate":    {"authentication: {join_tokens: {enabled: false}}", "1: authentication: enable join_tokens, oidc or kubernetes…"},
		"long cache":                 {"authentication: {kubernetes: {cache_ttl: 11s}}", "1: authentication.kubernetes.cache_ttl: 11s is not from 1ms to 10s"},
		"no audience":                {"authentication: {kubernetes: {audiences: []}}", "1: authentication.kubernetes.audiences: needs at least 1"},
		"empty audience":             {`authentication: {kubernetes: {audiences: [""]}}`, `1: authentication.kubernetes.audiences[0]: "" is not 1 to 255…`},
		"burst below qps":            {"authentication: {kubernetes: {qps: 500}}", "1: authentication.kubernetes.qps: burst (400) must be at least qps (500)"},
		"bad cluster":                {`authentication: {kubernetes: {cluster: "a.b"}}`, `1: authentication.kubernetes.cluster: "a.b" is not 1 to 63…`},
		"much jitter":                {"istio: {lifetime_jitter: 0.21}", "1: istio.lifetime_jitter: 0.21 is not from 0 to 0.2"},
		"negative jitter":            {"istio: {lifetime_jitter: -0.1}", "1: istio.lifetime_jitter: -0.1 is not from 0 to 0.2"},
		"no algorithm":               {"keys: {algorithms: []}", "1: keys.algorithms: needs at least 1"},
		"weak algorithm":             {"keys: {algorithms: [rsa-1024]}", `1: keys.algorithms[0]: "rsa-1024" is not one of…`},
		"profile without keys":       {"profiles: {x: {names: dns, usages: [server_auth], min_lifetime: 1h}}", "1: profiles.x.default_lifetime: missing\n1: profiles.x.max_lifetime: missing"},
		"bad profile name":           {"profiles: {a.b: {names: dns}}", "1: profiles.a.b: a name is 1 to 63…"},
		"usage of another kind":      {"profiles: {serving: {usages: [code_signing]}}", `1: profiles.serving.usages[0]: "code_signing" is not one of server_auth, client_auth`},
		"maximum below default":      {"profiles: {workload: {max_lifetime: 30m}}", "1: profiles.workload.max_lifetime: profiles.workload.default_lifetime (1h) is longer than profiles.workload.max_lifetime (30m)"},
		"minimum above default":      {"profiles: {workload: {min_lifetime: 2h}}", "1: profiles.workload.min_lifetime: profiles.workload.min_lifetime (2h) is longer than profiles.workload.default_lifetime (1h)"},
		"long lifetime":              {"profiles: {serving: {max_lifetime: 826d}}", "1: profiles.serving.max_lifetime: 826d is not from 1s to 825d"},
		"rule without keys":          {"rules: [{name: a}]", "1: rules[0].identity: missing\n1: rules[0].profile: missing"},
		"rule of no form":            {"rules: [{name: a, effect: deny}]", "1: rules[0].effect: goes with when, which this rule lacks\n1: rules[0].identity: missing\n1: rules[0].profile: missing"},
		"rule of both forms":         {rule("dns: [a], when: b"), "1: rules[0].dns: does not go with when; a rule has either, and the expression can say the same\n1: rules[0].identity: does not go with when; a rule has either, and the expression can say the same\n1: rules[0].profile: does not go with when; write profiles: [serving]"},
		"condition for one profile":  {"rules: [{name: a, profile: serving, when: b}]", "1: rules[0].profile: does not go with when; write profiles: [serving]"},
		"condition of spaces":        {"rules: [{name: a, when: ' '}]", "1: rules[0].when: is empty"},
		"condition of no text":       {"rules: [{name: a, when: true}]", `1: rules[0].when: needs a string; write "true"`},
		"condition with a control":   {`rules: [{name: a, when: "a\x07"}]`, "1: rules[0].when: must not contain control characters"},
		"another effect":             {"rules: [{name: a, when: b, effect: Deny}]", `1: rules[0].effect: "Deny" is not one of allow, deny…`},
		"condition for no profile":   {"rules: [{name: a, when: b, profiles: [x]}]", `1: rules[0].profiles[0]: there is no profile "x"`},
		"denial with a lifetime":     {"rules: [{name: a, when: b, effect: deny, max_lifetime: 1h}]", "1: rules[0].max_lifetime: caps what a rule allows; this one denies"},
		"cap below the minimum":      {"rules: [{name: a, when: b, max_lifetime: 1m}]", "1: rules[0].max_lifetime: 1m is below the minimum of profile serving, 5m; choose more, or profiles with shorter lifetimes"},
		"cap that is negative":       {"rules: [{name: a, when: b, max_lifetime: -1m}]", "1: rules[0].max_lifetime: -1m is not from 1s to 825d"},
		"rule that grants nothing":   {rule("dns: []"), "1: rules[0]: needs dns or ip; it grants nothing"},
		"rule for no profile":        {strings.Replace(rule("dns: [a]"), "serving", "nope", 1), `1: rules[0].profile: there is no profile "nope"`},
		"rule for SPIFFE IDs":        {strings.Replace(rule("dns: [a]"), "serving", "workload", 1), "1: rules[0].profile: profile workload is for SPIFFE IDs; a rule grants names under a profile with names: dns"},
		"SPIFFE ID with one usage":   {"profiles: {workload: {usages: [client_auth]}}", "1: profiles.workload.usages: certificates with SPIFFE IDs need both server_auth and client_auth (X.509-SVID §4.4)"},
		"SPIFFE ID by names alone":   {"profiles: {serving: {names: spiffe}}", "1: profiles.serving.names: certificates with SPIFFE IDs need both server_auth and client_auth (X.509-SVID §4.4)"},
		"rule named like our own":    {strings.Replace(rule("dns: [a]"), "name: a", "name: self", 1), `1: rules[0].name: "self" is the name of a rule that is built in…`},
		"rule names twice":           {rule("dns: [a]}, {name: a, profile: serving, identity: spiffe://cluster.local/b, dns: [b]"), `1: rules[1].name: "a" is the name of rules[0] already`},
		"rule for another domain":    {strings.Replace(rule("dns: [a]"), "cluster.local", "example.org", 1), `1: rules[0].identity: "spiffe://example.org/a" is not in the trust domain cluster.local`},
		"rule for the trust domain":  {strings.Replace(rule("dns: [a]"), "local/a", "local", 1), `1: rules[0].identity: "spiffe://cluster.local" is nobody's identity…`},
		"wildcard inside an ID":      {strings.Replace(rule("dns: [a]"), "local/a", "local/*/a", 1), `1: rules[0].identity: "spiffe://cluster.local/*/a" is not a SPIFFE ID…`},
		"prefix of a segment":        {strings.Replace(rule("dns: [a]"), "local/a", "local/a*", 1), `1: rules[0].identity: "spiffe://cluster.local/a*" is not a SPIFFE ID…`},
		"wildcard inside a name":     {rule(`dns: ["a.*.b"]`), `1: rules[0].dns[0]: "a.*.b": a wildcard is *. before a name, such as *.example.org`},
		"bare wildcard":              {rule(`dns: ["*"]`), `1: rules[0].dns[0]: "*": a wildcard is…`},
		"upper-case pattern":         {rule("dns: [A.b]"), `1: rules[0].dns[0]: "A.b" is not a DNS name…`},
		"network with host bits":     {rule("ip: [10.0.0.1/8]"), `1: rules[0].ip[0]: "10.0.0.1/8" has bits after its length; the network is 10.0.0.0/8`},
		"IPv4 network as IPv6":       {rule(`ip: ["::ffff:10.0.0.0/104"]`), `1: rules[0].ip[0]: "::ffff:10.0.0.0/104": write the IPv4 network`},
		"several problems": {"zzz: 1\nlog: {level: x, format: y}\nlimits: {in_flight: 0}",
			"1: zzz: unknown key\n2: log.format: \"y\" is not one of json, text\n2: log.level: \"x\" is not one of debug, info, warn, error\n3: limits.in_flight: 0 is not from 1 to 100000"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("chancery.yaml", []byte(test.text), "/etc/chancery")
			var e *Error
			if c != nil || !errors.As(err, &e) {
				t.Fatalf("accepted, or another error: %v", err)
			}
			got := strings.ReplaceAll(err.Error(), "chancery.yaml:", "")
			if start, any := strings.CutSuffix(test.want, "…"); any && strings.HasPrefix(got, start) && !strings.Contains(got, "\n") {
				return
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestErrorsStayShort(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "key%d: 1\n", i)
	}
	text.WriteString("trust_domain: \"" + strings.Repeat("é", 100_000) + "\"\n")
	_, err := Parse("chancery.yaml", []byte(text.String()), "")
	if err == nil {
		t.Fatal("accepted")
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != maxShown+1 || lines[maxShown] != "and 951 more problems" {
		t.Errorf("%d lines, the last: %s", len(lines), lines[len(lines)-1])
	}
	_, err = Parse("chancery.yaml", []byte("log: {format: \""+strings.Repeat("é", 100_000)+"\"}"), "")
	if err == nil || len(err.Error()) > 600 {
		t.Errorf("%d bytes", len(fmt.Sprint(err)))
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]string{
		"90d": "90d", "1d": "24h", "24h": "24h", "48h": "2d", "1d12h": "36h", "60m": "1h", "90s": "1m30s", "1h30m": "1h30m", "500ms": "500ms", "0s": "0s", "1h0m5s": "1h0m5s", "106751d": "106751d",
	} {
		d, err := parseDuration(text)
		if err != nil || formatDuration(d) != want {
			t.Errorf("%s: %s, %v; want %s", text, formatDuration(d), err, want)
		}
		if again, err := parseDuration(formatDuration(d)); err != nil || again != d {
			t.Errorf("%s: written as %s, read as %v, %v", text, formatDuration(d), again, err)
		}
	}
	for _, text := range []string{"", "d", "0", "1", "1.5d", "-1d", "+1d", "1d-1h", "1d 1h", "1dd", "1w", "106752d", "106751d24h"} {
		if d, err := parseDuration(text); err == nil {
			t.Errorf("%q is read as %s", text, d)
		}
	}
}
