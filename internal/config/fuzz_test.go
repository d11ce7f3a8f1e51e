package config

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzParse holds Parse to a rule: what it accepts renders to text that loads, from any folder, to the same configuration with no setting
// left to a default, and what it refuses has a problem to show.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add(defaultYAML)
	f.Add([]byte("rules: [{name: a, effect: deny, profiles: [serving], when: \"a\\n  b\"}, {name: b, max_lifetime: 1d, when: c}]"))
	f.Add([]byte("rules: [{name: a, profile: serving, identity: spiffe://cluster.local/a/*, dns: ['*.b'], ip: [10.0.0.0/8, '::1']}]"))
	f.Add([]byte("profiles: {x: {names: dns, usages: [server_auth], default_lifetime: 1d1h, min_lifetime: 1.5h, max_lifetime: 90d}}"))
	f.Add([]byte("ledger: {sqlite: {path: \"\\u2028 \\uFEFF é\"}}\nlog: &a {level: info}\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz.yaml", data, "/etc/chancery")
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a problem")
			}
			return
		}
		var out bytes.Buffer
		if err := c.Render(&out); err != nil {
			t.Fatal(err)
		}
		again, err := Parse("again.yaml", out.Bytes(), "/elsewhere")
		if err != nil {
			t.Fatalf("rendered configuration is refused: %v\n%s", err, out.Bytes())
		}
		if !reflect.DeepEqual(values(c), values(again)) {
			t.Fatalf("rendered configuration differs:\n%s", out.Bytes())
		}
		for _, s := range again.Settings() {
			if s.Origin == "default" {
				t.Errorf("%s was not rendered", s.Path)
			}
		}
		if again.origins = c.origins; !reflect.DeepEqual(c, again) {
			t.Errorf("values differ in more than their text:\n%+v\n%+v", c, again)
		}
	})
}
