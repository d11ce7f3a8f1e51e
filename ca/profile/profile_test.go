package profile_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math"
	"math/big"
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
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
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
			v, err := p.Validity(now.Add(test.now), profile.Wanted{Lifetime: test.asked}, w)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.NotAfter.Sub(now); got != test.granted {
				t.Errorf("it lives %s, want %s", got, test.granted)
			}
			if got := v.NotBefore.Sub(now); got != test.before {
				t.Errorf("it begins at %s, want %s", got, test.before)
			}
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
			_, err := newProfile(t, func(*profile.Config) {}).Validity(now, profile.Wanted{Lifetime: test.asked}, w)
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
	const never = -1
	half := func(shortest, longest time.Duration) time.Duration { return (shortest + longest) / 2 }
	always := func(d time.Duration) func(shortest, longest time.Duration) time.Duration {
		return func(time.Duration, time.Duration) time.Duration { return d }
	}
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		jitter         float64
		asked          time.Duration
		window         time.Duration // that the issuers have left; zero for much
		choose         func(shortest, longest time.Duration) time.Duration
		shortest, life time.Duration // what may be chosen at least, or never; and what comes of it
	}{
		"none":                      {0, day, 0, half, never, day},
		"less than nothing":         {-1, day, 0, half, never, day},
		"no number":                 {math.NaN(), day, 0, half, never, day},
		"a quarter":                 {0.25, day, 0, half, 18 * time.Hour, 21 * time.Hour},
		"everything":                {1, day, 0, half, 5 * time.Minute, 12*time.Hour + 150*time.Second},
		"more than everything":      {7, day, 0, half, 5 * time.Minute, 12*time.Hour + 150*time.Second},
		"infinitely much":           {math.Inf(1), day, 0, half, 5 * time.Minute, 12*time.Hour + 150*time.Second},
		"a tenth of the minimum":    {0.1, 5 * time.Minute, 0, half, never, 5 * time.Minute},
		"not below the minimum":     {0.5, 6 * time.Minute, 0, half, 5 * time.Minute, 330 * time.Second},
		"half of the maximum":       {0.5, 1000 * time.Hour, 0, half, 84 * time.Hour, 126 * time.Hour},
		"half of what issuers have": {0.5, day, 2 * time.Hour, half, time.Hour, 90 * time.Minute},
		"whole seconds":             {0.5, time.Hour, 0, always(40*time.Minute + 999*time.Millisecond), 30 * time.Minute, 40 * time.Minute},
		"too little is chosen":      {0.25, day, 0, always(1), 18 * time.Hour, 18 * time.Hour},
		"too much is chosen":        {0.25, day, 0, always(100 * day), 18 * time.Hour, day},
		"nobody chooses":            {0.25, day, 0, nil, never, day},
	} {
		t.Run(name, func(t *testing.T) {
			w, longest := window(), min(test.asked, 168*time.Hour)
			if test.window > 0 {
				w.NotAfter, longest = now.Add(test.window), test.window
			}
			wanted := profile.Wanted{Lifetime: test.asked, Jitter: test.jitter}
			asked := time.Duration(never)
			if test.choose != nil {
				wanted.Shorten = func(shortest, most time.Duration) time.Duration {
					asked = shortest
					if most != longest {
						t.Errorf("at most %s may be chosen, want %s", most, longest)
					}
					return test.choose(shortest, most)
				}
			}
			v, err := newProfile(t, func(*profile.Config) {}).Validity(now, wanted, w)
			if err != nil {
				t.Fatal(err)
			}
			if life := v.NotAfter.Sub(now); life != test.life || asked != test.shortest {
				t.Errorf("at least %s may be chosen and it lives %s, want %s and %s", asked, life, test.shortest, test.life)
			}
			if clamped := v.Clamp.Reason != ""; clamped != (test.asked > longest) || clamped && v.Clamp.Granted != test.life {
				t.Errorf("the clamp is %+v", v.Clamp)
			}
		})
	}
}

func TestSigned(t *testing.T) {
	p := newProfile(t, func(*profile.Config) {})
	approved, err := p.Validity(now, profile.Wanted{Lifetime: time.Hour}, window())
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
		if v.Clamp.Asked != time.Hour || v.Clamp.Granted != life || !strings.Contains(v.Clamp.Reason, "the signing backend ends it at 2027-01-15T12:") {
			t.Errorf("the clamp is %+v", v.Clamp)
		}
	}
	_, err = p.Signed(approved, now, now.Add(5*time.Minute-time.Second))
	wantSentence(t, err, errkind.Unavailable, "ends certificates at 2027-01-15T12:04:59Z", "less than the minimum lifetime of profile workload, 5m0s")
}
