package tokenreview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// maxClaimDepth bounds how deep claims are nested.
const maxClaimDepth = 8

// maxSPIFFEID is how long a SPIFFE ID may be (SPIFFE-ID §2.3).
const maxSPIFFEID = 2048

// ownPath begins the paths of the authority's own identities, which nobody is mapped to.
const ownPath = "/chancery"

// OIDCConfig says which ID tokens of one OpenID Connect issuer are good, and whose they are. Zero values of the optional fields mean their defaults.
type OIDCConfig struct {
	// Provider is the issuer's name in principals and audit records. Required.
	Provider string
	// Issuer is the claim iss of its tokens, exactly. Required.
	Issuer string
	// Audiences are ours; a token has to be for one of them. At least one.
	Audiences []string
	// TrustDomain is where the callers' identities live. Required.
	TrustDomain spiffeid.TrustDomain
	// Algorithms are accepted, of RS256, ES256, ES384 and ES512. Default all four.
	Algorithms []string
	// Map returns the SPIFFE ID, or the path of one in TrustDomain, of whoever has these claims; an empty text means nobody. The claims are in the types
	// of encoding/json and verified. It does not change them, honours ctx and is safe for concurrent use. Required.
	Map func(ctx context.Context, claims map[string]any) (string, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// OIDC authenticates the ID tokens of one issuer (OpenID Connect Core 1.0 §2). It is safe for concurrent use.
type OIDC struct {
	config OIDCConfig
	keys   *KeySet
}

// NewOIDC returns an OIDC that verifies by keys.
func NewOIDC(config OIDCConfig, keys *KeySet) (*OIDC, error) {
	config.Audiences = slices.Clone(config.Audiences)
	if config.Now == nil {
		config.Now = time.Now
	}
	switch {
	case keys == nil:
		return nil, errors.New("tokenreview: an OpenID Connect issuer needs its keys")
	case config.Provider == "" || config.Issuer == "" || config.TrustDomain.IsZero() || config.Map == nil:
		return nil, errors.New("tokenreview: an OpenID Connect issuer needs a name, an issuer, a trust domain and a mapping")
	case len(config.Audiences) == 0, slices.Contains(config.Audiences, ""):
		return nil, errors.New("tokenreview: audiences are empty or have an empty entry: name ours, or any token of the issuer would do")
	}
	var err error
	if config.Algorithms, err = checkAlgorithms(slices.Clone(config.Algorithms)); err != nil {
		return nil, err
	}
	return &OIDC{config: config, keys: keys}, nil
}

// Authenticate handles the JWTs whose claim iss is exactly the issuer's.
func (o *OIDC) Authenticate(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
	token := credential.Bearer.Reveal()
	if !looksLikeJWT(token) {
		return nil, false, nil
	}
	parsed, err := parseShape(token)
	if err != nil {
		return nil, false, nil //nolint:nilerr // not known to be of this issuer; who comes next says what is wrong with it
	}
	if issuer, _ := parsed.claims.text("iss"); issuer != o.config.Issuer {
		return nil, false, nil
	}
	parsed.wayOut = "send an ID token as " + o.config.Provider + " issues them, fresh and unchanged"
	principal, err := o.verify(ctx, token, parsed)
	if err != nil {
		o.keys.count(resultOf(err))
		return nil, true, err
	}
	o.keys.count(verifiedGood)
	return principal, true, nil
}

func (o *OIDC) verify(ctx context.Context, token string, parsed jwt) (*identity.Principal, error) {
	claimed, err := parsed.peek(o.config.Audiences, o.config.Now())
	if err != nil {
		return nil, err
	}
	if typ, _ := parsed.header.text("typ"); isAccessToken(typ) {
		return nil, parsed.malformed("its typ is that of an access token (RFC 9068), not of an ID token")
	}
	if err := checkAlgorithm(parsed.header, o.config.Algorithms); err != nil {
		return nil, err
	}
	if !isSubject(claimed.subject) {
		return nil, parsed.malformed("its sub is no text of 1 to 255 printable ASCII characters")
	}
	claims, err := parsed.claims.values(1)
	if err != nil {
		return nil, parsed.malformed("its payload " + err.Error())
	}
	if err := o.keys.verify(ctx, token, parsed); err != nil {
		return nil, err
	}
	id, err := o.identify(ctx, claims)
	if err != nil {
		return nil, err
	}
	if err := checkExpiry(claimed.expires, o.config.Now()); err != nil { // it may have expired while the keys were fetched
		return nil, err
	}
	return &identity.Principal{
		ID: id, Method: identity.MethodOIDC, CredentialID: claimed.id, Expiry: claimed.expires,
		OIDC: &identity.OIDC{Provider: o.config.Provider, Issuer: claimed.issuer, Subject: claimed.subject, Claims: claims},
	}, nil
}

// isAccessToken tells whether a header's typ is that of RFC 9068 §2.1. Issuers sign access tokens with the same keys, for audiences that may be ours.
func isAccessToken(typ string) bool {
	return strings.TrimPrefix(strings.ToLower(typ), "application/") == "at+jwt"
}

// identify asks the mapping. What it says is held against the rules that no mapping can change.
func (o *OIDC) identify(ctx context.Context, claims map[string]any) (spiffeid.ID, error) {
	text, err := o.config.Map(ctx, claims)
	switch {
	case err != nil && ctx.Err() != nil:
		return spiffeid.ID{}, gaveUp(ctx.Err())
	case err != nil:
		return spiffeid.ID{}, o.notMapped(fmt.Errorf("the mapping failed: %w", err))
	case text == "":
		return spiffeid.ID{}, o.notMapped(errors.New("the mapping gives its claims no identity"))
	}
	if strings.HasPrefix(text, "/") {
		text = o.config.TrustDomain.IDString() + text
	}
	id, err := spiffeid.FromString(text)
	switch {
	case err != nil:
		return spiffeid.ID{}, o.notMapped(fmt.Errorf("the mapping gives %.300q, which is neither a SPIFFE ID nor a path of one: %w", text, err))
	case !id.MemberOf(o.config.TrustDomain):
		return spiffeid.ID{}, o.notMapped(fmt.Errorf("the mapping gives %.300q, which is outside of trust domain %s", text, o.config.TrustDomain.Name()))
	case len(id.String()) > maxSPIFFEID:
		return spiffeid.ID{}, o.notMapped(fmt.Errorf("the mapping gives %.300q and more, which is longer than a SPIFFE ID may be", text))
	case id.Path() == "", id.Path() == ownPath, strings.HasPrefix(id.Path(), ownPath+"/"):
		return spiffeid.ID{}, o.notMapped(fmt.Errorf("the mapping gives %.300q, which is the authority's own", text))
	}
	return id, nil
}

func (o *OIDC) notMapped(cause error) error {
	return errkind.Wrap(errkind.Unauthenticated, cause, "the token is good, but issuer %s maps its claims to no identity here: ask the operator for one",
		o.config.Provider).Because(errkind.NotMapped)
}

// isSubject tells whether a subject is fit for an audit record (OpenID Connect Core 1.0 §2: at most 255 ASCII characters).
func isSubject(text string) bool {
	return text != "" && len(text) <= 255 && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// values returns the members in the types of encoding/json, as strictly inside of others as at the top. depth is how deep the object itself is nested,
// from 1.
func (o object) values(depth int) (map[string]any, error) {
	values := make(map[string]any, len(o))
	for name, raw := range o {
		value, err := valueOf(raw, depth+1)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

// valueOf reads valid JSON that is nested depth deep if it is an object or array.
func valueOf(raw json.RawMessage, depth int) (any, error) {
	nested := raw[0] == '{' || raw[0] == '['
	if nested && depth > maxClaimDepth {
		return nil, fmt.Errorf("is nested deeper than %d", maxClaimDepth)
	}
	if raw[0] == '{' {
		members, err := parseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("has an object that %w", err)
		}
		return members.values(depth)
	}
	if raw[0] == '[' {
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			return nil, errors.New("is not JSON")
		}
		list := make([]any, len(elements))
		for i, element := range elements {
			value, err := valueOf(element, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil { // a number that float64 does not hold
		return nil, errors.New("has a number that is out of range")
	}
	return value, nil
}
