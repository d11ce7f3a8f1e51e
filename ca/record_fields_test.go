package ca_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/internal/telemetry"
)

// TestRecordFields wants every field that a record can have, with its value, for each kind of caller.
func TestRecordFields(t *testing.T) {
	end := start.Add(time.Hour)
	common := map[string]any{"level": "INFO", "msg": "audit", "door": "chancery", "remote": "192.0.2.99:1234", "spiffe_id": web}
	granted := map[string]any{
		"decision": "issued", "reason": "issued", "profile": "workload", "rule": "self", "asked_names": "URI:" + web, "names": "URI:" + web,
		"not_after": "2027-01-16T12:00:00Z", "lifetime": "24h0m0s", "bundle_sequence": 1.0,
	}
	seen := make(map[string]bool)
	for name, test := range map[string]struct {
		change func(*ca.Order)
		err    error // of a door, before Issue
		want   []map[string]any
	}{
		"a pod": {func(o *ca.Order) { o.Principal.Kubernetes.Verification = identity.VerifiedLive }, nil, []map[string]any{granted, {
			"method": "kubernetes", "credential_id": "JTI=6b1d", "cluster": "local", "namespace": "default", "service_account": "web", "service_account_uid": "uid-sa",
			"pod": "default/web-0", "pod_uid": "uid-pod", "node": "node-1", "node_uid": "uid-node", "verification": "offline+liveness",
		}}},
		"an ID token": {func(o *ca.Order) {
			o.Principal.Method, o.Principal.Kubernetes = identity.MethodOIDC, nil
			o.Principal.OIDC = &identity.OIDC{Provider: "ci", Issuer: "https://ci.example.org", Subject: "repo:a/b", Claims: map[string]any{"secret_claim": "hidden"}}
		}, nil, []map[string]any{granted, {
			"method": "oidc", "credential_id": "JTI=6b1d", "oidc_provider": "ci", "oidc_issuer": "https://ci.example.org", "oidc_subject": "repo:a/b",
		}}},
		"a certificate": {func(o *ca.Order) {
			o.Principal.Method, o.Principal.Kubernetes, o.Principal.CredentialID = identity.MethodCertificate, nil, "0a"
			o.Principal.Certificate = &identity.Certificate{ClientAuth: true, Serial: "0a", NotAfter: end, Origin: identity.MethodJoinToken, Grace: true}
		}, nil, []map[string]any{granted, {
			"method": "certificate", "credential_id": "0a", "renews": "0a", "renews_not_after": "2027-01-15T13:00:00Z", "origin": "join_token", "grace": true,
		}}},
		"more asked than granted": {func(o *ca.Order) {
			o.Principal.Kubernetes, o.Lifetime = nil, 1000*time.Hour
		}, nil, []map[string]any{granted, {
			"method": "kubernetes", "credential_id": "JTI=6b1d", "asked_lifetime": "1000h0m0s", "not_after": "2027-01-22T12:00:00Z", "lifetime": "168h0m0s",
			"clamp": "the maximum of profile workload is 168h0m0s",
		}}},
		"names that disagree": {func(o *ca.Order) {
			o.Principal.Kubernetes, o.CSR, o.Names = nil, request(t, newKey(t), "a.example.org"), names("b.example.org", "192.0.2.1")
		}, nil, []map[string]any{{
			"method": "kubernetes", "credential_id": "JTI=6b1d", "decision": "invalid", "reason": "names_mismatch", "profile": "workload",
			"asked_names": "DNS:b.example.org, IP:192.0.2.1", "csr_names": "DNS:a.example.org",
			"error": "the CSR names DNS:a.example.org and the request asks for DNS:b.example.org, IP:192.0.2.1; ask for the same names in both or in one alone",
		}}},
		"no such profile": {func(o *ca.Order) { o.Principal.Kubernetes, o.Profile = nil, "tsl" }, nil, []map[string]any{{
			"method": "kubernetes", "credential_id": "JTI=6b1d", "decision": "invalid", "reason": "unknown_profile", "profile": "unknown", "asked_profile": "tsl",
			"error": `profile "tsl" does not exist here; ask the operator which profiles there are, or leave it empty for "workload"`,
		}}},
		"refused by a door": {func(o *ca.Order) { o.Principal.Kubernetes = nil }, errkind.New(errkind.Exhausted, "too often").Because(errkind.RateLimited), []map[string]any{{
			"level": "ERROR", "method": "kubernetes", "credential_id": "JTI=6b1d", "decision": "exhausted", "reason": "rate_limited", "profile": "workload", "error": "too often",
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			o := order(t)
			test.change(&o)
			if test.err != nil {
				b.authority.Refused(t.Context(), o, test.err, start)
			} else {
				_, _ = b.authority.Issue(t.Context(), o)
			}
			records := b.logs.records(t, "audit")
			if len(records) != 1 {
				t.Fatalf("there are %d records", len(records))
			}
			want := maps.Clone(common)
			for _, more := range test.want {
				maps.Copy(want, more)
			}
			for key, value := range records[0] {
				seen[key] = true
				switch key {
				case "time", "serial", "renew_at":
					if want["decision"] != "issued" && key != "time" {
						t.Errorf("%s is %v", key, value)
					}
				default:
					if value != want[key] {
						t.Errorf("%s is %v, want %v", key, value, want[key])
					}
				}
			}
			for key := range want {
				if _, ok := records[0][key]; !ok {
					t.Errorf("%s is missing", key)
				}
			}
		})
	}

	// docs/operations.md lists all of them and no others; these two need a backend that chooses itself, and are tested with it
	seen["certificate_serial"], seen["approved_not_after"] = true, true
	text, err := os.ReadFile("../docs/operations.md")
	must(t, err)
	_, section, _ := strings.Cut(string(text), "## The audit log")
	section, _, _ = strings.Cut(section, "\n## ")
	section, _, _ = strings.Cut(section, "audit summary")
	documented := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1) {
		for _, field := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(row[1], -1) {
			documented[field[1]] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("docs/operations.md lists\n%v, and records have\n%v", got, want)
	}
}

// TestTokensInARecord wants a token that a caller has put where it does not belong not to be shown, by the logger that the server uses.
func TestTokensInARecord(t *testing.T) {
	const jwt, join = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl", "cjt_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for _, token := range []string{jwt, join} {
		for name, change := range map[string]func(*ca.Order){
			"as a profile": func(o *ca.Order) { o.Profile = token },
			"as a name":    func(o *ca.Order) { o.Names.DNS = []string{token} },
			"as an ID":     func(o *ca.Order) { o.Principal.CredentialID = token },
			"as a request": func(o *ca.Order) { o.CSR = []byte(token) },
			"in a request": func(o *ca.Order) { o.CSR = request(t, newKey(t), "https://example.org/"+token) },
		} {
			level := new(slog.LevelVar)
			level.Set(slog.LevelError)
			b := newBed(t, func(b *bed) {
				logger, err := telemetry.Logger(b.logs, "json", level)
				must(t, err)
				b.with.Logger, b.with.Audit = logger, telemetry.Always(logger)
			})
			o := order(t)
			change(&o)
			_, _ = b.authority.Issue(t.Context(), o)
			if len(b.logs.records(t, "audit")) != 1 {
				t.Errorf("%s: there is not one record: %s", name, b.logs)
			}
			secret := token[strings.LastIndexAny(token, "._")+1:]
			if strings.Contains(strings.ToLower(b.logs.String()), strings.ToLower(secret)) {
				t.Errorf("%s: the log shows %s", name, b.logs)
			}
		}
	}
}

// TestHostileTextInARecord wants whatever a caller writes to be cut, to stay in its field, and to be in ASCII.
func TestHostileTextInARecord(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	const lines = "a\n{\"msg\":\"audit\",\"decision\":\"issued\"}\r\x00\x1b[2J\u202e\xff"
	for name, change := range map[string]func(*ca.Order){
		"a long profile":          func(o *ca.Order) { o.Profile = long },
		"lines in a profile":      func(o *ca.Order) { o.Profile = lines },
		"a long name":             func(o *ca.Order) { o.Names.DNS = []string{long} },
		"many names":              func(o *ca.Order) { o.Names.DNS = slices.Repeat([]string{"a", "b"}, 50_000) },
		"many different names":    func(o *ca.Order) { o.Names.DNS = manyNames(10_000) },
		"lines in a name":         func(o *ca.Order) { o.Names = identity.Names{URIs: []string{lines}, DNS: []string{lines}} },
		"a long credential id":    func(o *ca.Order) { o.Principal.CredentialID = long },
		"lines in a credential":   func(o *ca.Order) { o.Principal.CredentialID = lines },
		"a long pod":              func(o *ca.Order) { o.Principal.Kubernetes.PodName = long },
		"a long subject":          func(o *ca.Order) { o.Principal.OIDC = &identity.OIDC{Subject: long, Issuer: long} },
		"lines in a subject":      func(o *ca.Order) { o.Principal.OIDC = &identity.OIDC{Subject: lines, Issuer: lines} },
		"a request of nonsense":   func(o *ca.Order) { o.CSR = []byte(lines + long) },
		"a name in the request":   func(o *ca.Order) { o.CSR = request(t, newKey(t), strings.Repeat("y", 5000)) },
		"a long life":             func(o *ca.Order) { o.Lifetime = 1<<63 - 1 },
		"a nameless trust":        func(o *ca.Order) { o.Names.URIs = []string{"spiffe://" + long} },
		"another's long path":     func(o *ca.Order) { o.Principal.ID = spiffeid.RequireFromString(web + "/" + strings.Repeat("z", 1000)) },
		"a namespace of nonsense": func(o *ca.Order) { o.Principal.Kubernetes.Namespace = lines },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			o := order(t)
			change(&o)
			before := len(b.logs.String())
			_, _ = b.authority.Issue(t.Context(), o)
			line := b.logs.String()[before:]
			if strings.Count(line, "\n") != 1 || len(b.logs.records(t, "audit")) != 1 {
				t.Fatalf("it is not one record: %q", line)
			}
			const most = 12_000
			if len(line) > most {
				t.Errorf("the record has %d bytes: %.300q…", len(line), line)
			}
			if record := b.logs.records(t, "audit")[0]; record["decision"] == "issued" && (name == "lines in a name" || name == "a long name") {
				t.Error("it was issued")
			}
			for _, r := range line {
				if r != '\n' && r != '…' && r != '§' && (r < ' ' || r > '~') {
					t.Errorf("the record holds %U: %.300q", r, line)
					break
				}
			}
		})
	}
}

