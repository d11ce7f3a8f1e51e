package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

func TestHeadersBecomeACredential(t *testing.T) {
	b := newBed(t)
	for name, test := range map[string]struct {
		headers []string // key, value, …
		code    codes.Code
		says    string // part of the caller's sentence
		bearer  string // what the authenticator saw; "-" if it was not asked
		cluster string
	}{
		"a token":                         {headers: []string{"authorization", "Bearer " + goodToken}, bearer: goodToken},
		"scheme in other letters":         {headers: []string{"authorization", "bEaReR " + goodToken}, bearer: goodToken},
		"a token and a cluster":           {headers: []string{"authorization", "Bearer " + goodToken, "clusterid", "west"}, bearer: goodToken, cluster: "west"},
		"an empty cluster":                {headers: []string{"authorization", "Bearer " + goodToken, "clusterid", ""}, bearer: goodToken},
		"no authorization":                {code: codes.Unauthenticated, says: "not good", bearer: ""},
		"two authorizations":              {headers: []string{"authorization", "Bearer " + goodToken, "authorization", "Bearer " + goodToken}, code: codes.Unauthenticated, says: "2 authorization headers", bearer: "-"},
		"a good and a bad authorization":  {headers: []string{"authorization", "Bearer bad", "authorization", "Bearer " + goodToken}, code: codes.Unauthenticated, says: "exactly one", bearer: "-"},
		"an empty authorization":          {headers: []string{"authorization", ""}, code: codes.Unauthenticated, says: "Bearer TOKEN", bearer: "-"},
		"a scheme alone":                  {headers: []string{"authorization", "Bearer"}, code: codes.Unauthenticated, says: "Bearer TOKEN", bearer: "-"},
		"a scheme and an empty token":     {headers: []string{"authorization", "Bearer "}, code: codes.Unauthenticated, says: "Bearer TOKEN", bearer: "-"},
		"a token without scheme":          {headers: []string{"authorization", goodToken}, code: codes.Unauthenticated, says: "Bearer TOKEN", bearer: "-"},
		"another scheme":                  {headers: []string{"authorization", "Basic " + goodToken}, code: codes.Unauthenticated, says: "Bearer TOKEN", bearer: "-"},
		"two clusters":                    {headers: []string{"authorization", "Bearer " + goodToken, "clusterid", "west", "clusterid", "west"}, code: codes.InvalidArgument, says: "2 clusterid headers", bearer: "-"},
		"metadata of just the size":       {headers: []string{"authorization", "Bearer " + goodToken, "x", strings.Repeat("x", 15<<10)}, bearer: goodToken},
		"metadata over 16 KiB":            {headers: []string{"authorization", "Bearer " + goodToken, "x", strings.Repeat("x", 16<<10)}, code: codes.Unauthenticated, says: "at most 16384 are read", bearer: "-"},
		"a token of 100 KiB":              {headers: []string{"authorization", "Bearer " + strings.Repeat("x", 100<<10)}, code: codes.Unauthenticated, says: "a token is at most 8 KiB", bearer: "-"},
		"metadata over 16 KiB, in pieces": {headers: pieces(600), code: codes.Unauthenticated, says: "at most 16384 are read", bearer: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := identity.Credential{Bearer: "-"}
			b.authenticate(func(_ context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
				seen = credential
				if credential.Bearer.Reveal() != goodToken {
					return nil, true, errkind.New(errkind.Unauthenticated, "the token is not good")
				}
				return principal(cart), true, nil
			})
			ctx := metadata.AppendToOutgoingContext(within(t), test.headers...)
			_, err := b.chancery().IssueCertificate(ctx, &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, newKey(t), nil)})
			got := wantCode(t, err, test.code)
			if !strings.Contains(got.Message(), test.says) {
				t.Errorf("the caller is told %q, want %q in it", got.Message(), test.says)
			}
			if strings.Contains(got.Message(), goodToken+"\"") || strings.Contains(got.Message(), "xxxx") {
				t.Errorf("the caller's headers are in the answer: %q", got.Message())
			}
			if seen.Bearer.Reveal() != test.bearer || seen.ClusterID != test.cluster {
				t.Errorf("the authenticator saw %q of cluster %q, want %q of %q", seen.Bearer.Reveal(), seen.ClusterID, test.bearer, test.cluster)
			}
			if seen.Bearer.Reveal() != "-" && !seen.Remote.Addr().IsLoopback() {
				t.Errorf("the authenticator saw the address %s", seen.Remote)
			}
		})
	}
	if strings.Contains(b.logs.String(), "Bearer "+goodToken) {
		t.Error("a token is in the log")
	}
}

// pieces returns so many small headers.
func pieces(count int) []string {
	var headers []string
	for i := range count {
		headers = append(headers, fmt.Sprintf("x-piece-%03d", i), strings.Repeat("x", 20))
	}
	return headers
}

// TestOversizedMetadataEverywhere: every method refuses it, also those that need no credential.
func TestOversizedMetadataEverywhere(t *testing.T) {
	b := newBed(t)
	ctx := metadata.AppendToOutgoingContext(within(t), "x", strings.Repeat("x", 17<<10))
	_, err := b.chancery().GetTrustBundle(ctx, &chanceryv1.GetTrustBundleRequest{})
	wantCode(t, err, codes.Unauthenticated)
	stream, err := b.chancery().WatchTrustBundle(ctx, &chanceryv1.WatchTrustBundleRequest{})
	must(t, err)
	_, err = stream.Recv()
	wantCode(t, err, codes.Unauthenticated)
}

// TestAuthenticatorWithoutAnAnswer: an authenticator that handles nothing, or that returns nobody, lets nobody in.
func TestAuthenticatorWithoutAnAnswer(t *testing.T) {
	b := newBed(t)
	for name, handled := range map[string]bool{"not handled": false, "handled, and nobody": true} {
		t.Run(name, func(t *testing.T) {
			b.authenticate(func(context.Context, identity.Credential) (*identity.Principal, bool, error) {
				return nil, handled, nil
			})
			_, err := b.issue()
			wantCode(t, err, codes.Unauthenticated)
		})
	}
	if n := len(b.issued()); n != 0 {
		t.Errorf("%d certificates were issued", n)
	}
}
