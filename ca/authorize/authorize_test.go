package authorize_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

const web = "spiffe://example.org/ns/default/sa/web"

// request returns the request of the workload web for its own identity.
func request() authorize.Request {
	return authorize.Request{
		Principal: &identity.Principal{ID: spiffeid.RequireFromString(web), Method: identity.MethodKubernetes}, Profile: "workload",
		Names: identity.Names{URIs: []string{web}},
	}
}

func hosts(names ...string) identity.Names {
	var out identity.Names
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			out.IPs = append(out.IPs, ip)
			continue
		}
		out.DNS = append(out.DNS, name)
	}
	return out.Normalize()
}

func TestSelf(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*authorize.Request)
		ok     bool
	}{
		"its own identity":                {func(*authorize.Request) {}, true},
		"under any profile":               {func(r *authorize.Request) { r.Profile = "other" }, true},
		"another identity":                {func(r *authorize.Request) { r.Names.URIs = []string{web + "2"} }, false},
		"an identity above":               {func(r *authorize.Request) { r.Names.URIs = []string{"spiffe://example.org/ns/default"} }, false},
		"an identity in another case":     {func(r *authorize.Request) { r.Names.URIs = []string{strings.ToUpper(web)} }, false},
		"its own and another":             {func(r *authorize.Request) { r.Names.URIs = []string{web, web + "2"} }, false},
		"its own twice":                   {func(r *authorize.Request) { r.Names.URIs = []string{web, web} }, false},
		"its own and a DNS name":          {func(r *authorize.Request) { r.Names.DNS = []string{"a.org"} }, false},
		"its own and an address":          {func(r *authorize.Request) { r.Names.IPs = hosts("192.0.2.1").IPs }, false},
		"nothing":                         {func(r *authorize.Request) { r.Names = identity.Names{} }, false},
		"the empty identity of nobody":    {func(r *authorize.Request) { r.Principal, r.Names.URIs = &identity.Principal{}, []string{""} }, false},
		"its own, one that is not nobody": {func(r *authorize.Request) { r.Principal = &identity.Principal{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			test.change(&r)
			rule, ok, err := authorize.Self()(t.Context(), r)
			if err != nil || ok != test.ok || ok && rule.Rule != "self" {
				t.Errorf("got %v, %t, %v", rule, ok, err)
			}
		})
	}
}

func TestServer(t *testing.T) {
	rule := authorize.Server("chancery-server", identity.Names{DNS: []string{"CA.example.org", "ca2.example.org"}, IPs: hosts("192.0.2.1").IPs})
	for name, test := range map[string]struct {
		change func(*authorize.Request)
		ok     bool
	}{
		"the server":      {func(*authorize.Request) {}, true},
		"a workload":      {func(r *authorize.Request) { r.Principal.Method = identity.MethodKubernetes }, false},
		"no method":       {func(r *authorize.Request) { r.Principal.Method = "" }, false},
		"another profile": {func(r *authorize.Request) { r.Profile = "workload" }, false},
		"fewer names":     {func(r *authorize.Request) { r.Names = hosts("ca.example.org", "192.0.2.1") }, false},
		"another name":    {func(r *authorize.Request) { r.Names = hosts("ca.example.org", "ca3.example.org", "192.0.2.1") }, false},
		"another name as well": {func(r *authorize.Request) {
			r.Names = hosts("ca.example.org", "ca2.example.org", "ca3.example.org", "192.0.2.1")
		}, false},
		"a URI as well": {func(r *authorize.Request) { r.Names.URIs = []string{web} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			r.Principal.Method, r.Profile, r.Names = identity.MethodServer, "chancery-server", hosts("ca2.example.org", "ca.example.org", "192.0.2.1")
			test.change(&r)
			got, ok, err := rule(t.Context(), r)
			if err != nil || ok != test.ok || ok && got.Rule != "server" {
				t.Errorf("got %v, %t, %v", got, ok, err)
			}
		})
	}
}

// grant is a Grant of which one test each changes something.
func grant() authorize.Grant {
	return authorize.Grant{
		Name: "web-names", Profile: "tls", Identity: "spiffe://example.org/ns/default/*", DNS: []string{"www.example.org", "*.web.example.org"},
		IPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/24"), netip.MustParsePrefix("2001:db8::1/128")},
	}
}