// TestEveryTextOfACredentialIsBounded puts hostile text into one field of the caller after the other.
func TestEveryTextOfACredentialIsBounded(t *testing.T) {
	hostile := "a\n\x1b\u202e\xff" + strings.Repeat("x", 100_000)
	for field, put := range map[string]func(*identity.Principal){
		"credential_id":       func(p *identity.Principal) { p.CredentialID = hostile },
		"namespace":           func(p *identity.Principal) { p.Kubernetes.Namespace = hostile },
		"service_account":     func(p *identity.Principal) { p.Kubernetes.ServiceAccount = hostile },
		"service_account_uid": func(p *identity.Principal) { p.Kubernetes.ServiceAccountUID = hostile },
		"pod":                 func(p *identity.Principal) { p.Kubernetes.PodName = hostile },
		"pod_uid":             func(p *identity.Principal) { p.Kubernetes.PodUID = hostile },
		"node":                func(p *identity.Principal) { p.Kubernetes.NodeName = hostile },
		"node_uid":            func(p *identity.Principal) { p.Kubernetes.NodeUID = hostile },
		"oidc_issuer":         func(p *identity.Principal) { p.OIDC = &identity.OIDC{Issuer: hostile} },
		"oidc_subject":        func(p *identity.Principal) { p.OIDC = &identity.OIDC{Subject: hostile} },
	} {
		b := newBed(t)
		o := order(t)
		put(o.Principal)
		b.authority.Refused(t.Context(), o, errkind.New(errkind.Exhausted, "too often").Because(errkind.RateLimited), start)
		text, _ := b.logs.records(t, "audit")[0][field].(string)
		if len(text) < 200 || len(text) > 300 || !strings.HasPrefix(strings.TrimPrefix(text, "default/"), `a\n\x1b\u202e\xffx`) || !strings.HasSuffix(text, "x…") {
			t.Errorf("%s is %d bytes: %.60q", field, len(text), text)
		}
	}
}

// TestALongErrorIsCut wants a cause to end somewhere, and at a whole character.
func TestALongErrorIsCut(t *testing.T) {
	for _, cause := range []string{strings.Repeat("x", 100_000), strings.Repeat("ä", 50_000), "x" + strings.Repeat("ä", 50_000)} {
		b := newBed(t)
		b.authority.Refused(t.Context(), order(t), errkind.Wrap(errkind.Unavailable, errors.New(cause), "no").Because(errkind.SignerUnavailable), start)
		text, _ := b.logs.records(t, "audit")[0]["error"].(string)
		if len(text) < 4000 || len(text) > 4100 || !strings.HasSuffix(text, "…") || strings.ContainsRune(text, '\ufffd') {
			t.Errorf("the error is %d bytes and ends in %q", len(text), text[max(len(text)-9, 0):])
		}
	}
}

func manyNames(n int) []string {
	all := make([]string, 0, n)
	for i := range n {
		all = append(all, fmt.Sprintf("host-%d.example.org", i))
	}
	return all
}
