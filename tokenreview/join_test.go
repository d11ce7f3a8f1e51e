package tokenreview

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
)

var _ TokenSource = ledger.Ledger(nil)

// tokens is a TokenSource with one row or one fault.
type tokens struct {
	row   ledger.JoinToken
	err   error
	asked int
	edit  func(*ledger.JoinToken)
}

func (s *tokens) Token(ctx context.Context, hash []byte, now time.Time) (ledger.JoinToken, error) {
	s.asked++
	if _, bounded := ctx.Deadline(); !bounded {
		return ledger.JoinToken{}, errors.New("the look-up has no deadline")
	}
	if s.err != nil {
		return ledger.JoinToken{}, s.err
	}
	if !bytes.Equal(hash, s.row.Hash) || !now.Before(s.row.Expires) {
		return ledger.JoinToken{}, ledger.ErrTokenGone
	}
	row := s.row
	if s.edit != nil {
		s.edit(&row)
	}
	return row, nil
}

func newJoin(t *testing.T) (*Join, *tokens, string) {
	t.Helper()
	token, id, hash, err := NewJoinToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	source := &tokens{row: ledger.JoinToken{
		Hash: hash, ID: id, Identity: "spiffe://cluster.local/vm/db-1", Created: start.Add(-time.Minute), Expires: start.Add(time.Minute),
	}}
	join, err := NewJoin(source, trustDomain, func() time.Time { return start })
	if err != nil {
		t.Fatal(err)
	}
	return join, source, token.Reveal()
}

func TestPrincipalOfAJoinToken(t *testing.T) {
	join, source, token := newJoin(t)
	principal, handled, err := join.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(token), ClusterID: "anything"})
	if err != nil || !handled {
		t.Fatal(handled, err)
	}
	want := &identity.Principal{
		ID: spiffeid.RequireFromString("spiffe://cluster.local/vm/db-1"), Method: identity.MethodJoinToken, CredentialID: source.row.ID,
		Expiry: source.row.Expires, JoinToken: source.row.Hash,
	}
	if !reflect.DeepEqual(principal, want) {
		t.Errorf("got %+v", principal)
	}
	sum := sha256.Sum256([]byte(token))
	if !bytes.Equal(principal.JoinToken, sum[:]) || strings.Contains(fmt.Sprintf("%+v", principal), token[joinIDEnd:]) {
		t.Error("the principal does not hold the hash alone")
	}
}

func TestJoinRefusals(t *testing.T) {
	for _, test := range []struct {
		name  string
		token func(string) string
		edit  func(*tokens)
		kind  errkind.Kind
		want  string
		asked int
	}{
		{name: "another token", token: func(s string) string { return s[:joinIDEnd] + "_" + strings.Repeat("A", 43) },
			kind: errkind.Unauthenticated, want: "unknown or has expired", asked: 1},
		{name: "expired", edit: func(s *tokens) { s.row.Expires = start }, kind: errkind.Unauthenticated, want: "unknown or has expired", asked: 1},
		{name: "not found", edit: func(s *tokens) { s.err = ledger.ErrNotFound }, kind: errkind.Unauthenticated, want: "unknown or has expired", asked: 1},
		{name: "used", edit: func(s *tokens) { s.err = fmt.Errorf("row 7: %w", ledger.ErrTokenUsed) },
			kind: errkind.Unauthenticated, want: "already used", asked: 1},
		{name: "row says used", edit: func(s *tokens) { s.edit = func(r *ledger.JoinToken) { r.UsedBy = "\x01" } },
			kind: errkind.Unauthenticated, want: "already used", asked: 1},
		{name: "row says expired", edit: func(s *tokens) { s.edit = func(r *ledger.JoinToken) { r.Expires = start } },
			kind: errkind.Unauthenticated, want: "unknown or has expired", asked: 1},
		{name: "row of another", edit: func(s *tokens) { s.edit = func(r *ledger.JoinToken) { r.Hash = make([]byte, 32) } },
			kind: errkind.Internal, want: "another join token", asked: 1},
		{name: "row of another id", edit: func(s *tokens) { s.edit = func(r *ledger.JoinToken) { r.ID = "00" } },
			kind: errkind.Internal, want: "another join token", asked: 1},
		{name: "foreign identity", edit: func(s *tokens) { s.row.Identity = "spiffe://evil.example/vm/db-1" },
			kind: errkind.Unauthenticated, want: "outside of trust domain cluster.local", asked: 1},
		{name: "identity that ours is a prefix of", edit: func(s *tokens) { s.row.Identity = "spiffe://cluster.local.evil/vm/db-1" },
			kind: errkind.Unauthenticated, want: "outside of trust domain", asked: 1},
		{name: "identity of the trust domain itself", edit: func(s *tokens) { s.row.Identity = "spiffe://cluster.local" },
			kind: errkind.Unauthenticated, want: "outside of trust domain", asked: 1},
		{name: "identity that is none", edit: func(s *tokens) { s.row.Identity = "db-1" },
			kind: errkind.Unauthenticated, want: "outside of trust domain", asked: 1},
		{name: "ledger down", edit: func(s *tokens) { s.err = fmt.Errorf("%w: disk full", ledger.ErrUnavailable) },
			kind: errkind.Unavailable, want: "could not be looked up", asked: 1},
		{name: "ledger at its deadline", edit: func(s *tokens) { s.err = context.DeadlineExceeded },
			kind: errkind.Unavailable, want: "could not be looked up", asked: 1},
		{name: "ledger with an error of its own", edit: func(s *tokens) { s.err = errors.New("syntax error") },
			kind: errkind.Unavailable, want: "could not be looked up", asked: 1},
		{name: "prefix alone", token: func(string) string { return "cjt_" }, kind: errkind.Unauthenticated, want: "malformed join token"},
		{name: "last character lost", token: func(s string) string { return s[:len(s)-1] }, kind: errkind.Unauthenticated, want: "malformed join token"},
		{name: "one character more", token: func(s string) string { return s + "A" }, kind: errkind.Unauthenticated, want: "malformed join token"},
		{name: "newline", token: func(s string) string { return s + "\n" }, kind: errkind.Unauthenticated, want: "malformed join token"},
		{name: "newline for a character", token: func(s string) string { return s[:40] + "\n" + s[41:] },
			kind: errkind.Unauthenticated, want: "malformed join token"},
		{name: "id in capitals", token: func(s string) string { return "cjt_ABCDEF0123456789" + s[joinIDEnd:] },
			kind: errkind.Unauthenticated, want: "malformed join token"},
		{name: "no separator", token: func(s string) string { return s[:joinIDEnd] + "-" + s[joinIDEnd+1:] },
			kind: errkind.Unauthenticated, want: "malformed join token"},
		{name: "bits after the end", token: func(s string) string { return s[:len(s)-1] + "B" }, kind: errkind.Unauthenticated, want: "malformed join token"},
		{name: "1 MiB", token: func(s string) string { return s + strings.Repeat("A", 1<<20) }, kind: errkind.Unauthenticated, want: "malformed join token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			join, source, token := newJoin(t)
			if test.edit != nil {
				test.edit(source)
			}
			if test.token != nil {
				token = test.token(token)
			}
			principal, handled, err := join.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(token)})
			if principal != nil || !handled {
				t.Fatalf("principal %v, handled %t", principal, handled)
			}
			wantKind(t, err, test.kind, test.want)
			if source.asked != test.asked {
				t.Errorf("the ledger was asked %d times", source.asked)
			}
			if secret := token[min(len(token), joinIDEnd):]; len(secret) > 1 {
				noLeak(t, secret, err)
			}
		})
	}
}