func TestGranted(t *testing.T) {
	identityOf := func(id string) func(*authorize.Request) {
		return func(r *authorize.Request) { r.Principal.ID = spiffeid.RequireFromString(id) }
	}
	names := func(names ...string) func(*authorize.Request) {
		return func(r *authorize.Request) { r.Names = hosts(names...) }
	}
	for name, test := range map[string]struct {
		change func(*authorize.Request)
		ok     bool
	}{
		"everything it covers":               {names("www.example.org", "a.web.example.org", "192.0.2.200", "2001:db8::1"), true},
		"an exact name":                      {names("www.example.org"), true},
		"one label before the suffix":        {names("a.web.example.org"), true},
		"the wildcard itself":                {names("*.web.example.org"), true},
		"the first address of the prefix":    {names("192.0.2.0"), true},
		"an address mapped into IPv6":        {names("::ffff:192.0.2.1"), true}, // normalized to IPv4
		"another name":                       {names("example.org"), false},
		"a name that ends alike":             {names("evil-www.example.org"), false},
		"two labels before the suffix":       {names("a.b.web.example.org"), false},
		"the suffix alone":                   {names("web.example.org"), false},
		"no label before the suffix":         {names(".web.example.org"), false},
		"a wildcard that is wider":           {names("*.example.org"), false},
		"a wildcard below":                   {names("*.a.web.example.org"), false},
		"a name with a final dot":            {names("www.example.org."), false},
		"a suffix that ends alike":           {names("a.xweb.example.org"), false},
		"one covered name and another":       {names("www.example.org", "example.org"), false},
		"an address beside the prefix":       {names("192.0.3.1"), false},
		"an address beside the single one":   {names("2001:db8::2"), false},
		"an address with a zone":             {names("2001:db8::1%eth0"), false},
		"a covered name and an address":      {names("www.example.org", "10.0.0.1"), false},
		"nothing":                            {names(), false},
		"a URI, its own":                     {func(r *authorize.Request) { r.Names.URIs = []string{web} }, false},
		"another profile":                    {func(r *authorize.Request) { r.Profile = "workload" }, false},
		"the server":                         {func(r *authorize.Request) { r.Principal.Method = identity.MethodServer }, false},
		"an identity two segments below":     {identityOf("spiffe://example.org/ns/default/sa/a"), true},
		"an identity one segment below":      {identityOf("spiffe://example.org/ns/default/a"), true},
		"the identity that it stands below":  {identityOf("spiffe://example.org/ns/default"), false},
		"an identity that begins alike":      {identityOf("spiffe://example.org/ns/default2/sa/a"), false},
		"an identity of another domain":      {identityOf("spiffe://example.net/ns/default/sa/a"), false},
		"an identity of a domain that joins": {identityOf("spiffe://example.org.evil/ns/default/sa/a"), false},
		"an identity whose case is another":  {identityOf("spiffe://example.org/NS/default/sa/a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			rule, err := authorize.Granted(grant())
			if err != nil {
				t.Fatal(err)
			}
			r := request()
			r.Profile, r.Names = "tls", hosts("www.example.org")
			test.change(&r)
			got, ok, err := rule(t.Context(), r)
			if err != nil || ok != test.ok || ok && got.Rule != "web-names" {
				t.Errorf("got %v, %t, %v", got, ok, err)
			}
		})
	}
}

func TestGrantedToOne(t *testing.T) {
	for text, wants := range map[string]map[string]bool{
		web:                      {web: true, web + "2": false, web + "/a": false, "spiffe://example.org/ns/default/sa": false},
		"spiffe://example.org/*": {web: true, "spiffe://example.org/a": true, "spiffe://example.net/a": false},
	} {
		g := grant()
		g.Identity = text
		rule, err := authorize.Granted(g)
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range wants {
			r := request()
			r.Principal.ID, r.Profile, r.Names = spiffeid.RequireFromString(id), "tls", hosts("www.example.org")
			if _, ok, err := rule(t.Context(), r); ok != want || err != nil {
				t.Errorf("a grant to %s allows %s: %t, %v", text, id, ok, err)
			}
		}
	}
}

func TestGrantedKeepsItsConfig(t *testing.T) {
	g := grant()
	rule, err := authorize.Granted(g)
	if err != nil {
		t.Fatal(err)
	}
	g.DNS[0], g.IPs[0] = "evil.example.org", netip.MustParsePrefix("0.0.0.0/0")
	r := request()
	r.Profile, r.Names = "tls", hosts("evil.example.org")
	if _, ok, _ := rule(t.Context(), r); ok {
		t.Error("a rule changes with the Grant that it was made of")
	}
}

func TestGrantedRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*authorize.Grant)
		want   string
	}{
		"no name":                {func(g *authorize.Grant) { g.Name = "" }, "needs a name"},
		"no profile":             {func(g *authorize.Grant) { g.Profile = "" }, "needs a profile"},
		"nothing granted":        {func(g *authorize.Grant) { g.DNS, g.IPs = nil, nil }, "grants nothing"},
		"no identity":            {func(g *authorize.Grant) { g.Identity = "" }, "neither a SPIFFE ID nor one that ends in /*"},
		"everybody":              {func(g *authorize.Grant) { g.Identity = "*" }, "neither a SPIFFE ID"},
		"a star inside":          {func(g *authorize.Grant) { g.Identity = "spiffe://example.org/*/web" }, "neither a SPIFFE ID"},
		"half a segment":         {func(g *authorize.Grant) { g.Identity = "spiffe://example.org/ns*" }, "neither a SPIFFE ID"},
		"any trust domain":       {func(g *authorize.Grant) { g.Identity = "spiffe://*/a" }, "neither a SPIFFE ID"},
		"every DNS name":         {func(g *authorize.Grant) { g.DNS = []string{"*"} }, `DNS pattern "*"`},
		"every DNS name, dotted": {func(g *authorize.Grant) { g.DNS = []string{"*."} }, `DNS pattern "*."`},
		"two stars":              {func(g *authorize.Grant) { g.DNS = []string{"*.*.example.org"} }, "neither a name nor *. before a name"},
		"half a label":           {func(g *authorize.Grant) { g.DNS = []string{"a*.example.org"} }, "neither a name nor"},
		"a star inside a name":   {func(g *authorize.Grant) { g.DNS = []string{"a.*.example.org"} }, "neither a name nor"},
		"an empty name":          {func(g *authorize.Grant) { g.DNS = []string{""} }, "neither a name nor"},
		"a final dot":            {func(g *authorize.Grant) { g.DNS = []string{"example.org."} }, "neither a name nor"},
		"no prefix":              {func(g *authorize.Grant) { g.IPs = []netip.Prefix{{}} }, "IP prefix"},
		"an IPv4 prefix in IPv6": {func(g *authorize.Grant) { g.IPs = []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")} }, "write an IPv4 prefix in its own form"},
	} {
		t.Run(name, func(t *testing.T) {
			g := grant()
			test.change(&g)
			if _, err := authorize.Granted(g); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
		})
	}
	g := grant()
	g.DNS = []string{"WWW.Example.org"}
	if _, err := authorize.Granted(g); err != nil {
		t.Errorf("a name in upper case: %v", err)
	}
}

func TestFirst(t *testing.T) {
	broken := errkind.New(errkind.Unavailable, "the policy is away")
	asked := ""
	rule := func(name string, ok bool, err error) authorize.Rule {
		return func(context.Context, authorize.Request) (authorize.Verdict, bool, error) {
			asked += name
			return authorize.Verdict{Rule: name}, ok, err
		}
	}
	for name, test := range map[string]struct {
		rules []authorize.Rule
		asked string
		got   string
		kind  errkind.Kind
		err   bool
	}{
		"the first that allows": {[]authorize.Rule{rule("a", false, nil), rule("b", true, nil), rule("c", true, nil)}, "ab", "b", 0, false},
		"an error decides":      {[]authorize.Rule{rule("a", false, broken), rule("b", true, nil)}, "a", "a", errkind.Unavailable, true},
		"an error is no yes":    {[]authorize.Rule{rule("a", true, broken), rule("b", true, nil)}, "a", "a", errkind.Unavailable, true},
		"nobody":                {[]authorize.Rule{rule("a", false, nil), rule("b", false, nil)}, "ab", "", errkind.Denied, true},
		"no rule at all":        {nil, "", "", errkind.Denied, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked = ""
			r := request()
			got, ok, err := authorize.First(test.rules...)(t.Context(), r)
			if asked != test.asked || got.Rule != test.got || ok == test.err || (err != nil) != test.err || err != nil && errkind.Of(err) != test.kind {
				t.Errorf("asked %q, got %v, %t, %v", asked, got, ok, err)
			}
		})
	}
	_, _, err := authorize.First()(t.Context(), request())
	if !errors.As(err, new(*errkind.Error)) || !strings.Contains(errkind.Message(err), fmt.Sprintf("%s may not hold URI:%s under profile workload", web, web)) {
		t.Errorf("the denial says %v", err)
	}
}
