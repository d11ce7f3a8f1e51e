package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// values returns the settings without their origins.
func values(c *Config) map[string]string {
	all := make(map[string]string)
	for _, s := range c.Settings() {
		all[s.Path] = inline(s.Value)
	}
	return all
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("chancery.yaml", []byte(text), "/etc/chancery")
	if err != nil {
		t.Fatalf("parsing %q: %v", text, err)
	}
	return c
}

func TestDefaultsAreThoseOfTheEmptyFile(t *testing.T) {
	c := Default()
	for _, empty := range []string{"", "# nothing\n", "---\n", "{}\n"} {
		got, err := Parse("x", []byte(empty), "")
		if err != nil || !reflect.DeepEqual(values(got), values(c)) {
			t.Errorf("%q: %v, settings %v", empty, err, values(got))
		}
	}
	if c.TrustDomain.Name() != "cluster.local" || c.Server.CertificateLifetime != 24*time.Hour || c.Log.Level != slog.LevelInfo {
		t.Errorf("defaults: %+v", c)
	}
	if p := c.Profiles["serving"]; p.MaxLifetime != 90*24*time.Hour || p.Names != "dns" {
		t.Errorf("serving: %+v", p)
	}
	if c.Rules == nil || len(c.Rules) != 0 || c.Istio.LifetimeJitter != 0.2 || c.Signer.Local.Key != "pki/issuer-key.pem" {
		t.Errorf("defaults: %+v", c)
	}
}

func TestFileIsLaidOverTheDefaults(t *testing.T) {
	c := parse(t, `
trust_domain: example.org
server:
  dns_names: [ca.example.org]
profiles:
  workload: {default_lifetime: 30m}
  batch: {names: dns, usages: [client_auth], default_lifetime: 5m, min_lifetime: 1m, max_lifetime: 1d12h}
rules:
  - name: web
    profile: serving
    identity: spiffe://example.org/ns/web/*
    dns: ["*.web.example.org"]
    ip: [192.0.2.1, 198.51.100.0/24]
`)
	if got := c.Server.DNSNames; len(got) != 1 || got[0] != "ca.example.org" {
		t.Errorf("a list has to replace the default: %v", got)
	}
	if got := c.Server.IPAddresses; len(got) != 2 {
		t.Errorf("a list that is not set has to stay: %v", got)
	}
	if got := c.Profiles["workload"]; got.DefaultLifetime != 30*time.Minute || got.MaxLifetime != 24*time.Hour || len(got.Usages) != 2 {
		t.Errorf("a profile has to be merged key by key: %+v", got)
	}
	if got := c.Profiles["batch"]; len(c.Profiles) != 3 || got.MaxLifetime != 36*time.Hour {
		t.Errorf("a profile has to be added: %+v", got)
	}
	if got := c.Rules[0].IP; got[0] != netip.MustParsePrefix("192.0.2.1/32") || got[1] != netip.MustParsePrefix("198.51.100.0/24") {
		t.Errorf("ip: %v", got)
	}
}

func TestRelativePathsStartAtTheFilesFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "chancery.yaml")
	if err := os.WriteFile(file, []byte("ledger: {sqlite: {path: ../data/x.db}}\nkeys: {blocked_file: /abs/list}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	c, err := Load("chancery.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]string{
		"own":      {c.Ledger.SQLite.Path, filepath.Join(filepath.Dir(dir), "data/x.db")},
		"default":  {c.Signer.Local.Key, filepath.Join(dir, "pki/issuer-key.pem")},
		"absolute": {c.Keys.BlockedFile, "/abs/list"},
		"empty":    {c.Authentication.Kubernetes.Kubeconfig, ""},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q, want %q", name, pair[0], pair[1])
		}
	}
}

