package profile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/profile"
)

// TestCap wants a cap to shorten what is longer, to say who set it, and to lengthen nothing.
func TestCap(t *testing.T) {
	p := newProfile(t, func(*profile.Config) {}) // 5m to 168h, 24h by default
	for name, test := range map[string]struct {
		asked, most, granted time.Duration
		clamp                string
	}{
		"no cap":                         {2 * time.Hour, 0, 2 * time.Hour, ""},
		"less than asked":                {2 * time.Hour, time.Hour, time.Hour, "rule x allows at most 1h0m0s"},
		"as much as asked":               {2 * time.Hour, 2 * time.Hour, 2 * time.Hour, ""},
		"more than asked":                {2 * time.Hour, 3 * time.Hour, 2 * time.Hour, ""},
		"less than the default":          {0, time.Hour, time.Hour, "rule x allows at most 1h0m0s"},
		"above the maximum":              {1000 * time.Hour, 500 * time.Hour, 168 * time.Hour, "the maximum of profile"},
		"below the maximum, more asked":  {1000 * time.Hour, time.Hour, time.Hour, "rule x allows at most 1h0m0s"},
		"as much as the profile's least": {2 * time.Hour, 5 * time.Minute, 5 * time.Minute, "rule x allows at most 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := p.Validity(now, profile.Wanted{Lifetime: test.asked, Cap: test.most, CapReason: "rule x"}, window())
			if err != nil {
				t.Fatal(err)
			}
			if got := v.NotAfter.Sub(now); got != test.granted {
				t.Errorf("it lives %s, want %s", got, test.granted)
			}
			if (v.Clamp.Reason == "") != (test.clamp == "") || !strings.Contains(v.Clamp.Reason, test.clamp) {
				t.Errorf("the clamp is %+v", v.Clamp)
			}
		})
	}
	_, err := p.Validity(now, profile.Wanted{Cap: time.Minute, CapReason: "rule x"}, window())
	wantSentence(t, err, errkind.Denied, "rule x allows at most 1m0s, which is below the minimum of profile")
	if errkind.ReasonOf(err) != errkind.LifetimeRefused {
		t.Errorf("the reason is %s", errkind.ReasonOf(err))
	}
}

func TestLifetime(t *testing.T) {
	p := newProfile(t, func(*profile.Config) {})
	for _, test := range []struct{ asked, want time.Duration }{{0, 24 * time.Hour}, {-1, 24 * time.Hour}, {time.Hour, time.Hour}, {1000 * time.Hour, 168 * time.Hour}, {1, 1}} {
		if got := p.Lifetime(test.asked); got != test.want {
			t.Errorf("%s asked: %s, want %s", test.asked, got, test.want)
		}
	}
}
