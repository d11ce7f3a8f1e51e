package ca_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// everything is a rule that allows whatever it is asked.
func everything(context.Context, authorize.Request) (authorize.Verdict, bool, error) {
	return authorize.Verdict{Rule: "everything"}, true, nil
}

// TestARuleThatAllowsEverything is held to what no rule can change: the trust domain and the profile.
func TestARuleThatAllowsEverything(t *testing.T) {
	for name, test := range map[string]struct {
		profile string
		names   identity.Names
		kind    errkind.Kind
		say     string
	}{
		"another path":               {"", identity.Names{URIs: []string{"spiffe://example.org/other"}}, 0, ""},
		"another trust domain":       {"", identity.Names{URIs: []string{"spiffe://example.net/ns/default/sa/web"}}, errkind.Denied, "of the trust domain example.org alone"},
		"the trust domain itself":    {"", identity.Names{URIs: []string{"spiffe://example.org"}}, errkind.Invalid, "is a whole trust domain"},
		"a host under a profile":     {"", identity.Names{DNS: []string{"a.example.org"}}, errkind.Invalid, "certifies exactly one SPIFFE ID"},
		"a SPIFFE ID under another":  {"tls", identity.Names{URIs: []string{"spiffe://example.org/other"}}, errkind.Invalid, "certifies DNS names and IP addresses"},
		"two SPIFFE IDs":             {"", identity.Names{URIs: []string{"spiffe://example.org/a", "spiffe://example.org/b"}}, errkind.Invalid, "certifies exactly one SPIFFE ID"},
		"a host and a SPIFFE ID":     {"tls", identity.Names{URIs: []string{"spiffe://example.org/a"}, DNS: []string{"a.example.org"}}, errkind.Invalid, "certifies DNS names"},
		"a name that is none":        {"tls", identity.Names{DNS: []string{"a b"}}, errkind.Invalid, "breaks a rule"},
		"a name of another alphabet": {"tls", identity.Names{DNS: []string{"shор.example.org"}}, errkind.Invalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(b *bed) { b.config.Rule = everything })
			o := order(t)
			o.Profile, o.Names = test.profile, test.names
			issuance, err := b.authority.Issue(t.Context(), o)
			if test.say == "" && test.kind == 0 {
				if err != nil || issuance.Rule != "everything" {
					t.Errorf("got %+v, %v", issuance, err)
				}
				return
			}
			wantKind(t, err, test.kind, test.say)
			b.wantSteps(t)
		})
	}
}

// TestARuleCapsTheLifetime and the certificate, the ledger and the caller learn of it.
func TestARuleCapsTheLifetime(t *testing.T) {
	var asked authorize.Request
	b := newBed(t, func(b *bed) {
		b.config.Rule = func(_ context.Context, r authorize.Request) (authorize.Verdict, bool, error) {
			asked = r
			return authorize.Verdict{Rule: "short", MaxLifetime: 10 * time.Minute}, true, nil
		}
	})
	o := order(t)
	o.Lifetime, o.Door = 40*time.Minute, ca.DoorIstio
	issuance := b.issue(t, o)
	if issuance.NotAfter.Sub(issuance.Issued) != 10*time.Minute || !strings.Contains(issuance.Clamp.Reason, "rule short allows at most 10m0s") || issuance.Clamp.Asked != 40*time.Minute {
		t.Errorf("it lives %s, clamped by %+v", issuance.NotAfter.Sub(issuance.Issued), issuance.Clamp)
	}
	if asked.Lifetime != 40*time.Minute || asked.Door != "istio" || asked.Key != "ecdsa-p256" {
		t.Errorf("the rule was asked about %s, %s, %s", asked.Lifetime, asked.Door, asked.Key)
	}
}

func TestKeyNames(t *testing.T) {
	elliptical := func(curve elliptic.Curve) crypto.PublicKey {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		must(t, err)
		return key.Public()
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	factored, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	for want, key := range map[string]crypto.PublicKey{
		"ecdsa-p256": elliptical(elliptic.P256()), "ecdsa-p384": elliptical(elliptic.P384()), "ecdsa-p521": elliptical(elliptic.P521()), "ed25519": edwards,
		"rsa-2048": factored.Public(), "": "none",
	} {
		if got := ca.KeyName(key); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
