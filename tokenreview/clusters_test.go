package tokenreview

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// named is an Authenticator that says who was asked, once it is let.
type named struct {
	name  string
	hangs chan struct{}
	err   error
	not   bool // handles nothing
}

func (n *named) Authenticate(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
	if n.hangs != nil {
		select {
		case <-n.hangs:
		case <-ctx.Done():
			return nil, true, errkind.Wrap(errkind.Unavailable, ctx.Err(), "hung").After(time.Second)
		}
	}
	if n.not || n.err != nil {
		return nil, !n.not, n.err
	}
	return &identity.Principal{CredentialID: n.name + "/" + credential.ClusterID}, true, nil
}

func entry(name string, authenticator identity.Authenticator, ids ...string) ClusterEntry {
	return ClusterEntry{Name: name, IDs: ids, Issuer: "https://" + name + ".example.org", Authenticator: authenticator}
}

func tokenOf(issuer any) string {
	p := goodToken(start)
	p.claims["iss"] = issuer
	if issuer == nil {
		delete(p.claims, "iss")
	}
	return p.String()
}

func TestClusters(t *testing.T) {
	home, east, west := &named{name: "home"}, &named{name: "east"}, &named{name: "west"}
	clusters, err := NewClusters(entry("home", home, "Kubernetes", "home"), entry("east", east, "e", "east-1"), entry("west", west))
	if err != nil {
		t.Fatal(err)
	}
	homeIssuer, eastIssuer, westIssuer := "https://home.example.org", "https://east.example.org", "https://west.example.org"
	twice := goodToken(start)
	twice.claimsText = `{"iss":"https://east.example.org","iss":"https://west.example.org"}`
	folded := goodToken(start)
	folded.claimsText = `{"ISS":"https://east.example.org"}`
	for name, test := range map[string]struct {
		token, id string
		want      string // empty if it is refused
		unhandled bool
	}{
		"the local issuer":                       {token: tokenOf(homeIssuer), want: "home/"},
		"another issuer":                         {token: tokenOf(eastIssuer), want: "east/"},
		"a third issuer":                         {token: tokenOf(westIssuer), want: "west/"},
		"an issuer of nobody":                    {token: tokenOf("https://north.example.org"), want: "home/"},
		"an issuer with a slash":                 {token: tokenOf(eastIssuer + "/"), want: "home/"},
		"an issuer in another case":              {token: tokenOf("https://EAST.example.org"), want: "home/"},
		"no issuer":                              {token: tokenOf(nil), want: "home/"},
		"an empty issuer":                        {token: tokenOf(""), want: "home/"},
		"a list of issuers":                      {token: tokenOf([]string{eastIssuer}), want: "home/"},
		"two issuers":                            {token: twice.String(), want: "home/"},
		"an issuer under a folded name":          {token: folded.String(), want: "home/"},
		"a malformed token":                      {token: "eyJhbGciOiJub25lIn0.x", want: "home/"},
		"a long token":                           {token: "eyJ" + strings.Repeat("a", 9000), want: "home/"},
		"a cluster's name":                       {token: tokenOf(nil), id: "east", want: "east/east"},
		"one of its ids":                         {token: tokenOf(nil), id: "e", want: "east/e"},
		"what Istio's agents say":                {token: tokenOf(eastIssuer), id: "Kubernetes", want: "home/Kubernetes"},
		"a name against the issuer":              {token: tokenOf(eastIssuer), id: "west", want: "west/west"},
		"a name of nobody":                       {token: tokenOf(homeIssuer), id: "north"},
		"a name in another case":                 {token: tokenOf(homeIssuer), id: "East"},
		"an issuer as a name":                    {token: tokenOf(homeIssuer), id: eastIssuer},
		"a space":                                {token: tokenOf(homeIssuer), id: " "},
		"a long name":                            {token: tokenOf(homeIssuer), id: strings.Repeat("x", 5000)},
		"a join token":                           {token: "cjt_x", unhandled: true},
		"no token":                               {unhandled: true},
		"a name of nobody, with no token at all": {id: "north", unhandled: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, handled, err := clusters.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(test.token), ClusterID: test.id})
			switch {
			case test.unhandled:
				if p != nil || handled || err != nil {
					t.Errorf("got %v, %t, %v", p, handled, err)
				}
			case test.want == "":
				wantKind(t, err, errkind.Unauthenticated, "is not known here")
				if errkind.ReasonOf(err) != errkind.UnknownCluster || !handled || len(errkind.Message(err)) > 300 {
					t.Errorf("reason %s, handled %t, %d bytes", errkind.ReasonOf(err), handled, len(errkind.Message(err)))
				}
				noLeak(t, test.token, err)
			case err != nil || !handled || p.CredentialID != test.want:
				t.Errorf("got %v, %t, %v; want %s", p, handled, err, test.want)
			}
		})
	}
}

