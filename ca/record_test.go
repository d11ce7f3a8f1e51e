package ca_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/signer"
)

// TestAuditRecords wants exactly one record a decision, whatever it is, with what decided.
func TestAuditRecords(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*bed, *ca.Order)
		want   map[string]any // of the record
		absent []string
	}{
		"issued": {func(*bed, *ca.Order) {}, map[string]any{
			"level": "INFO", "decision": "issued", "door": "chancery", "profile": "workload", "remote": "192.0.2.99:1234", "spiffe_id": web, "method": "kubernetes",
			"credential_id": "JTI=6b1d", "cluster": "local", "pod": "default/web-0", "node": "node-1", "asked_names": "URI:" + web, "names": "URI:" + web, "rule": "self",
			"reason": "issued", "namespace": "default", "service_account": "web", "lifetime": "24h0m0s", "not_after": "2027-01-16T12:00:00Z", "bundle_sequence": 1.0,
		}, []string{"error"}},
		"denied": {func(_ *bed, o *ca.Order) { o.Names = names(web + "2") }, map[string]any{
			"level": "INFO", "decision": "denied", "reason": "not_allowed", "spiffe_id": web, "asked_names": "URI:" + web + "2",
		}, []string{"serial", "rule", "names", "not_after"}},
		"invalid": {func(_ *bed, o *ca.Order) { o.CSR = []byte("junk") }, map[string]any{"level": "INFO", "decision": "invalid", "reason": "bad_csr", "spiffe_id": web},
			[]string{"serial", "rule", "names", "asked_names"}},
		"an unknown profile": {func(_ *bed, o *ca.Order) { o.Profile = "whatever a caller writes" }, map[string]any{
			"level": "INFO", "decision": "invalid", "reason": "unknown_profile", "profile": "unknown", "asked_profile": "whatever a caller writes",
		}, []string{"serial"}},
		"a lint": {func(_ *bed, o *ca.Order) { o.Profile, o.Names = "tls", names("a_b.web.example.org") }, map[string]any{
			"level": "INFO", "decision": "invalid", "profile": "tls", "rule": "web-names", "asked_names": "DNS:a_b.web.example.org", "reason": "lint_refused",
		}, []string{"serial", "names"}},
		"the backend's refusal": {func(b *bed, _ *ca.Order) {
			b.signer.before = func(context.Context, *signer.Order) error { return signer.ErrPermanent }
		}, map[string]any{"level": "INFO", "decision": "invalid", "rule": "self"}, []string{"not_after"}},
		"the backend's failure": {func(b *bed, _ *ca.Order) {
			b.signer.before = func(context.Context, *signer.Order) error { return errors.New("connection refused") }
		}, map[string]any{"level": "ERROR", "decision": "unavailable", "rule": "self"}, []string{"not_after"}},
		"the ledger's failure": {func(b *bed, _ *ca.Order) {
			b.ledger.beforeCommit = func(context.Context) error { return errors.New("disk full") }
		}, map[string]any{"level": "ERROR", "decision": "unavailable", "rule": "self"}, []string{"not_after"}},
		"nobody": {func(_ *bed, o *ca.Order) { o.Principal = nil }, map[string]any{"level": "ERROR", "decision": "internal"}, []string{"spiffe_id", "serial"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			o := order(t)
			test.change(b, &o)
			issuance, err := b.authority.Issue(t.Context(), o)
			records := b.logs.records(t, "audit")
			if len(records) != 1 {
				t.Fatalf("there are %d audit records for one decision", len(records))
			}
			record := records[0]
			for key, want := range test.want {
				if record[key] != want {
					t.Errorf("%s is %v, want %v", key, record[key], want)
				}
			}
			for _, key := range test.absent {
				if value, ok := record[key]; ok {
					t.Errorf("%s is there: %v", key, value)
				}
			}
			if text, _ := record["error"].(string); err != nil && text != err.Error() {
				t.Errorf("the error is %q, want %q", text, err)
			}
			if issuance != nil && record["serial"] != issuance.Serial.String() {
				t.Errorf("the serial is %v, want %s", record["serial"], issuance.Serial)
			}
			if entries := b.entries(t); len(entries) > 0 && record["serial"] != entries[0].Serial.String() {
				t.Errorf("the serial is %v, the ledger has %s", record["serial"], entries[0].Serial)
			}
		})
	}
}

// TestRefused records what a door refused before there was a principal.
func TestRefused(t *testing.T) {
	b := newBed(t)
	b.clock.add(3 * time.Second)
	b.authority.Refused(t.Context(), ca.Order{Door: ca.DoorIstio, Remote: "192.0.2.1:1"}, errkind.New(errkind.Unauthenticated, "no token"), start)
	records := b.logs.records(t, "audit")
	if len(records) != 1 || records[0]["decision"] != "unauthenticated" || records[0]["door"] != "istio" || records[0]["error"] != "no token" || records[0]["level"] != "INFO" {
		t.Errorf("the records are %v", records)
	}
	b.wantSteps(t)
	metric := b.metric(t, "chancery_issuance_duration_seconds")
	if len(metric) != 1 || metric[0].GetHistogram().GetSampleSum() != 3 {
		t.Errorf("the time is %v", metric)
	}
}

