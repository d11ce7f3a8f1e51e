package identity_test

import (
	"strings"
	"testing"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/identity"
)

func TestPath(t *testing.T) {
	domain := spiffeid.RequireTrustDomainFromString("example.org")
	for template, want := range map[string]string{
		identity.DefaultPath: "spiffe://example.org/ns/shop/sa/cart.v2",
		"/cluster/{cluster}/ns/{namespace}/{service_account}": "spiffe://example.org/cluster/east/ns/shop/cart.v2",
		"/k/{service_account}/{namespace}":                    "spiffe://example.org/k/cart.v2/shop",
	} {
		path, err := identity.NewPath(domain, "east", template)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if id, err := path.ID("shop", "cart.v2"); err != nil || id.String() != want {
			t.Errorf("%s makes %s, %v; want %s", template, id, err, want)
		}
		for _, hostile := range [][2]string{{"", "a"}, {"a", ""}, {"..", "a"}, {"a", "."}, {"a/b", "c"}, {"a", "b/c"}, {"a b", "c"}, {"ä", "c"}, {"a", "%2e"}} {
			if id, err := path.ID(hostile[0], hostile[1]); err == nil {
				t.Errorf("%s makes %s of %q", template, id, hostile)
			}
		}
	}
}

func TestPathRefuses(t *testing.T) {
	domain := spiffeid.RequireTrustDomainFromString("example.org")
	for template, want := range map[string]string{
		"":                                    "does not begin with /",
		"ns/{namespace}/sa/{service_account}": "does not begin with /",
		"/{namespace}/{service_account}":      "first segment",
		"/chancery/{namespace}/{service_account}": "first segment",
		"//{namespace}/{service_account}":         "a segment is fixed text",
		"/ns/{namespace}":                         "lacks the segment {service_account}",
		"/ns/sa/{service_account}":                "lacks the segment {namespace}",
		"/ns/{namespace}-{service_account}":       "lacks the segment",
		"/ns/{namespace}/{service_account}/":      "a segment is fixed text",
		"/ns/{namespace}/{service_account}/{pod}": "a segment is fixed text",
		"/n s/{namespace}/{service_account}":      "a segment is fixed text",
		"/../{namespace}/{service_account}":       "a segment is fixed text",
	} {
		if _, err := identity.NewPath(domain, "east", template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", template, err, want)
		}
	}
	if _, err := identity.NewPath(domain, "", "/c/{cluster}/{namespace}/{service_account}"); err == nil {
		t.Error("a cluster without a name has a path with its name")
	}
	if _, err := identity.NewPath(spiffeid.TrustDomain{}, "east", identity.DefaultPath); err == nil {
		t.Error("no trust domain")
	}
	if id, err := (identity.Path{}).ID("a", "b"); err == nil {
		t.Errorf("the zero path makes %s", id)
	}
}
