package ca_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/signer"
)

// TestReasons drives an order into each refusal of the pipeline and wants the reason in the error, the record and the metric.
func TestReasons(t *testing.T) {
	fails := func(err error) func(*bed, *ca.Order) {
		return func(b *bed, _ *ca.Order) {
			b.signer.before = func(context.Context, *signer.Order) error { return err }
		}
	}
	for name, test := range map[string]struct {
		change func(*bed, *ca.Order)
		kind   errkind.Kind
		want   errkind.Reason
	}{
		"nobody": {func(_ *bed, o *ca.Order) { o.Principal = nil }, errkind.Internal, "internal"},
		"another trust domain": {func(_ *bed, o *ca.Order) { o.Principal.ID = spiffeid.RequireFromString("spiffe://example.net/web") },
			errkind.Denied, errkind.NotAllowed},
		"no request": {func(_ *bed, o *ca.Order) { o.CSR = []byte("junk") }, errkind.Invalid, errkind.BadCSR},
		"a signature by another key": {func(_ *bed, o *ca.Order) { o.CSR[len(o.CSR)-1] ^= 1 },
			errkind.Invalid, errkind.BadCSR},
		"a weak key": {func(_ *bed, o *ca.Order) {
			key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
			must(t, err)
			o.CSR = request(t, key)
		}, errkind.Invalid, errkind.KeyRefused},
		"the authority's own key": {func(b *bed, o *ca.Order) { o.CSR = request(t, b.hierarchy.Issuer.Key) },
			errkind.Denied, errkind.KeyRefused},
		"no such profile": {func(_ *bed, o *ca.Order) { o.Profile = "root" }, errkind.Invalid, errkind.UnknownProfile},
		"names that disagree": {func(_ *bed, o *ca.Order) { o.CSR, o.Names = request(t, newKey(t), web), names(web+"2") },
			errkind.Invalid, errkind.NamesMismatch},
		"a host under a SPIFFE profile": {func(_ *bed, o *ca.Order) { o.Names = names("a.web.example.org") }, errkind.Invalid, errkind.NamesMismatch},
		"a URI that is no SPIFFE ID":    {func(_ *bed, o *ca.Order) { o.Names = names("https://example.org/web") }, errkind.Invalid, errkind.NamesMismatch},
		"a trust domain":                {func(_ *bed, o *ca.Order) { o.Names = names("spiffe://example.org") }, errkind.Invalid, errkind.NamesMismatch},
		"a SPIFFE ID under another":     {func(_ *bed, o *ca.Order) { o.Profile, o.Names = "tls", names(web) }, errkind.Invalid, errkind.NamesMismatch},
		"no name at all":                {func(_ *bed, o *ca.Order) { o.Profile = "tls" }, errkind.Invalid, errkind.NamesMismatch},
		"no host's address":             {func(_ *bed, o *ca.Order) { o.Profile, o.Names = "tls", names("224.0.0.1") }, errkind.Invalid, errkind.NamesMismatch},
		"another's name":                {func(_ *bed, o *ca.Order) { o.Names = names(web + "2") }, errkind.Denied, errkind.NotAllowed},
		"too short a life":              {func(_ *bed, o *ca.Order) { o.Lifetime = time.Second }, errkind.Invalid, errkind.LifetimeRefused},
		"a name that breaks a rule": {func(_ *bed, o *ca.Order) { o.Profile, o.Names = "tls", names("a_b.web.example.org") },
			errkind.Invalid, errkind.LintRefused},
		"an issuer that has ended":       {func(b *bed, _ *ca.Order) { b.clock.set(start.AddDate(50, 0, 0)) }, errkind.Unavailable, errkind.IssuerNotValid},
		"an issuer that has not begun":   {func(b *bed, _ *ca.Order) { b.clock.set(start.AddDate(-50, 0, 0)) }, errkind.Unavailable, errkind.IssuerNotValid},
		"a join token that nobody knows": {func(_ *bed, o *ca.Order) { o.Principal.JoinToken = make([]byte, 32) }, errkind.Unauthenticated, errkind.TokenUnknown},
		"a join token that was used": {func(b *bed, o *ca.Order) {
			o.Principal.JoinToken = b.joinToken(t)
			b.issue(t, *o)
		}, errkind.Unauthenticated, errkind.TokenUsed},
		"a ledger that cannot reserve": {func(b *bed, _ *ca.Order) {
			b.ledger.beforeReserve = func(context.Context) error { return errors.New("disk full") }
		}, errkind.Unavailable, errkind.LedgerUnavailable},
		"a ledger that cannot commit": {func(b *bed, _ *ca.Order) {
			b.ledger.beforeCommit = func(context.Context) error { return errors.New("disk full") }
		}, errkind.Unavailable, errkind.LedgerUnavailable},
		"a backend that is away":          {fails(errors.New("connection refused")), errkind.Unavailable, errkind.SignerUnavailable},
		"a backend that refuses for good": {fails(signer.ErrPermanent), errkind.Invalid, errkind.SignerRefused},
		"a backend that says it is wrong": {fails(signer.ErrWrong), errkind.Unavailable, errkind.SignerWrong},
		"a backend that names another": {func(b *bed, _ *ca.Order) {
			b.signer.before = func(_ context.Context, o *signer.Order) error {
				o.Leaf.Names = names(web + "2")
				return nil
			}
		}, errkind.Unavailable, errkind.SignerWrong},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			o := order(t)
			test.change(b, &o)
			before := len(b.logs.records(t, "audit"))
			_, err := b.authority.Issue(t.Context(), o)
			wantKind(t, err, test.kind)
			if got := errkind.ReasonOf(err); got != test.want {
				t.Errorf("the reason of %q is %s, want %s", err, got, test.want)
			}
			records := b.logs.records(t, "audit")[before:]
			if len(records) != 1 || records[0]["reason"] != string(test.want) {
				t.Errorf("the records are %v", records)
			}
			found := false
			for _, m := range b.metric(t, "chancery_issuance_decisions_total") {
				for _, label := range m.GetLabel() {
					found = found || label.GetName() == "reason" && label.GetValue() == string(test.want) && m.GetCounter().GetValue() == 1
				}
			}
			if !found {
				t.Errorf("no metric counts %s", test.want)
			}
		})
	}
}

