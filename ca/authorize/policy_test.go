package authorize_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

const (
	vm = "spiffe://example.org/vm/db-1"
	ci = "spiffe://example.org/ci/example/shop"

	// services are the names of services in the caller's own namespace.
	services = `has(principal.kubernetes) && request.uris.size() == 0 && request.ip_addresses.size() == 0 && request.dns_names.all(n,
  n.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?[.][a-z0-9-]+[.]svc([.]cluster[.]local)?$") && n.split(".")[1] == principal.kubernetes.namespace)`
	host      = `principal.method == "join_token" && principal.path.startsWith("/vm/") && request.dns_names == [principal.path.substring(4) + ".example.org"]`
	job       = `principal.oidc.provider == "ci" && principal.oidc.claims.repository == "example/shop" && principal.oidc.claims.ref == "refs/heads/main" && request.dns_names == ["shop.ci.example.org"]`
	other     = `principal.kubernetes.namespace == "web" && request.uris == ["spiffe://example.org/gateway/" + principal.kubernetes.service_account]`
	addresses = `principal.kubernetes.namespace == "web" && request.ip_addresses.all(a, cidr("10.0.0.0/8").containsIP(a))`
	broken    = `request.dns_names.size() > 0 && principal.oidc.claims.nothing == "x"`
)

func allow(name, when string, profiles ...string) authorize.Entry {
	return authorize.Entry{Condition: &authorize.Condition{Name: name, Effect: authorize.Allow, When: when, Profiles: profiles}}
}

func deny(name, when string, profiles ...string) authorize.Entry {
	return authorize.Entry{Condition: &authorize.Condition{Name: name, Effect: authorize.Deny, When: when, Profiles: profiles}}
}

func capped(e authorize.Entry, most time.Duration) authorize.Entry {
	e.Condition.MaxLifetime = most
	return e
}

// policyConfig has a rule of each sort.
func policyConfig() authorize.PolicyConfig {
	g := grant()
	return authorize.PolicyConfig{
		TrustDomain: spiffeid.RequireTrustDomainFromString("example.org"), ServerProfile: "chancery-server",
		Server: authorize.Server("chancery-server", hosts("ca.example.org")),
		First:  []authorize.Named{{Name: "self", Rule: authorize.Self()}},
		Rules: []authorize.Entry{
			{Grant: &g},
			capped(allow("services", services, "tls"), time.Hour),
			deny("no-prod", `request.dns_names.exists(n, n.contains("prod"))`),
			allow("host", host, "tls"),
			capped(allow("job", job), 10*time.Minute),
			allow("other", other, "workload"),
			allow("addresses", addresses, "tls"),
			deny("no-default-on-fridays", `principal.kubernetes.node == "friday"`),
			allow("wild", `request.dns_names == ["*.web.example.org"] && principal.kubernetes.service_account == "wild"`, "tls"),
			allow("anything", `request.uris.size() + request.dns_names.size() + request.ip_addresses.size() > 0 && principal.id == "spiffe://example.org/admin"`),
			allow("rsa", `request.key.startsWith("rsa-") && request.lifetime <= duration("1h") && request.door == "istio" && request.dns_names == ["rsa.example.org"]`),
		},
	}
}