func TestJoinLeavesOtherCredentialsAlone(t *testing.T) {
	join, source, _ := newJoin(t)
	for _, bearer := range []string{"", "CJT_", "cjt", "eyJ.eyJ.AAAA", "x cjt_"} {
		principal, handled, err := join.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(bearer)})
		if principal != nil || handled || err != nil || source.asked != 0 {
			t.Errorf("%q: %v, %t, %v", bearer, principal, handled, err)
		}
	}
	if _, err := NewJoin(nil, trustDomain, nil); err == nil {
		t.Error("made without a source")
	}
	if _, err := NewJoin(source, spiffeid.TrustDomain{}, nil); err == nil {
		t.Error("made without a trust domain")
	}
}

func TestNewJoinToken(t *testing.T) {
	token, id, hash, err := NewJoinToken(bytes.NewReader(append(bytes.Repeat([]byte{0xab}, 8), bytes.Repeat([]byte{0xff}, 32)...)))
	if err != nil {
		t.Fatal(err)
	}
	if want := "cjt_abababababababab_" + strings.Repeat("_", 42) + "8"; token.Reveal() != want || id != "abababababababab" {
		t.Errorf("token %s, id %s", token.Reveal(), id)
	}
	if gotID, gotHash, err := ParseJoinToken(token); err != nil || gotID != id || !bytes.Equal(gotHash, hash) {
		t.Errorf("parsed as %s, %x, %v", gotID, gotHash, err)
	}
	if fmt.Sprint(token) == token.Reveal() {
		t.Error("the token shows itself")
	}
	if _, _, _, err := NewJoinToken(bytes.NewReader(make([]byte, 39))); err == nil {
		t.Error("made a token of too little randomness")
	}
}

// FuzzParseJoinToken holds that what is accepted is what NewJoinToken makes of some randomness, and that no refusal quotes the token.
func FuzzParseJoinToken(f *testing.F) {
	f.Add("cjt_abababababababab_" + strings.Repeat("_", 42) + "8")
	f.Add("cjt_0123456789abcdef_" + strings.Repeat("A", 43))
	f.Add("cjt_")
	grammar := regexp.MustCompile(`\Acjt_[0-9a-f]{16}_[A-Za-z0-9_-]{43}\z`)
	f.Fuzz(func(t *testing.T, text string) {
		id, hash, err := ParseJoinToken(identity.Secret(text))
		if err != nil {
			noLeak(t, text, err)
			if secret, err := base64.RawURLEncoding.Strict().DecodeString(text[min(len(text), joinIDEnd+1):]); err == nil &&
				len(secret) == 32 && grammar.MatchString(text) {
				t.Fatal("refused a good token")
			}
			return
		}
		sum := sha256.Sum256([]byte(text))
		if !grammar.MatchString(text) || text[4:20] != id || !bytes.Equal(hash, sum[:]) {
			t.Fatalf("accepted as %s", id)
		}
		secret, err := base64.RawURLEncoding.DecodeString(text[joinIDEnd+1:])
		if err != nil || base64.RawURLEncoding.EncodeToString(secret) != text[joinIDEnd+1:] {
			t.Fatal("accepted a second spelling of a token")
		}
	})
}
