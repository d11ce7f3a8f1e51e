package profile_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	rand2 "crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/profile"
)

var now = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

func both() []x509.ExtKeyUsage {
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
}

// config is a Config of which one test each changes something.
func config() profile.Config {
	return profile.Config{
		Name: "workload", Names: profile.NamesSPIFFE, Usages: both(), DefaultLifetime: 24 * time.Hour, MinLifetime: 5 * time.Minute,
		MaxLifetime: 7 * 24 * time.Hour,
	}
}

func newProfile(t testing.TB, change func(*profile.Config)) *profile.Profile {
	t.Helper()
	c := config()
	change(&c)
	p, err := profile.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNew(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*profile.Config)
		want   string // part of the error; empty for none
	}{
		"a SPIFFE profile":             {func(*profile.Config) {}, ""},
		"a DNS profile":                {func(c *profile.Config) { c.Names, c.Usages = profile.NamesDNS, both()[:1] }, ""},
		"one lifetime":                 {func(c *profile.Config) { c.MinLifetime, c.MaxLifetime = 24*time.Hour, 24*time.Hour }, ""},
		"a second":                     {func(c *profile.Config) { c.MinLifetime = time.Second }, ""},
		"no name":                      {func(c *profile.Config) { c.Name = "" }, "needs a name"},
		"no kind of names":             {func(c *profile.Config) { c.Names = "" }, `must be "spiffe" or "dns"`},
		"an unknown kind of names":     {func(c *profile.Config) { c.Names = "email" }, `names "email"`},
		"no usage":                     {func(c *profile.Config) { c.Usages = nil }, "at least one usage"},
		"SPIFFE with one usage":        {func(c *profile.Config) { c.Usages = both()[1:] }, "both server_auth and client_auth (X509-SVID §4.4)"},
		"a usage twice":                {func(c *profile.Config) { c.Usages = append(both(), x509.ExtKeyUsageServerAuth) }, "stands twice"},
		"SPIFFE with one usage, twice": {func(c *profile.Config) { c.Usages = slices.Repeat(both()[:1], 2) }, "stands twice"},
		"any usage":                    {func(c *profile.Config) { c.Usages = append(both(), x509.ExtKeyUsageAny) }, "not one that workloads get"},
		"code signing":                 {func(c *profile.Config) { c.Usages = append(both(), x509.ExtKeyUsageCodeSigning) }, "not one that workloads get"},
		"no minimum":                   {func(c *profile.Config) { c.MinLifetime = 0 }, "lifetimes must satisfy"},
		"less than a second":           {func(c *profile.Config) { c.MinLifetime = time.Second - 1 }, "lifetimes must satisfy 1s"},
		"a default below the minimum":  {func(c *profile.Config) { c.DefaultLifetime = time.Minute }, "lifetimes must satisfy"},
		"a default above the maximum":  {func(c *profile.Config) { c.MaxLifetime = time.Hour }, "lifetimes must satisfy"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config()
			test.change(&c)
			_, err := profile.New(c)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestCheckNames(t *testing.T) {
	addr := netip.MustParseAddr
	const web = "spiffe://example.org/web"
	for name, test := range map[string]struct {
		kind  profile.NameKind
		names identity.Names
		want  string // part of the sentence; empty for none
	}{
		"a SPIFFE ID":                  {profile.NamesSPIFFE, identity.Names{URIs: []string{web}}, ""},
		"nothing, SPIFFE":              {profile.NamesSPIFFE, identity.Names{}, "exactly one SPIFFE ID; the request names no name"},
		"two SPIFFE IDs":               {profile.NamesSPIFFE, identity.Names{URIs: []string{web, web + "2"}}, "exactly one SPIFFE ID"},
		"a SPIFFE ID and a DNS name":   {profile.NamesSPIFFE, identity.Names{URIs: []string{web}, DNS: []string{"a.org"}}, "exactly one SPIFFE ID"},
		"a SPIFFE ID and an address":   {profile.NamesSPIFFE, identity.Names{URIs: []string{web}, IPs: []netip.Addr{addr("192.0.2.1")}}, "exactly one SPIFFE ID"},
		"a DNS name, SPIFFE":           {profile.NamesSPIFFE, identity.Names{DNS: []string{"a.org"}}, "exactly one SPIFFE ID"},
		"another URI":                  {profile.NamesSPIFFE, identity.Names{URIs: []string{"https://example.org/web"}}, "SPIFFE-ID §2"},
		"an empty URI":                 {profile.NamesSPIFFE, identity.Names{URIs: []string{""}}, "SPIFFE-ID §2"},
		"a SPIFFE ID with a dot-dot":   {profile.NamesSPIFFE, identity.Names{URIs: []string{web + "/../admin"}}, "SPIFFE-ID §2"},
		"an upper-case scheme":         {profile.NamesSPIFFE, identity.Names{URIs: []string{"SPIFFE://example.org/web"}}, "SPIFFE-ID §2"},
		"a trust domain":               {profile.NamesSPIFFE, identity.Names{URIs: []string{"spiffe://example.org"}}, "whole trust domain"},
		"hosts":                        {profile.NamesDNS, identity.Names{DNS: []string{"*.a.org"}, IPs: []netip.Addr{addr("192.0.2.1"), addr("fe80::1")}}, ""},
		"an address alone":             {profile.NamesDNS, identity.Names{IPs: []netip.Addr{addr("127.0.0.1")}}, ""},
		"nothing, DNS":                 {profile.NamesDNS, identity.Names{}, "certifies DNS names and IP addresses"},
		"a URI, DNS":                   {profile.NamesDNS, identity.Names{URIs: []string{web}}, "certifies DNS names and IP addresses"},
		"a URI and a DNS name":         {profile.NamesDNS, identity.Names{URIs: []string{web}, DNS: []string{"a.org"}}, "certifies DNS names and IP addresses"},
		"an address with a zone":       {profile.NamesDNS, identity.Names{IPs: []netip.Addr{addr("fe80::1%eth0")}}, "not the address of a host"},
		"no address":                   {profile.NamesDNS, identity.Names{IPs: []netip.Addr{{}}}, "not the address of a host"},
		"the unspecified address":      {profile.NamesDNS, identity.Names{IPs: []netip.Addr{addr("0.0.0.0")}}, "not the address of a host"},
		"the unspecified IPv6 address": {profile.NamesDNS, identity.Names{IPs: []netip.Addr{addr("::")}}, "not the address of a host"},
		"a multicast address":          {profile.NamesDNS, identity.Names{IPs: []netip.Addr{addr("224.0.0.1")}}, "not the address of a host"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProfile(t, func(c *profile.Config) { c.Names = test.kind })
			err := p.CheckNames(test.names)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || errkind.Of(err) != errkind.Invalid || !strings.Contains(errkind.Message(err), test.want) {
				t.Errorf("got %v, want an invalid request and a sentence that says %q", err, test.want)
			}
		})
	}
	if newProfile(t, func(*profile.Config) {}).FixedShape() == newProfile(t, func(c *profile.Config) { c.Names = profile.NamesDNS }).FixedShape() {
		t.Error("profiles of both kinds have the same kind of shape")
	}
}

func TestLeaf(t *testing.T) {
	usages := both()
	p := newProfile(t, func(c *profile.Config) { c.Usages = usages })
	usages[0] = x509.ExtKeyUsageAny // the profile is immutable
	names := identity.Names{URIs: []string{"spiffe://example.org/web"}}
	leaf := p.Leaf(big.NewInt(5), names, []byte("spki"), profile.Validity{NotBefore: now, NotAfter: now.Add(time.Hour)})
	leaf.ExtKeyUsage[1] = x509.ExtKeyUsageAny // as well from here
	leaf = p.Leaf(big.NewInt(5), names, []byte("spki"), profile.Validity{NotBefore: now, NotAfter: now.Add(time.Hour)})
	if leaf.Serial.Int64() != 5 || !leaf.Names.Equal(names) || string(leaf.SPKI) != "spki" || leaf.KeyUsage != x509.KeyUsageDigitalSignature ||
		!slices.Equal(leaf.ExtKeyUsage, both()) || leaf.Subject != nil || !leaf.NotBefore.Equal(now) || !leaf.NotAfter.Equal(now.Add(time.Hour)) {
		t.Errorf("the leaf is %+v", leaf)
	}
}

func TestKeyUsageFitsTheKey(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand2.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand2.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const signature, both = x509.KeyUsageDigitalSignature, x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for name, test := range map[string]struct {
		key    crypto.Signer
		usages []x509.ExtKeyUsage
		want   x509.KeyUsage
	}{
		"RSA, server": {rsaKey, nil, both},
		"RSA, client": {rsaKey, client, signature},
		"EC, server":  {ecKey, nil, signature},
	} {
		t.Run(name, func(t *testing.T) {
			spki, err := x509.MarshalPKIXPublicKey(test.key.Public())
			if err != nil {
				t.Fatal(err)
			}
			p := newProfile(t, func(c *profile.Config) {
				if test.usages != nil {
					c.Names, c.Usages = profile.NamesDNS, test.usages
				}
			})
			if got := p.Leaf(big.NewInt(5), identity.Names{}, spki, profile.Validity{}).KeyUsage; got != test.want {
				t.Errorf("key usage %b, want %b", got, test.want)
			}
		})
	}
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// window is one of issuers that have begun and do not end soon.
func window() profile.Window {
	return profile.Window{NotBefore: now.Add(-365 * 24 * time.Hour), NotAfter: now.Add(365 * 24 * time.Hour), Begins: "CN=begins", Ends: "CN=ends"}
}

func TestValidity(t *testing.T) {
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		now     time.Duration // from now
		asked   time.Duration
		window  func(*profile.Window)
		granted time.Duration
		before  time.Duration // notBefore, from the time of issuance
		clamp   string        // part of the reason; empty for none
	}{
		"the default":                         {asked: 0, granted: day, before: -time.Minute},
		"less than nothing":                   {asked: -time.Hour, granted: day, before: -time.Minute},
		"the minimum":                         {asked: 5 * time.Minute, granted: 5 * time.Minute, before: -time.Minute},
		"the maximum":                         {asked: 7 * day, granted: 7 * day, before: -time.Minute},
		"fractions are cut off":               {asked: time.Hour + time.Second - 1, granted: time.Hour, before: -time.Minute},
		"a fraction of now is cut off":        {now: 999 * time.Millisecond, asked: time.Hour, granted: time.Hour, before: -time.Minute},
		"above the maximum":                   {asked: 7*day + time.Second, granted: 7 * day, before: -time.Minute, clamp: "the maximum of profile workload is 168h0m0s"},
		"far above the maximum":               {asked: math.MaxInt64, granted: 7 * day, before: -time.Minute, clamp: "the maximum of profile workload"},
		"up to the issuer's end":              {asked: day, window: func(w *profile.Window) { w.NotAfter = now.Add(day) }, granted: day, before: -time.Minute},
		"past the issuer's end":               {asked: day, window: func(w *profile.Window) { w.NotAfter = now.Add(day - time.Second) }, granted: day - time.Second, before: -time.Minute, clamp: "issuer CN=ends ends at 2027-01-16T11:59:59Z"},
		"the default past the issuer's end":   {window: func(w *profile.Window) { w.NotAfter = now.Add(time.Hour) }, granted: time.Hour, before: -time.Minute, clamp: "issuer CN=ends ends at"},
		"just the minimum is left":            {asked: day, window: func(w *profile.Window) { w.NotAfter = now.Add(5 * time.Minute) }, granted: 5 * time.Minute, before: -time.Minute, clamp: "issuer CN=ends"},
		"past the maximum and the issuer":     {asked: 30 * day, window: func(w *profile.Window) { w.NotAfter = now.Add(day) }, granted: day, before: -time.Minute, clamp: "issuer CN=ends"},
		"an issuer that has just begun":       {asked: day, window: func(w *profile.Window) { w.NotBefore = now.Add(-time.Second) }, granted: day, before: -time.Second},
		"an issuer that begins now":           {asked: day, window: func(w *profile.Window) { w.NotBefore = now }, granted: day},
		"an issuer that nobody knows":         {asked: day, window: func(w *profile.Window) { *w = profile.Unbounded }, granted: day, before: -time.Minute},
		"an issuer that begins at a fraction": {now: time.Millisecond, asked: day, window: func(w *profile.Window) { w.NotBefore = now }, granted: day},
	} {
		t.Run(name, func(t *testing.T) {
			w := window()
			if test.window != nil {
				test.window(&w)
			}
			p := newProfile(t, func(*profile.Config) {})
			v, err := p.Validity(now.Add(test.now), profile.Wanted{Lifetime: test.asked}, w, source(1))
			if err != nil {
				t.Fatal(err)
			}
			if got := v.NotAfter.Sub(now); got != test.granted {
				t.Errorf("it lives %s, want %s", got, test.granted)
			}
			if got := v.NotBefore.Sub(now); got != test.before {
				t.Errorf("it begins at %s, want %s", got, test.before)
			}
			wantRenewal(t, v, now)
			asked := test.asked
			if asked <= 0 {
				asked = day
			}
			if clamped := v.Clamp.Reason != ""; clamped != (test.clamp != "") || !strings.Contains(v.Clamp.Reason, test.clamp) ||
				clamped && (v.Clamp.Asked != asked || v.Clamp.Granted != test.granted) {
				t.Errorf("the clamp is %+v", v.Clamp)
			}
		})
	}
}

// wantRenewal wants renewal after half and at the latest at two thirds of the time from issuance to the end.
func wantRenewal(t testing.TB, v profile.Validity, issued time.Time) {
	t.Helper()
	life, at := v.NotAfter.Sub(issued), v.RenewAt.Sub(issued)
	if 2*at <= life || 3*(at/2) > life+3 {
		t.Errorf("renewal comes after %s of %s", at, life)
	}
}

func TestValidityRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		asked  time.Duration
		window func(*profile.Window)
		kind   errkind.Kind
		say    []string
	}{
		"less than the minimum": {asked: 5*time.Minute - 1, kind: errkind.Invalid, say: []string{"below the minimum of profile workload, 5m0s"}},
		"a nanosecond":          {asked: 1, kind: errkind.Invalid, say: []string{"a lifetime of 1ns is below the minimum"}},
		"a clock behind the issuer": {window: func(w *profile.Window) { w.NotBefore = now.Add(time.Second) }, kind: errkind.Unavailable,
			say: []string{"clock says 2027-01-15T12:00:00Z", "issuer CN=begins is valid only from 2027-01-15T12:00:01Z", "set the clock"}},
		"an issuer that is near its end": {window: func(w *profile.Window) { w.NotAfter = now.Add(5*time.Minute - time.Second) }, kind: errkind.Unavailable,
			say: []string{"issuer CN=ends ends at 2027-01-15T12:04:59Z", "less than the minimum lifetime of profile workload, 5m0s", "needs a new issuer"}},
		"an issuer that ends now": {window: func(w *profile.Window) { w.NotAfter = now }, kind: errkind.Unavailable, say: []string{"issuer CN=ends ends at 2027-01-15T12:00:00Z"}},
		"an expired issuer": {window: func(w *profile.Window) { w.NotAfter = now.Add(-time.Second) }, kind: errkind.Unavailable,
			say: []string{"clock says 2027-01-15T12:00:00Z", "issuer CN=ends ended at 2027-01-15T11:59:59Z", "needs a new issuer"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := window()
			if test.window != nil {
				test.window(&w)
			}
			_, err := newProfile(t, func(*profile.Config) {}).Validity(now, profile.Wanted{Lifetime: test.asked}, w, source(1))
			wantSentence(t, err, test.kind, test.say...)
		})
	}
}