func policy(t testing.TB, change ...func(*authorize.PolicyConfig)) *authorize.Policy {
	t.Helper()
	c := policyConfig()
	for _, f := range change {
		f(&c)
	}
	p, err := authorize.NewPolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pod returns the request of a pod of the namespace web for names under tls.
func pod(names ...string) authorize.Request {
	return authorize.Request{
		Principal: &identity.Principal{
			ID: spiffeid.RequireFromString("spiffe://example.org/ns/web/sa/shop"), Method: identity.MethodKubernetes,
			Kubernetes: &identity.Kubernetes{Cluster: "local", Namespace: "web", ServiceAccount: "shop", PodName: "shop-1", NodeName: "n1", Verification: identity.VerifiedLive},
		},
		Profile: "tls", Names: hosts(names...), Lifetime: 24 * time.Hour, Door: "chancery", Key: "ecdsa-p256",
	}
}

func machine(names ...string) authorize.Request {
	r := pod(names...)
	r.Principal = &identity.Principal{ID: spiffeid.RequireFromString(vm), Method: identity.MethodJoinToken}
	return r
}

func pipeline(names ...string) authorize.Request {
	r := pod(names...)
	r.Principal = &identity.Principal{ID: spiffeid.RequireFromString(ci), Method: identity.MethodOIDC, OIDC: &identity.OIDC{
		Provider: "ci", Issuer: "https://ci.example.org", Subject: "repo:example/shop", Claims: map[string]any{"repository": "example/shop", "ref": "refs/heads/main"},
	}}
	return r
}

func uris(r authorize.Request, uris ...string) authorize.Request {
	r.Profile, r.Names = "workload", identity.Names{URIs: uris}
	return r
}

func with(r authorize.Request, change func(*authorize.Request)) authorize.Request {
	change(&r)
	return r
}

func raw(r authorize.Request, names ...string) authorize.Request {
	r.Names = identity.Names{DNS: names}
	return r
}

func TestPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		request authorize.Request
		rule    string // that decided; empty for none
		reason  errkind.Reason
		most    time.Duration
	}{
		// built in
		"its own identity":                 {uris(pod(), "spiffe://example.org/ns/web/sa/shop"), "self", "", 0},
		"another's identity":               {uris(pod(), "spiffe://example.org/ns/web/sa/other"), "", errkind.NotAllowed, 0},
		"the server":                       {with(pod("ca.example.org"), func(r *authorize.Request) { r.Profile, r.Principal.Method = "chancery-server", identity.MethodServer }), "server", "", 0},
		"the server, another name":         {with(pod("web.web.svc"), func(r *authorize.Request) { r.Profile, r.Principal.Method = "chancery-server", identity.MethodServer }), "", errkind.NotAllowed, 0},
		"the server, another profile":      {with(pod("web.web.svc"), func(r *authorize.Request) { r.Principal.Method = identity.MethodServer }), "", errkind.NotAllowed, 0},
		"a pod under the server's profile": {with(pod("ca.example.org"), func(r *authorize.Request) { r.Profile = "chancery-server" }), "", errkind.NotAllowed, 0},
		"an admin under the server's profile": {with(pod("ca.example.org"), func(r *authorize.Request) {
			r.Profile = "chancery-server"
			r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin")
		}), "", errkind.NotAllowed, 0},
		"a grant":                      {with(pod("www.example.org"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString(web) }), "web-names", "", 0},
		"a grant to another":           {pod("www.example.org"), "", errkind.NotAllowed, 0},
		"nothing at all":               {pod(), "", errkind.NotAllowed, 0},
		"nothing at all, by the admin": {with(pod(), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "", errkind.NotAllowed, 0},

		// services of the own namespace
		"a service":                       {pod("shop.web.svc"), "services", "", time.Hour},
		"a service, in full":              {pod("shop.web.svc.cluster.local"), "services", "", time.Hour},
		"two services":                    {pod("a.web.svc", "b.web.svc"), "services", "", time.Hour},
		"a service of another namespace":  {pod("shop.db.svc"), "", errkind.NotAllowed, 0},
		"one of ours and one of another":  {pod("shop.web.svc", "shop.db.svc"), "", errkind.NotAllowed, 0},
		"a service in upper case":         {raw(pod(), "SHOP.web.svc"), "", errkind.NotAllowed, 0},
		"a namespace in upper case":       {raw(pod(), "shop.WEB.svc"), "", errkind.NotAllowed, 0},
		"a final dot":                     {raw(pod(), "shop.web.svc."), "", errkind.NotAllowed, 0},
		"a wildcard":                      {raw(pod(), "*.web.svc"), "", errkind.NotAllowed, 0},
		"a wildcard over namespaces":      {raw(pod(), "*.svc"), "", errkind.NotAllowed, 0},
		"no label":                        {raw(pod(), ".web.svc"), "", errkind.NotAllowed, 0},
		"an empty name":                   {raw(pod(), ""), "", errkind.NotAllowed, 0},
		"a label too many":                {raw(pod(), "a.shop.web.svc"), "", errkind.NotAllowed, 0},
		"the namespace twice":             {raw(pod(), "shop.db.web.svc"), "", errkind.NotAllowed, 0},
		"a domain behind":                 {raw(pod(), "shop.web.svc.evil.org"), "", errkind.NotAllowed, 0},
		"a Cyrillic letter":               {raw(pod(), "shор.web.svc"), "", errkind.NotAllowed, 0},
		"a full-width dot":                {raw(pod(), "shop。web.svc"), "", errkind.NotAllowed, 0},
		"a Kelvin sign":                   {raw(pod(), "\u212a.web.svc"), "", errkind.NotAllowed, 0},
		"a line break":                    {raw(pod(), "shop.web.svc\n"), "", errkind.NotAllowed, 0},
		"a line break and more":           {raw(pod(), "shop.web.svc\nevil"), "", errkind.NotAllowed, 0},
		"a NUL":                           {raw(pod(), "shop.web.svc\x00.evil.org"), "", errkind.NotAllowed, 0},
		"a space":                         {raw(pod(), " shop.web.svc"), "", errkind.NotAllowed, 0},
		"no UTF-8":                        {raw(pod(), "shop\xff.web.svc"), "", errkind.NotAllowed, 0},
		"an address as a name":            {raw(pod(), "10.0.0.1"), "", errkind.NotAllowed, 0},
		"a service and an address":        {pod("shop.web.svc", "10.0.0.1"), "", errkind.NotAllowed, 0},
		"a service and a URI":             {with(pod("shop.web.svc"), func(r *authorize.Request) { r.Names.URIs = []string{"spiffe://example.org/ns/web/sa/shop"} }), "", errkind.NotAllowed, 0},
		"a service under another profile": {with(pod("shop.web.svc"), func(r *authorize.Request) { r.Profile = "other" }), "", errkind.NotAllowed, 0},
		"a service for a machine":         {machine("shop.web.svc"), "", errkind.NotAllowed, 0},
		"the empty namespace":             {with(raw(pod(), "shop..svc"), func(r *authorize.Request) { r.Principal.Kubernetes = &identity.Kubernetes{} }), "", errkind.NotAllowed, 0},

		// machines, jobs, other paths, addresses
		"a machine's name":                     {machine("db-1.example.org"), "host", "", 0},
		"another machine's name":               {machine("db-2.example.org"), "", errkind.NotAllowed, 0},
		"a machine's name twice":               {raw(machine(), "db-1.example.org", "db-1.example.org"), "", errkind.NotAllowed, 0},
		"a machine's name and another":         {machine("db-1.example.org", "a.example.org"), "", errkind.NotAllowed, 0},
		"a machine's name for a pod":           {with(machine("db-1.example.org"), func(r *authorize.Request) { r.Principal.Method = identity.MethodKubernetes }), "", errkind.NotAllowed, 0},
		"a job's name":                         {pipeline("shop.ci.example.org"), "job", "", 10 * time.Minute},
		"a job of a branch":                    {with(pipeline("shop.ci.example.org"), func(r *authorize.Request) { r.Principal.OIDC.Claims["ref"] = "refs/heads/x" }), "", errkind.NotAllowed, 0},
		"a job whose claim is a list":          {with(pipeline("shop.ci.example.org"), func(r *authorize.Request) { r.Principal.OIDC.Claims["ref"] = []any{"refs/heads/main"} }), "", errkind.NotAllowed, 0},
		"a job whose claim is null":            {with(pipeline("shop.ci.example.org"), func(r *authorize.Request) { r.Principal.OIDC.Claims["ref"] = nil }), "", errkind.NotAllowed, 0},
		"a job without the claim":              {with(pipeline("shop.ci.example.org"), func(r *authorize.Request) { delete(r.Principal.OIDC.Claims, "ref") }), "", errkind.NotAllowed, 0},
		"a job without claims":                 {with(pipeline("shop.ci.example.org"), func(r *authorize.Request) { r.Principal.OIDC.Claims = nil }), "", errkind.NotAllowed, 0},
		"a job of another provider":            {with(pipeline("shop.ci.example.org"), func(r *authorize.Request) { r.Principal.OIDC.Provider = "ci2" }), "", errkind.NotAllowed, 0},
		"another path":                         {uris(pod(), "spiffe://example.org/gateway/shop"), "other", "", 0},
		"another path, too deep":               {uris(pod(), "spiffe://example.org/gateway/shop/x"), "", errkind.NotAllowed, 0},
		"another path and one's own":           {uris(pod(), "spiffe://example.org/gateway/shop", "spiffe://example.org/ns/web/sa/shop"), "", errkind.NotAllowed, 0},
		"another path under another profile":   {with(uris(pod(), "spiffe://example.org/gateway/shop"), func(r *authorize.Request) { r.Profile = "tls" }), "", errkind.NotAllowed, 0},
		"an address":                           {pod("10.1.2.3"), "addresses", "", 0},
		"addresses":                            {pod("10.1.2.3", "10.255.255.255"), "addresses", "", 0},
		"an address outside":                   {pod("11.1.2.3"), "", errkind.NotAllowed, 0},
		"one address outside":                  {pod("10.1.2.3", "192.0.2.1"), "", errkind.NotAllowed, 0},
		"an address of IPv6":                   {pod("2001:db8::1"), "", errkind.NotAllowed, 0},
		"an address and an unknown name":       {pod("10.1.2.3", "evil.example.org"), "", errkind.NotAllowed, 0}, // the rule does not look at names
		"a name that satisfies all of nothing": {pod("evil.example.org"), "", errkind.NotAllowed, 0},
		"a wildcard, granted":                  {with(pod("*.web.example.org"), func(r *authorize.Request) { r.Principal.Kubernetes.ServiceAccount = "wild" }), "wild", "", 0},
		"another wildcard":                     {with(pod("*.example.org"), func(r *authorize.Request) { r.Principal.Kubernetes.ServiceAccount = "wild" }), "", errkind.NotAllowed, 0},
		"key, lifetime and door":               {with(pod("rsa.example.org"), func(r *authorize.Request) { r.Key, r.Door, r.Lifetime = "rsa-2048", "istio", time.Hour }), "rsa", "", 0},
		"another key":                          {with(pod("rsa.example.org"), func(r *authorize.Request) { r.Door, r.Lifetime = "istio", time.Hour }), "", errkind.NotAllowed, 0},
		"another door":                         {with(pod("rsa.example.org"), func(r *authorize.Request) { r.Key, r.Lifetime = "rsa-2048", time.Hour }), "", errkind.NotAllowed, 0},
		"a longer life":                        {with(pod("rsa.example.org"), func(r *authorize.Request) { r.Key, r.Door, r.Lifetime = "rsa-2048", "istio", 2*time.Hour }), "", errkind.NotAllowed, 0},

		// denials
		"a denied name":               {pod("prod.web.svc"), "no-prod", errkind.PolicyDenied, 0},
		"a denied name among others":  {pod("shop.web.svc", "prod.web.svc"), "no-prod", errkind.PolicyDenied, 0},
		"one's own identity, denied":  {with(uris(pod(), "spiffe://example.org/ns/web/sa/shop"), func(r *authorize.Request) { r.Principal.Kubernetes.NodeName = "friday" }), "no-default-on-fridays", errkind.PolicyDenied, 0},
		"a denied name for the admin": {with(pod("prod.example.org"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "no-prod", errkind.PolicyDenied, 0},

		// what no rule can grant
		"the admin, any name":              {with(pod("a.b"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", "", 0},
		"the admin, another path":          {with(uris(pod(), "spiffe://example.org/x"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", "", 0},
		"another trust domain":             {with(uris(pod(), "spiffe://example.net/x"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", errkind.NotAllowed, 0},
		"a trust domain that begins alike": {with(uris(pod(), "spiffe://example.org.evil/x"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", errkind.NotAllowed, 0},
		"the trust domain itself":          {with(uris(pod(), "spiffe://example.org"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", errkind.NotAllowed, 0},
		"the authority's own path":         {with(uris(pod(), "spiffe://example.org/chancery/server"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", errkind.NotAllowed, 0},
		"the authority's own path, bare":   {with(uris(pod(), "spiffe://example.org/chancery"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", errkind.NotAllowed, 0},
		"a path that begins alike":         {with(uris(pod(), "spiffe://example.org/chancery-x"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", "", 0},
		"a URI that is no SPIFFE ID":       {with(uris(pod(), "https://example.org/x"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", errkind.NotAllowed, 0},
		"one good URI and a foreign one":   {with(uris(pod(), "spiffe://example.org/x", "spiffe://example.net/x"), func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/admin") }), "anything", errkind.NotAllowed, 0},
		"one's own identity below /chancery": {with(uris(pod(), "spiffe://example.org/chancery/x"), func(r *authorize.Request) {
			r.Principal.ID = spiffeid.RequireFromString("spiffe://example.org/chancery/x")
		}), "self", errkind.NotAllowed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy(t)
			before := test.request.Names.String()
			verdict, ok, err := p.Decide(t.Context(), test.request)
			if ok != (test.reason == "") || ok != (err == nil) || verdict.Rule != test.rule || err != nil && (errkind.Of(err) != errkind.Denied || errkind.ReasonOf(err) != test.reason) {
				t.Errorf("got %+v, %t, %v (%s)", verdict, ok, err, errkind.ReasonOf(err))
			}
			if ok && verdict.MaxLifetime != test.most {
				t.Errorf("the cap is %s, want %s", verdict.MaxLifetime, test.most)
			}
			if test.request.Names.String() != before {
				t.Error("the request changed")
			}
			wantSameExplained(t, p, test.request, verdict, err)
		})
	}
}

// wantSameExplained wants Explain to decide as Decide does, to ask every rule and to mark at most one that decided, by name.
func wantSameExplained(t *testing.T, p *authorize.Policy, request authorize.Request, verdict authorize.Verdict, err error) {
	t.Helper()
	e := p.Explain(t.Context(), request)
	if e.Verdict != verdict || fmt.Sprint(e.Err) != fmt.Sprint(err) {
		t.Errorf("explained as %+v, %v", e.Verdict, e.Err)
	}
	decided := ""
	for _, o := range e.Outcomes {
		if o.Decided {
			decided += o.Rule
		}
	}
	if decided != verdict.Rule {
		t.Errorf("the rule %q decided, explained as %q", verdict.Rule, decided)
	}
	if server := request.Profile == "chancery-server" || request.Principal.Method == identity.MethodServer; !server && len(e.Outcomes) != 2+len(policyConfig().Rules) {
		t.Errorf("%d rules were asked", len(e.Outcomes))
	}
}

func TestPolicyThatFails(t *testing.T) {
	request := pod("shop.web.svc")
	t.Run("a denial that cannot be evaluated denies", func(t *testing.T) {
		p := policy(t, func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, deny("broken", broken)) })
		verdict, ok, err := p.Decide(t.Context(), request)
		if ok || verdict.Rule != "broken" || errkind.ReasonOf(err) != errkind.PolicyFailed || errkind.Of(err) != errkind.Denied {
			t.Errorf("got %+v, %t, %v", verdict, ok, err)
		}
		if !strings.Contains(err.Error(), "no such key: nothing") || strings.Contains(errkind.Message(err), "no such key") || !strings.Contains(errkind.Message(err), `"broken"`) {
			t.Errorf("the caller learns %q, the log %q", errkind.Message(err), err)
		}
	})
	t.Run("an allowance that cannot be evaluated does not allow", func(t *testing.T) {
		p := policy(t, func(c *authorize.PolicyConfig) { c.Rules = []authorize.Entry{allow("broken", broken)} })
		_, ok, err := p.Decide(t.Context(), request)
		if ok || errkind.ReasonOf(err) != errkind.NotAllowed || !strings.Contains(err.Error(), `rule "broken": no such key: nothing`) || strings.Contains(errkind.Message(err), "broken") {
			t.Errorf("got %t, %v; the caller learns %q", ok, err, errkind.Message(err))
		}
	})
	t.Run("nor does it keep others from allowing", func(t *testing.T) {
		p := policy(t, func(c *authorize.PolicyConfig) {
			c.Rules = slices.Concat([]authorize.Entry{allow("broken", broken)}, c.Rules)
		})
		if verdict, ok, err := p.Decide(t.Context(), request); !ok || verdict.Rule != "services" {
			t.Errorf("got %+v, %t, %v", verdict, ok, err)
		}
		i := slices.IndexFunc(p.Explain(t.Context(), request).Outcomes, func(o authorize.Outcome) bool {
			return o.Rule == "broken" && o.Answer == authorize.Failed && o.Detail == "no such key: nothing"
		})
		if i < 0 {
			t.Errorf("the fault is not explained: %+v", p.Explain(t.Context(), request).Outcomes)
		}
	})
	t.Run("one's own identity is denied too", func(t *testing.T) {
		p := policy(t, func(c *authorize.PolicyConfig) {
			c.Rules = append(c.Rules, deny("broken", `principal.oidc.claims.x == 1`))
		})
		if _, ok, err := p.Decide(t.Context(), uris(pod(), "spiffe://example.org/ns/web/sa/shop")); ok || errkind.ReasonOf(err) != errkind.PolicyFailed {
			t.Errorf("got %t, %v", ok, err)
		}
	})
	t.Run("the server is not denied", func(t *testing.T) {
		p := policy(t, func(c *authorize.PolicyConfig) {
			c.Rules = append(c.Rules, deny("all", "true"), deny("broken", broken))
		})
		own := pod("ca.example.org")
		own.Profile, own.Principal.Method = "chancery-server", identity.MethodServer
		if verdict, ok, err := p.Decide(t.Context(), own); !ok || verdict.Rule != "server" {
			t.Errorf("got %+v, %t, %v", verdict, ok, err)
		}
	})
	t.Run("a caller that is gone is not denied for good", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok, err := policy(t).Decide(ctx, request); ok || !errors.Is(err, context.Canceled) || errkind.Of(err) != errkind.Unavailable {
			t.Errorf("got %t, %v", ok, err)
		}
	})
	t.Run("more names than conditions are made for", func(t *testing.T) {
		many := pod()
		for i := range 101 {
			many.Names.DNS = append(many.Names.DNS, fmt.Sprintf("s%d.web.svc", i))
		}
		_, ok, err := policy(t).Decide(t.Context(), many) // the rules that deny are asked first
		if ok || errkind.ReasonOf(err) != errkind.PolicyFailed || !strings.Contains(err.Error(), "101 names of one kind") {
			t.Errorf("got %t, %v", ok, err)
		}
		many.Names.DNS = many.Names.DNS[:100]
		if _, ok, err := policy(t).Decide(t.Context(), many); !ok {
			t.Errorf("100 names: %v", err)
		}
		long := raw(pod(), strings.Repeat("a", 254))
		if _, ok, err := policy(t).Decide(t.Context(), long); ok || errkind.ReasonOf(err) != errkind.PolicyFailed {
			t.Errorf("a long name: %t, %v", ok, err)
		}
	})
	t.Run("built-in rules", func(t *testing.T) {
		refusing := func(err error) authorize.Rule {
			return func(context.Context, authorize.Request) (authorize.Verdict, bool, error) {
				return authorize.Verdict{}, false, err
			}
		}
		refused := errkind.New(errkind.Denied, "not on this node").Because(errkind.ProxyRefused)
		p := policy(t, func(c *authorize.PolicyConfig) {
			c.Last = []authorize.Named{{Name: "node-proxy", Rule: refusing(refused)}}
		})
		if verdict, ok, err := p.Decide(t.Context(), pod("nobody.example.org")); ok || verdict.Rule != "node-proxy" || !errors.Is(err, refused) {
			t.Errorf("got %+v, %t, %v", verdict, ok, err)
		}
		if verdict, ok, err := p.Decide(t.Context(), request); !ok || verdict.Rule != "services" {
			t.Errorf("got %+v, %t, %v", verdict, ok, err)
		}
		away := errkind.New(errkind.Unavailable, "not known yet").After(time.Second)
		p = policy(t, func(c *authorize.PolicyConfig) {
			c.Last = []authorize.Named{{Name: "node-proxy", Rule: refusing(away)}}
		})
		if _, ok, err := p.Decide(t.Context(), pod("nobody.example.org")); ok || errkind.Of(err) != errkind.Unavailable {
			t.Errorf("got %t, %v", ok, err)
		}
	})
}

// TestPolicyBudget wants the rules of one request to stop when they have cost too much together.
func TestPolicyBudget(t *testing.T) {
	const costly = `request.dns_names.all(a, request.dns_names.all(b, a != b + "x"))`
	p := policy(t, func(c *authorize.PolicyConfig) {
		for i := range 400 {
			c.Rules = append(c.Rules, deny(fmt.Sprintf("costly-%d", i), "!("+costly+") && false"))
		}
	})
	request := pod()
	for i := range 100 {
		request.Names.DNS = append(request.Names.DNS, fmt.Sprintf("%s%d.web.svc", strings.Repeat("a", 200), i))
	}
	began := time.Now()
	_, ok, err := p.Decide(t.Context(), request)
	if ok || errkind.ReasonOf(err) != errkind.PolicyFailed || !strings.Contains(err.Error(), "used up the") {
		t.Errorf("got %t, %v", ok, err)
	}
	t.Logf("stopped after %s", time.Since(began))
}

func TestNewPolicyRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*authorize.PolicyConfig)
		want   string
	}{
		"no trust domain": {func(c *authorize.PolicyConfig) { c.TrustDomain = spiffeid.TrustDomain{} }, "needs a trust domain"},
		"no server":       {func(c *authorize.PolicyConfig) { c.Server = nil }, "needs a trust domain, and the server's own"},
		"a name twice":    {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, c.Rules[0]) }, `rule "web-names": there is another rule of this name`},
		"a built-in name": {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, allow("self", host)) }, `rule "self": there is another rule of this name`},
		"neither":         {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, authorize.Entry{}) }, "a grant or a condition"},
		"no name":         {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, allow("", host)) }, "it needs a name"},
		"no effect":       {func(c *authorize.PolicyConfig) { c.Rules[1].Condition.Effect = "" }, `effect "" is not allow or deny`},
		"a capped denial": {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, capped(deny("x", "true"), 1)) }, "a rule that denies has none"},
		"a bad grant":     {func(c *authorize.PolicyConfig) { c.Rules[0].Grant.Identity = "*" }, `rule "web-names": identity`},
		"a typo": {func(c *authorize.PolicyConfig) {
			c.Rules = append(c.Rules, allow("x", "request.dns_names == ['a'] &&\n princpal.id == ''"))
		}, `rule "x": when: line 2, column 2: undeclared reference to 'princpal'`},
		"a typo in a field": {func(c *authorize.PolicyConfig) {
			c.Rules = append(c.Rules, allow("x", "principal.kubernetes.namespce == 'a'"))
		}, `rule "x": when: line 1, column 21: undefined field 'namespce'`},
		"a claim as a field": {func(c *authorize.PolicyConfig) {
			c.Rules = append(c.Rules, allow("x", "principal.oidc.repository == 'a'"))
		}, `undefined field 'repository'`},
		"a wrong type":           {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, allow("x", "request.dns_names == 'a'")) }, `line 1, column 19: found no matching overload for '_==_' applied to '(list(string), string)'`},
		"a lifetime as text":     {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, allow("x", "request.lifetime < '1h'")) }, "found no matching overload"},
		"no bool":                {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, allow("x", "request.dns_names[0]")) }, "it has to yield a bool and yields a string"},
		"no syntax":              {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, allow("x", "request.dns_names == [")) }, "when: line 1, column 23: Syntax error"},
		"empty":                  {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, allow("x", " ")) }, "the expression is empty"},
		"for every name":         {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, allow("x", "principal.id == 'a'")) }, "reads none of request.uris, request.dns_names and request.ip_addresses"},
		"for every name, by has": {func(c *authorize.PolicyConfig) { c.Rules = append(c.Rules, allow("x", "has(request.dns_names)")) }, "reads none of"},
		"the time": {func(c *authorize.PolicyConfig) {
			c.Rules = append(c.Rules, deny("x", "now() > timestamp('2026-01-01T00:00:00Z')"))
		}, "undeclared reference to 'now'"},
		"costly": {func(c *authorize.PolicyConfig) {
			c.Rules = append(c.Rules, deny("x", "request.uris.all(a, request.uris.all(b, request.uris.all(c, a == b && b == c)))"))
		}, "it could cost"},
	} {
		t.Run(name, func(t *testing.T) {
			c := policyConfig()
			test.change(&c)
			_, err := authorize.NewPolicy(c)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
		})
	}
}

func TestPolicyKeepsItsConfig(t *testing.T) {
	c := policyConfig()
	p, err := authorize.NewPolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Rules[1].Condition.Profiles[0] = "other"
	c.Rules[1].Condition.MaxLifetime = 0
	c.First[0] = authorize.Named{Name: "none", Rule: authorize.First()}
	if verdict, ok, err := p.Decide(t.Context(), pod("shop.web.svc")); !ok || verdict.MaxLifetime != time.Hour {
		t.Errorf("a policy changes with what it was made of: %+v, %v", verdict, err)
	}
}

// TestPolicyAtOnce is for the race detector, and wants each request to get its own answer.
func TestPolicyAtOnce(t *testing.T) {
	p := policy(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				request, want := pod(fmt.Sprintf("s%d-%d.web.svc", i, j)), "services"
				if j%2 == 0 {
					request, want = machine("db-1.example.org"), "host"
				}
				if verdict, ok, err := p.Decide(t.Context(), request); !ok || verdict.Rule != want {
					t.Errorf("got %+v, %v", verdict, err)
				}
				p.Explain(t.Context(), request)
			}
		})
	}
	wg.Wait()
}

