package ca_test

import (
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/identity"
)

// TestAClaimThatIsACredential: what an issuer lets its users put into a token is kept for good in the ledger, and must be no credential.
func TestAClaimThatIsACredential(t *testing.T) {
	const joinToken = "cjt_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	b := newBed(t)
	o := order(t)
	o.Principal = &identity.Principal{
		ID: o.Principal.ID, Method: identity.MethodOIDC, CredentialID: joinToken,
		OIDC: &identity.OIDC{Provider: "ci", Issuer: "https://ci.example.org", Subject: "repo " + joinToken},
	}
	b.issue(t, o)
	o.Principal.CredentialID, o.Principal.OIDC = "run-17", &identity.OIDC{Provider: "ci", Issuer: "https://ci.example.org", Subject: "repo:a/b"}
	b.issue(t, o)
	plain := 0
	for _, entry := range b.entries(t) {
		if strings.Contains(entry.Origin.CredentialID+entry.Origin.Subject, joinToken) {
			t.Errorf("the ledger holds %+v", entry.Origin)
		}
		if entry.Origin.CredentialID == "run-17" && entry.Origin.Subject == "repo:a/b" {
			plain++
		}
	}
	if plain != 1 {
		t.Errorf("%d entries have the plain claims as they are", plain)
	}
}