func wantSentence(t testing.TB, err error, kind errkind.Kind, say ...string) {
	t.Helper()
	if err == nil || errkind.Of(err) != kind {
		t.Fatalf("got %v, want %s", err, kind)
	}
	for _, part := range say {
		if !strings.Contains(errkind.Message(err), part) {
			t.Errorf("the sentence %q does not say %q", errkind.Message(err), part)
		}
	}
	if kind.Retryable() != (errkind.RetryAfter(err) > 0) {
		t.Errorf("retry after %s", errkind.RetryAfter(err))
	}
}

func TestJitter(t *testing.T) {
	const rounds = 2000
	p := newProfile(t, func(*profile.Config) {})
	for name, test := range map[string]struct {
		jitter, share float64 // what is asked for and what counts
		asked         time.Duration
	}{
		"none":                     {0, 0, 24 * time.Hour},
		"a tenth":                  {0.1, 0.1, 24 * time.Hour},
		"everything":               {1, 1, 24 * time.Hour},
		"more than everything":     {7, 1, 24 * time.Hour},
		"infinitely much":          {math.Inf(1), 1, 24 * time.Hour},
		"less than nothing":        {-1, 0, 24 * time.Hour},
		"no number":                {math.NaN(), 0, 24 * time.Hour},
		"a tenth of the minimum":   {0.1, 0, 5 * time.Minute},
		"a half of the maximum":    {0.5, 0.5, 1000 * time.Hour},
		"a tenth, near the bottom": {0.5, 0.5, 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			full := min(test.asked, 168*time.Hour)
			least := max(full-time.Duration(float64(full)*test.share), 5*time.Minute)
			shortest, longest := full, time.Duration(0)
			for seed := range uint64(rounds) {
				v, err := p.Validity(now, profile.Wanted{Lifetime: test.asked, Jitter: test.jitter}, window(), source(seed))
				if err != nil {
					t.Fatal(err)
				}
				life := v.NotAfter.Sub(now)
				shortest, longest = min(shortest, life), max(longest, life)
				wantRenewal(t, v, now)
			}
			if shortest < least || longest > full {
				t.Errorf("lives are %s to %s, want %s to %s", shortest, longest, least, full)
			}
			// spread over the whole range, but for a few percent at its ends
			if margin := (full - least) / 20; shortest > least+margin+time.Second || longest < full-margin-time.Second {
				t.Errorf("lives are %s to %s, which is not %s to %s", shortest, longest, least, full)
			}
		})
	}
}