// TestClustersVerdictIsFinal: what a cluster says is not asked of another.
func TestClustersVerdictIsFinal(t *testing.T) {
	bad := errkind.New(errkind.Unauthenticated, "forged").Because(errkind.BadSignature)
	clusters, err := NewClusters(entry("home", &named{name: "home"}), entry("east", &named{err: bad}), entry("west", &named{not: true}))
	if err != nil {
		t.Fatal(err)
	}
	if p, handled, err := clusters.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(tokenOf("https://east.example.org"))}); p != nil || !handled ||
		errkind.ReasonOf(err) != errkind.BadSignature {
		t.Errorf("got %v, %t, %v", p, handled, err)
	}
	if p, handled, err := clusters.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(tokenOf("https://west.example.org"))}); p != nil || handled || err != nil {
		t.Errorf("got %v, %t, %v", p, handled, err)
	}
}

// TestOneClusterHangs: callers of the others are answered at once, however many wait for it.
func TestOneClusterHangs(t *testing.T) {
	const waiting = 500
	hangs := make(chan struct{})
	clusters, err := NewClusters(entry("home", &named{name: "home"}), entry("east", &named{name: "east", hangs: hangs}), entry("west", &named{name: "west"}))
	if err != nil {
		t.Fatal(err)
	}
	east := identity.Credential{Bearer: identity.Secret(tokenOf("https://east.example.org"))}
	ended := make(chan string, waiting)
	for range waiting {
		go func() {
			p, _, err := clusters.Authenticate(context.Background(), east)
			if err != nil {
				ended <- err.Error()
				return
			}
			ended <- p.CredentialID
		}()
	}
	var slowest time.Duration
	for range 200 {
		for _, name := range []string{"home", "west"} {
			began := time.Now()
			p, _, err := clusters.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(tokenOf("https://" + name + ".example.org"))})
			if err != nil || p.CredentialID != name+"/" {
				t.Fatalf("%s: %v, %v", name, p, err)
			}
			slowest = max(slowest, time.Since(began))
		}
	}
	t.Logf("the slowest answer of another cluster took %s", slowest)
	if len(ended) > 0 {
		t.Error("the cluster does not hang")
	}
	close(hangs)
	for range waiting {
		if got := <-ended; got != "east/" {
			t.Fatalf("got %s", got)
		}
	}
}

func TestNewClustersRefuses(t *testing.T) {
	some := &named{}
	for name, test := range map[string]struct {
		local  ClusterEntry
		others []ClusterEntry
		says   string
	}{
		"no name":              {ClusterEntry{Authenticator: some}, nil, "has no name"},
		"no authenticator":     {entry("home", nil), nil, "has no authenticator"},
		"no issuer":            {entry("home", some), []ClusterEntry{{Name: "east", Authenticator: some}}, "has no issuer"},
		"an empty id":          {entry("home", some, ""), nil, "empty cluster id"},
		"a name twice":         {entry("home", some), []ClusterEntry{{Name: "home", Issuer: "x", Authenticator: some}}, "have the name or cluster id"},
		"an id twice":          {entry("home", some, "a"), []ClusterEntry{entry("east", some, "a")}, "have the name or cluster id"},
		"a name that is an id": {entry("home", some, "east"), []ClusterEntry{entry("east", some)}, "have the name or cluster id"},
		"an issuer twice":      {entry("home", some), []ClusterEntry{{Name: "east", Issuer: "https://home.example.org", Authenticator: some}}, "of another cluster"},
	} {
		if _, err := NewClusters(test.local, test.others...); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
	local := entry("home", some)
	local.Issuer = ""
	if _, err := NewClusters(local, entry("east", some)); err != nil {
		t.Error(err)
	}
}

// FuzzClusters: whatever the bytes, a token goes to the local cluster unless its payload, read strictly, names another's issuer.
func FuzzClusters(f *testing.F) {
	f.Add(tokenOf("https://east.example.org"), "")
	f.Add(tokenOf(nil), "east")
	f.Add("eyJ", "x")
	f.Add("a.b.c", "")
	clusters, err := NewClusters(entry("home", &named{name: "home"}), entry("east", &named{name: "east"}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token, id string) {
		p, handled, err := clusters.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(token), ClusterID: id})
		if handled != looksLikeJWT(token) {
			t.Fatalf("handled %t", handled)
		}
		if !handled {
			return
		}
		want := "home"
		switch parsed, err := parseShape(token); {
		case id == "east":
			want = "east"
		case id != "" && id != "home":
			want = ""
		case id == "" && err == nil && string(parsed.claims["iss"]) == `"https://east.example.org"`:
			want = "east"
		}
		if want == "" {
			if errkind.ReasonOf(err) != errkind.UnknownCluster {
				t.Fatalf("got %v", err)
			}
			return
		}
		if err != nil || p.CredentialID != want+"/"+id {
			if parsed, bad := parseShape(token); bad == nil && strings.Contains(string(parsed.claims["iss"]), `\`) {
				return // the same text, escaped
			}
			t.Fatalf("got %v, %v, want %s", p, err, want)
		}
	})
}
