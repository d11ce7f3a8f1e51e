package tokenreview

import (
	"testing"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

func TestOnlinePinsTheIssuer(t *testing.T) {
	const ours = "https://kubernetes.default.svc.cluster.local"
	for name, test := range map[string]struct {
		issuer any
		pinned string
		good   bool
	}{
		"ours":                  {ours, ours, true},
		"nothing pinned":        {"https://else.example", "", true},
		"another":               {"https://else.example", ours, false},
		"with a slash":          {ours + "/", ours, false},
		"in upper case":         {"HTTPS://kubernetes.default.svc.cluster.local", ours, false},
		"none":                  {nil, ours, false},
		"a list with ours":      {[]string{ours}, ours, false},
		"pinned with the slash": {ours, ours + "/", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *Config) { c.Issuer = test.pinned })
			token := goodToken(start)
			token.claims["iss"] = test.issuer
			_, err := f.ask(t.Context(), token.String())
			if test.good {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wantKind(t, err, errkind.Unauthenticated, "issuer (iss) is not")
			if reason := errkind.ReasonOf(err); reason != errkind.WrongIssuer {
				t.Errorf("the reason is %s", reason)
			}
			if len(f.cluster.sent) != 0 {
				t.Error("the cluster was asked")
			}
		})
	}
}

func TestOnlineUsesTheIdentityPath(t *testing.T) {
	path, err := identity.NewPath(trustDomain, "east", "/c/{cluster}/{namespace}/{service_account}")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(c *Config) { c.Identity = path })
	principal, err := f.ask(t.Context(), goodToken(start).String())
	if err != nil || principal.ID.String() != "spiffe://cluster.local/c/east/shop/cart" {
		t.Errorf("got %v, %v", principal, err)
	}
}