// TestRenewalSpreads wants every tenth of the time between half and two thirds of life to be used about as often as any other.
func TestRenewalSpreads(t *testing.T) {
	const rounds, parts = 5000, 10
	for _, life := range []time.Duration{time.Second, 2 * time.Second, 3601 * time.Second, 7 * 24 * time.Hour} {
		p := newProfile(t, func(c *profile.Config) { c.MinLifetime = time.Second })
		var counts [parts]int
		for seed := range uint64(rounds) {
			v, err := p.Validity(now, profile.Wanted{Lifetime: life}, window(), source(seed))
			if err != nil {
				t.Fatal(err)
			}
			wantRenewal(t, v, now)
			counts[min(int(float64(v.RenewAt.Sub(now)-life/2)/float64(life/6)*parts), parts-1)]++
		}
		for part, count := range counts {
			if count < rounds/parts/2 || count > rounds/parts*2 {
				t.Errorf("of %d certificates of %s, %d are renewed in part %d of %d: %v", rounds, life, count, part, parts, counts)
			}
		}
	}
}

// extreme is a random source that always says the least or the most.
type extreme uint64

func (e extreme) Uint64() uint64 { return uint64(e) }

// TestRenewalAtItsBounds draws the earliest and the latest time there is.
func TestRenewalAtItsBounds(t *testing.T) {
	p := newProfile(t, func(c *profile.Config) { c.MinLifetime = time.Second })
	for _, life := range []time.Duration{time.Second, 3601 * time.Second, 7 * 24 * time.Hour} {
		for _, source := range []extreme{0, math.MaxUint64} {
			v, err := p.Validity(now, profile.Wanted{Lifetime: life, Jitter: 0.1}, window(), rand.New(source))
			if err != nil {
				t.Fatal(err)
			}
			wantRenewal(t, v, now)
		}
	}
}