func TestLoadRefusesMissingAndHugeFiles(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	file := filepath.Join(t.TempDir(), "huge.yaml")
	if err := os.WriteFile(file, bytes.Repeat([]byte("# a line\n"), maxSize/9+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("huge file: %v", err)
	}
}

const sample = `trust_domain: example.org
log: {level: debug}
listen:
  grpc: "[::1]:0"
istio: {listen: ":15012", lifetime_jitter: 0}
authentication: {kubernetes: {audiences: ["true", "a: b\u0085#"]}}
`

func TestSettingsCarryTheirOrigin(t *testing.T) {
	text := strings.Replace(sample, `, "a: b\u0085#"`, "", 1)
	c := parse(t, text+"rules:\n- {name: a, profile: serving, identity: spiffe://example.org/a,\n   dns: [a.b]}\n")
	want := map[string]string{
		"trust_domain": "chancery.yaml:1", "log.level": "chancery.yaml:2", "log.format": "default", "listen.grpc": "chancery.yaml:4",
		"rules[0].name": "chancery.yaml:8", "rules[0].dns": "chancery.yaml:9", "rules[0].ip": "chancery.yaml:8",
	}
	for _, s := range c.Settings() {
		if w, ok := want[s.Path]; ok && s.Origin != w {
			t.Errorf("%s: origin %s, want %s", s.Path, s.Origin, w)
		}
		delete(want, s.Path)
	}
	if len(want) != 0 {
		t.Errorf("settings missing: %v", want)
	}
}

func TestRenderedYAMLLoadsToTheSame(t *testing.T) {
	text := strings.Replace(sample, `a: b\u0085#`, `a:b#\\`, 1) + `
rules:
- {name: a, profile: serving, identity: "spiffe://example.org/*", dns: [a.b, "*.c"], ip: ["2001:db8::/32", "::1"]}
- {name: b, profile: serving, identity: "spiffe://example.org/a", ip: [10.0.0.0/8]}
profiles: {"7": {names: dns, usages: [client_auth], default_lifetime: 90s, min_lifetime: 1s, max_lifetime: 825d}}
`
	c := parse(t, text)
	var out bytes.Buffer
	if err := c.Render(&out); err != nil {
		t.Fatal(err)
	}
	if got := parse(t, out.String()); !reflect.DeepEqual(values(got), values(c)) {
		t.Errorf("rendered:\n%s\nloads to %v\nwant %v", out.String(), values(got), values(c))
	}
	for _, line := range []string{
		"  level: debug  # chancery.yaml:2\n", "  format: json  # default\n", `  grpc: "[::1]:0"  # chancery.yaml:4` + "\n",
		"  - name: a  # chancery.yaml:9\n    profile: serving  # chancery.yaml:9\n", `  "7":` + "\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}

func TestRenderedJSONHasEverySettingInOrder(t *testing.T) {
	var out bytes.Buffer
	if err := Default().RenderJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got []Setting
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if want := Default().Settings(); len(got) != len(want) || got[0].Path != "trust_domain" || got[0].Value != "cluster.local" ||
		got[len(got)-1].Path != "rules" || got[0].Origin != "default" {
		t.Errorf("%s", out.String())
	}
}

func TestRestartNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing changed":      {"", nil},
		"written out, same":    {"trust_domain: cluster.local", nil},
		"taken over at reload": {"log: {level: debug}\nserver: {dns_names: [a.b], ip_addresses: [], certificate_lifetime: 1h}", nil},
		"signer, keys":         {"signer: {local: {key: k.pem}}\nkeys: {algorithms: [ed25519]}", nil},
		"profiles and rules": {"profiles: {serving: {max_lifetime: 30d}, x: {names: dns, usages: [client_auth], default_lifetime: 1h, min_lifetime: 1h, max_lifetime: 1h}}\n" +
			"rules: [{name: a, profile: serving, identity: spiffe://cluster.local/a, dns: [a.b]}]", nil},
		"restart": {"trust_domain: example.org\nlog: {format: text}\nserver: {request_timeout: 1s}\nlisten: {http: \":1\"}\n" +
			"istio: {audiences: [a, b]}", []string{"istio.audiences", "listen.http", "log.format", "server.request_timeout", "trust_domain"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := parse(t, ""), parse(t, test.text)
			if got := RestartNeeded(before, after); !reflect.DeepEqual(got, test.want) {
				t.Errorf("there: %v, want %v", got, test.want)
			}
			if got := RestartNeeded(after, before); !reflect.DeepEqual(got, test.want) {
				t.Errorf("and back: %v, want %v", got, test.want)
			}
		})
	}
}

func TestReloadableSettingsExist(t *testing.T) {
	c := Default()
	for _, section := range reloadable() {
		if _, ok := c.origins[section]; !ok {
			t.Errorf("%s is not a setting", section)
		}
	}
}