// TestAbsentGroups reads every field of every group that a caller lacks.
func TestAbsentGroups(t *testing.T) {
	for _, when := range []string{
		`principal.kubernetes.cluster + principal.kubernetes.namespace + principal.kubernetes.service_account + principal.kubernetes.pod + principal.kubernetes.node + principal.kubernetes.verification == ""`,
		`principal.oidc.provider + principal.oidc.issuer + principal.oidc.subject == "" && principal.oidc.claims == {}`,
		`principal.certificate.serial + principal.certificate.origin == "" && !principal.certificate.grace`,
		`!has(principal.kubernetes) && !has(principal.oidc) && !has(principal.certificate) && !has(principal.oidc.claims) && !has(principal.credential_id)`,
		`principal.id == "spiffe://example.org/vm/db-1" && principal.path == "/vm/db-1" && principal.trust_domain == "example.org" && principal.method == "join_token"`,
		`request.uris == [] && request.ip_addresses == ["192.0.2.1", "2001:db8::1"] && request.profile == "tls" && request.lifetime == duration("24h") && request.door == "chancery" && request.key == "ecdsa-p256"`,
		`!has(request.uris) && has(request.dns_names) && has(request.ip_addresses)`,
	} {
		p := policy(t, func(c *authorize.PolicyConfig) { c.Rules = []authorize.Entry{deny("x", when)} })
		request := machine("a.example.org", "192.0.2.1", "2001:db8::1")
		if _, ok, err := p.Decide(t.Context(), request); ok || errkind.ReasonOf(err) != errkind.PolicyDenied {
			t.Errorf("%s: %v", when, err)
		}
	}
	full := machine("a.example.org")
	full.Principal.Certificate = &identity.Certificate{Serial: "0a", Origin: identity.MethodJoinToken, Grace: true}
	p := policy(t, func(c *authorize.PolicyConfig) {
		c.Rules = []authorize.Entry{deny("x", `has(principal.certificate) && principal.certificate.grace && principal.certificate.serial == "0a" && principal.certificate.origin == "join_token"`)}
	})
	if _, _, err := p.Decide(t.Context(), full); errkind.ReasonOf(err) != errkind.PolicyDenied {
		t.Errorf("a certificate: %v", err)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		for name, profile := range map[string]string{"asked": "tls", "other profile": "elsewhere"} {
			b.Run(fmt.Sprintf("%d rules/%s", n, name), func(b *testing.B) {
				p := policy(b, func(c *authorize.PolicyConfig) {
					c.Rules = nil
					for i := range n - 1 {
						c.Rules = append(c.Rules, allow(fmt.Sprintf("r%d", i), fmt.Sprintf(`principal.kubernetes.namespace == "ns-%d" && request.dns_names.all(n, n.endsWith(".ns-%d.svc"))`, i, i), profile))
					}
					c.Rules = append(c.Rules, allow("last", services, "tls"))
				})
				request := pod("shop.web.svc", "shop.web.svc.cluster.local")
				b.ReportAllocs()
				for b.Loop() {
					if _, ok, err := p.Decide(b.Context(), request); !ok {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