func TestSigned(t *testing.T) {
	p := newProfile(t, func(*profile.Config) {})
	approved, err := p.Validity(now, profile.Wanted{Lifetime: time.Hour}, window(), source(3))
	if err != nil {
		t.Fatal(err)
	}
	same, err := p.Signed(approved, approved.NotBefore, approved.NotAfter)
	if err != nil || same != approved {
		t.Errorf("the same life becomes %+v, %v", same, err)
	}
	for _, life := range []time.Duration{59 * time.Minute, 10 * time.Minute, 5 * time.Minute} {
		v, err := p.Signed(approved, now, now.Add(life))
		if err != nil {
			t.Fatal(err)
		}
		if !v.NotBefore.Equal(now) || !v.NotAfter.Equal(now.Add(life)) {
			t.Errorf("a life of %s is %s to %s", life, v.NotBefore, v.NotAfter)
		}
		wantRenewal(t, v, now)
		if v.Clamp.Asked != time.Hour || v.Clamp.Granted != life || !strings.Contains(v.Clamp.Reason, "the signing backend ends it at 2027-01-15T12:") {
			t.Errorf("the clamp is %+v", v.Clamp)
		}
	}
	_, err = p.Signed(approved, now, now.Add(5*time.Minute-time.Second))
	wantSentence(t, err, errkind.Unavailable, "ends certificates at 2027-01-15T12:04:59Z", "less than the minimum lifetime of profile workload, 5m0s")
}
