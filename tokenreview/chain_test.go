package tokenreview

import (
	"context"
	"crypto/x509"
	"testing"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// stub is an Authenticator with a fixed answer.
type stub struct {
	principal *identity.Principal
	handled   bool
	err       error
	asked     int
}

func (s *stub) Authenticate(context.Context, identity.Credential) (*identity.Principal, bool, error) {
	s.asked++
	return s.principal, s.handled, s.err
}

func TestFirstThatHandlesDecides(t *testing.T) {
	someone := &identity.Principal{CredentialID: "someone"}
	other := &identity.Principal{CredentialID: "other"}
	refusal := errkind.New(errkind.Unauthenticated, "refused")
	bearer := identity.Credential{Bearer: "opaque"}
	peer := identity.Credential{PeerChain: []*x509.Certificate{{}}}
	for _, test := range []struct {
		name          string
		first, second stub
		credential    identity.Credential
		want          *identity.Principal
		kind          errkind.Kind
		sentence      string
		asked         [2]int
	}{
		{name: "first", first: stub{principal: someone, handled: true}, second: stub{principal: other, handled: true}, credential: bearer,
			want: someone, asked: [2]int{1, 0}},
		{name: "second", second: stub{principal: other, handled: true}, credential: bearer, want: other, asked: [2]int{1, 1}},
		{name: "first refuses, second would not", first: stub{handled: true, err: refusal}, second: stub{principal: other, handled: true},
			credential: bearer, kind: errkind.Unauthenticated, sentence: "refused", asked: [2]int{1, 0}},
		{name: "first could not find out, second would", first: stub{handled: true, err: refusal}, second: stub{principal: other, handled: true},
			credential: peer, kind: errkind.Unauthenticated, sentence: "refused", asked: [2]int{1, 0}},
		{name: "nobody", credential: bearer, kind: errkind.Unauthenticated,
			sentence: "of no kind known here: send authorization: Bearer with a token, or a join token", asked: [2]int{1, 1}},
		{name: "nobody takes the certificate", credential: peer, kind: errkind.Unauthenticated, sentence: "of no kind known here", asked: [2]int{1, 1}},
		{name: "nothing", kind: errkind.Unauthenticated, sentence: "no credential: send authorization: Bearer with a token"},
		{name: "error without handling", first: stub{err: refusal}, second: stub{principal: other, handled: true}, credential: bearer,
			kind: errkind.Unauthenticated, sentence: "refused", asked: [2]int{1, 0}},
		{name: "principal without handling", first: stub{principal: someone}, second: stub{principal: other, handled: true}, credential: bearer,
			kind: errkind.Internal, sentence: "contract", asked: [2]int{1, 0}},
		{name: "handling without principal", first: stub{handled: true}, second: stub{principal: other, handled: true}, credential: bearer,
			kind: errkind.Internal, sentence: "contract", asked: [2]int{1, 0}},
		{name: "principal and error", first: stub{principal: someone, handled: true, err: refusal}, credential: bearer,
			kind: errkind.Unauthenticated, sentence: "refused", asked: [2]int{1, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			chain, err := NewChain(Entry{"a token", &test.first}, Entry{"a join token", &test.second})
			if err != nil {
				t.Fatal(err)
			}
			principal, handled, err := chain.Authenticate(t.Context(), test.credential)
			if principal != test.want || !handled {
				t.Errorf("principal %v, handled %t", principal, handled)
			}
			if test.want == nil {
				wantKind(t, err, test.kind, test.sentence)
			} else if err != nil {
				t.Error(err)
			}
			if asked := [2]int{test.first.asked, test.second.asked}; asked != test.asked {
				t.Errorf("asked %v, want %v", asked, test.asked)
			}
		})
	}
}

func TestChainNeedsEntries(t *testing.T) {
	for _, entries := range [][]Entry{nil, {{Accepts: "a token"}}, {{Authenticator: &stub{}}}} {
		if _, err := NewChain(entries...); err == nil {
			t.Errorf("made of %v", entries)
		}
	}
}

func TestOnlineAndJoinInAChain(t *testing.T) {
	f := newFixture(t, nil)
	join, source, joinToken := newJoin(t)
	chain, err := NewChain(Entry{"a service-account token", f.online}, Entry{"a join token", join})
	if err != nil {
		t.Fatal(err)
	}
	for bearer, method := range map[string]identity.Method{
		goodToken(start).String(): identity.MethodKubernetes, joinToken: identity.MethodJoinToken, "opaque": "", "cjt_a.b.c": "", "a.b.c": "",
	} {
		principal, _, err := chain.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(bearer)})
		switch {
		case method == "":
			wantKind(t, err, errkind.Unauthenticated, "")
		case err != nil:
			t.Error(err)
		case principal.Method != method:
			t.Errorf("method %s, want %s", principal.Method, method)
		}
	}
	if f.cluster.calls() != 1 || source.asked != 1 {
		t.Errorf("%d reviews and %d look-ups", f.cluster.calls(), source.asked)
	}
}