// TestAReasonOfNoList is counted by its kind: labels stay within the list.
func TestAReasonOfNoList(t *testing.T) {
	b := newBed(t)
	b.authority.Refused(t.Context(), order(t), errkind.New(errkind.Denied, "no").Because("what somebody wrote"), start)
	if records := b.logs.records(t, "audit"); len(records) != 1 || records[0]["reason"] != "denied" {
		t.Errorf("the records are %v", records)
	}
}

// TestEveryRefusalHasAReason reads the code: what these packages classify, other than as internal, says why.
func TestEveryRefusalHasAReason(t *testing.T) {
	found := 0
	for _, folder := range []string{".", "profile", "lint", "authorize", "../csr"} {
		must(t, fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && path != ".":
				return fs.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, filepath.Join(folder, path), nil, 0)
			if err != nil {
				return err
			}
			found += unreasoned(file, func(at token.Pos) { t.Errorf("%s: the refusal says no reason", set.Position(at)) })
			return nil
		}))
	}
	if found < 20 {
		t.Errorf("only %d classified errors were found", found)
	}
}

// unreasoned tells of every call of errkind.New and errkind.Wrap that no Because follows, and returns how many calls there are.
func unreasoned(file *ast.File, tell func(token.Pos)) (found int) {
	reasoned := make(map[ast.Node]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch selector.Sel.Name {
		case "Because", "After":
			if selector.Sel.Name == "Because" || reasoned[call] {
				reasoned[selector.X] = true
			}
		case "New", "Wrap":
			if of, ok := selector.X.(*ast.Ident); !ok || of.Name != "errkind" || kindOf(call) == "Internal" {
				return true
			}
			found++
			if !reasoned[call] {
				tell(call.Pos())
			}
		}
		return true
	})
	return found
}

func kindOf(call *ast.CallExpr) string {
	if kind, ok := call.Args[0].(*ast.SelectorExpr); ok {
		return kind.Sel.Name
	}
	return ""
}
