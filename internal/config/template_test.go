package config

import (
	"bytes"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

func TestRenderDefaultWithoutOverridesIsTheManual(t *testing.T) {
	got, err := RenderDefault(nil)
	if err != nil || !bytes.Equal(got, defaultYAML) {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestRenderDefaultIsDefaultsPlusOverrides(t *testing.T) {
	overrides := map[string]any{
		"trust_domain":                         spiffeid.RequireTrustDomainFromString("true"),
		"listen.grpc":                          "127.0.0.1:0",
		"server.dns_names":                     []string{"ca.example.org", "no"},
		"server.ip_addresses":                  []netip.Addr{netip.MustParseAddr("2001:db8::1")},
		"server.certificate_lifetime":          72 * time.Hour,
		"limits.in_flight":                     7,
		"log.level":                            slog.LevelWarn,
		"signer.local.key":                     `a "b" # c: d\e`,
		"authentication.kubernetes.enabled":    true,
		"authentication.kubernetes.audiences":  []any{"1", "null"},
		"authentication.kubernetes.kubeconfig": "~",
		"istio.lifetime_jitter":                0.125,
		"keys.algorithms":                      []string{"ed25519"},
		"profiles.serving.max_lifetime":        "30d",
		"rules": []Rule{{Name: "a", Profile: "serving", Identity: "spiffe://true/*",
			DNS: []string{"*.a"}, IP: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("10.0.0.1/32")}}},
	}
	text, err := RenderDefault(overrides)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("chancery.yaml", text, "")
	if err != nil {
		t.Fatal(err)
	}
	want := values(Default())
	maps.Copy(want, map[string]string{
		"trust_domain": `"true"`, "listen.grpc": `"127.0.0.1:0"`, "server.dns_names": "[ca.example.org, no]",
		"server.ip_addresses": `["2001:db8::1"]`, "server.certificate_lifetime": "3d", "limits.in_flight": "7", "log.level": "warn",
		"signer.local.key": `"a \"b\" # c: d\\e"`, "authentication.kubernetes.enabled": "true",
		"authentication.kubernetes.audiences": `["1", "null"]`, "authentication.kubernetes.kubeconfig": `"~"`, "istio.lifetime_jitter": "0.125",
		"keys.algorithms": "[ed25519]", "profiles.serving.max_lifetime": "30d",
		"rules[0].name": "a", "rules[0].profile": "serving", "rules[0].identity": `"spiffe://true/*"`, "rules[0].dns": `["*.a"]`, "rules[0].ip": "[10.0.0.0/8, 10.0.0.1]",
		"rules[0].effect": `""`, "rules[0].profiles": "[]", "rules[0].when": `""`, "rules[0].max_lifetime": "0s",
	})
	delete(want, "rules")
	if !reflect.DeepEqual(values(got), want) {
		t.Errorf("got  %v\nwant %v", values(got), want)
	}
	for _, s := range got.Settings() {
		if s.Origin == "default" {
			t.Errorf("%s is not in the text", s.Path)
		}
	}
	if c, d := bytes.Count(text, []byte("#")), bytes.Count(defaultYAML, []byte("#")); c != d+1 { // the one in the key's path
		t.Errorf("%d comment signs, the manual has %d", c, d)
	}
}

func TestRenderDefaultRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		path  string
		value any
		want  string
	}{
		"unknown path":     {"listen.grcp", "x", `listen.grcp: no such setting in default.yaml; did you mean "listen.grpc"?`},
		"a section":        {"listen", "x", "listen: no such setting"},
		"a new profile":    {"profiles.x.names", "dns", "profiles.x.names: no such setting"},
		"no value":         {"trust_domain", nil, "trust_domain: has no value"},
		"an unknown type":  {"trust_domain", struct{}{}, "trust_domain: a value of type struct {} cannot be written"},
		"a nested unknown": {"server.dns_names", []any{struct{}{}}, "server.dns_names: a value of type struct {} cannot be written"},
		"a wrong value":    {"listen.grpc", "x", "listen.grpc: \"x\" is not host:port"},
		"a wrong type":     {"limits.in_flight", "5", "limits.in_flight: needs a whole number"},
		"a line break":     {"ledger.sqlite.path", "a\nlog: {level: debug}", "ledger.sqlite.path: must not contain control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := RenderDefault(map[string]any{test.path: test.value})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q\n%s", err, test.want, text)
			}
		})
	}
}

// The manual is also the template: RenderDefault replaces a value up to the end of its line, and columns are bytes only in ASCII.
func TestManualCanBeEdited(t *testing.T) {
	for i, line := range strings.Split(string(defaultYAML), "\n") {
		if strings.ContainsFunc(line, func(r rune) bool { return r > '~' }) {
			t.Errorf("line %d is not ASCII: %s", i+1, line)
		}
		if len(line) > 140 {
			t.Errorf("line %d is longer than 140", i+1)
		}
		if key, comment, ok := strings.Cut(line, "#"); ok && strings.TrimSpace(key) != "" && strings.Count(key, `"`)%2 == 0 {
			t.Errorf("line %d has a comment behind the value: %s", i+1, comment)
		}
	}
}

// Every setting is in default.yaml; that default.yaml has no other is the strict loader's work.
func TestManualIsComplete(t *testing.T) {
	c := Default()
	for _, s := range c.Settings() {
		if _, ok := c.origins[s.Path]; !ok {
			t.Errorf("%s is not in default.yaml", s.Path)
		}
	}
	var text []string
	for _, e := range manual(t) {
		if e.comment == "" {
			t.Errorf("%s has no comment", e.path)
		}
		if e.path == "rules" {
			text = strings.Fields(e.comment)
		}
	}
	for _, f := range fields(reflect.TypeFor[Rule]()) { // the empty list shows no key, its comment has to
		if !slices.Contains(text, f.key) {
			t.Errorf("the comment of rules says nothing of %s", f.key)
		}
	}
}