// TestNoSecretInALog issues, denies and fails with every secret in reach, and looks for them in all that was logged and recorded.
func TestNoSecretInALog(t *testing.T) {
	b := newBed(t)
	hash := b.joinToken(t)
	o := order(t)
	o.Principal.JoinToken = hash
	b.issue(t, o)
	_, err := b.authority.Issue(t.Context(), o) // a used token
	wantKind(t, err, errkind.Unauthenticated)
	o.Names = names(web + "2")
	_, err = b.authority.Issue(t.Context(), o)
	wantKind(t, err, errkind.Denied)
	b.signer.before = func(context.Context, *signer.Order) error { return errors.New("connection refused") }
	o = order(t)
	_, err = b.authority.Issue(t.Context(), o)
	wantKind(t, err, errkind.Unavailable)

	text := b.logs.String()
	for _, secret := range [][]byte{hash, o.CSR} {
		for _, spelling := range []string{string(secret), hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret)} {
			if strings.Contains(text, spelling) {
				t.Errorf("the log shows %q", spelling)
			}
		}
	}
	// one line more is about the trust anchors, at the start
	if n := len(b.logs.records(t, "audit")); n != 4 || strings.Count(text, "\n") != 5 {
		t.Errorf("four decisions left %d audit records and %d lines", n, strings.Count(text, "\n"))
	}
}

// metric returns the metrics of a name.
func (b *bed) metric(t testing.TB, name string) []*dto.Metric {
	t.Helper()
	families, err := b.registry.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()
		}
	}
	return nil
}

// TestMetricLabels wants labels from fixed lists, whatever callers send.
func TestMetricLabels(t *testing.T) {
	b := newBed(t)
	b.issue(t, order(t))
	for n, text := range []string{"whatever", "a\nb", "root", strings.Repeat("x", 5000)} {
		o := order(t)
		o.Profile = text
		if n%2 == 0 {
			o.Names = names("spiffe://example.org/" + strings.Repeat("y", n+1))
		}
		_, err := b.authority.Issue(t.Context(), o)
		wantKind(t, err, errkind.Invalid)
	}
	o := order(t)
	o.Profile, o.Names = "tls", names("www.example.org")
	_, err := b.authority.Issue(t.Context(), o)
	wantKind(t, err, errkind.Denied)

	got := make(map[string]float64)
	for _, m := range b.metric(t, "chancery_issuance_decisions_total") {
		var labels []string
		for _, label := range m.GetLabel() {
			labels = append(labels, label.GetName()+"="+label.GetValue())
		}
		got[strings.Join(labels, " ")] = m.GetCounter().GetValue()
	}
	if want := map[string]float64{
		"door=chancery profile=workload reason=issued result=issued": 1, "door=chancery profile=tls reason=issued result=issued": 0,
		"door=chancery profile=unknown reason=unknown_profile result=invalid": 4, "door=chancery profile=tls reason=not_allowed result=denied": 1,
	}; !maps.Equal(got, want) {
		t.Errorf("the decisions are %v, want %v", got, want)
	}
}

// TestExpiryMetrics wants a gauge for each certificate above the leaves, and none for those that are gone.
func TestExpiryMetrics(t *testing.T) {
	b := newBed(t)
	want := func(roles ...string) {
		t.Helper()
		var got []string
		fingerprints := make(map[string]bool)
		for _, m := range b.metric(t, "chancery_issuer_not_after_seconds") {
			for _, label := range m.GetLabel() {
				if label.GetName() == "role" {
					got = append(got, label.GetValue())
				} else {
					fingerprints[label.GetValue()] = true
				}
			}
			if m.GetGauge().GetValue() <= float64(start.Unix()) {
				t.Errorf("a certificate ends at %v", m.GetGauge().GetValue())
			}
		}
		if slices.Sort(got); !slices.Equal(got, roles) || len(fingerprints) != len(roles) {
			t.Errorf("there are gauges for %v, want %v", got, roles)
		}
	}
	want("anchor", "issuer", "issuer")
	config := b.config
	config.Signer = newHierarchySigner(t)
	must(t, b.authority.Replace(t.Context(), config))
	want("anchor", "issuer")
	if sequence := b.metric(t, "chancery_bundle_sequence"); len(sequence) != 1 || sequence[0].GetGauge().GetValue() != 2 {
		t.Errorf("the sequence is %v", sequence)
	}
}
