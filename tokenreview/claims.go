package tokenreview

import (
	"slices"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// clockSkew is how far a token's issue time may lie ahead of our clock: as much as the API server itself allows.
const clockSkew = time.Minute

// accountPrefix begins the user name of every service account.
const accountPrefix = "system:serviceaccount:"

// claims is what a token says of itself. None of it is verified before a cluster has accepted the token.
type claims struct {
	audiences []string
	expires   time.Time
	subject   string
	issuer    string // empty if there is none
	id        string // the jti; empty if there is none fit for a log
}

// peek reads a token's claims without verifying them, and refuses a token that cannot be good: of the wrong shape, without one of
// the audiences, without an expiry, or expired at now.
func peek(token string, audiences []string, now time.Time) (claims, error) {
	_, c, err := peekJWT(token, audiences, now)
	return c, err
}

// peekJWT is peek, for those who read on in the token.
func peekJWT(token string, audiences []string, now time.Time) (jwt, claims, error) {
	parsed, err := parseShape(token)
	if err != nil {
		return jwt{}, claims{}, err
	}
	c, err := parsed.peek(audiences, now)
	if err != nil {
		return jwt{}, claims{}, err
	}
	if c.subject, _ = parsed.claims.text("sub"); !strings.HasPrefix(c.subject, accountPrefix) {
		return jwt{}, claims{}, errkind.New(errkind.Unauthenticated,
			"token's subject is no service account: send the token of a projected serviceAccountToken volume").Because(errkind.UnknownCredential)
	}
	return parsed, c, nil
}

// peek reads the claims that every kind of token has.
func (t jwt) peek(audiences []string, now time.Time) (claims, error) {
	payload := t.claims
	var c claims
	var ok bool
	if c.audiences, ok = payload.texts("aud"); !ok {
		return claims{}, errkind.New(errkind.Unauthenticated, "token has no audience (aud): %s", askFor(audiences)).Because(errkind.WrongAudience)
	}
	if !slices.ContainsFunc(c.audiences, func(audience string) bool { return slices.Contains(audiences, audience) }) {
		return claims{}, errkind.New(errkind.Unauthenticated, "token is for another audience: %s", askFor(audiences)).Because(errkind.WrongAudience)
	}
	c.issuer, _ = payload.text("iss")
	c.subject, _ = payload.text("sub")
	if c.expires, ok = payload.date("exp"); !ok {
		return claims{}, errkind.New(errkind.Unauthenticated,
			"token has no expiry (exp, in whole seconds, up to the year 9999): %s", t.wayOut).
			Because(errkind.MalformedCredential)
	}
	if err := checkExpiry(c.expires, now); err != nil {
		return claims{}, err
	}
	for _, name := range []string{"nbf", "iat"} {
		if err := t.checkStart(name, c.expires, now); err != nil {
			return claims{}, err
		}
	}
	if id, _ := payload.text("jti"); isIdentifier(id) {
		c.id = id
	}
	return c, nil
}

// wrongIssuer does not say which issuer the token names: that is the caller's text.
func wrongIssuer(expected string) error {
	return errkind.New(errkind.Unauthenticated, "token's issuer (iss) is not %s: send a token of that cluster, or name its cluster in clusterid", expected).
		Because(errkind.WrongIssuer)
}

func askFor(audiences []string) string {
	return "request one with audience " + strings.Join(audiences, " or ")
}

// checkExpiry refuses a token on and after its expiry (RFC 7519 §4.1.4), without leeway: the API server would give it another minute.
func checkExpiry(expires, now time.Time) error {
	if now.Before(expires) {
		return nil
	}
	return errkind.New(errkind.Unauthenticated,
		"token expired at %s and the clock here says %s: send the current token, and compare the clocks if it is current",
		stamp(expires), stamp(now)).Because(errkind.CredentialExpired)
}

func (t jwt) checkStart(name string, expires, now time.Time) error {
	if _, present := t.claims[name]; !present {
		return nil
	}
	start, ok := t.claims.date(name)
	switch {
	case !ok:
		return t.malformed("its " + name + " is no time in whole seconds")
	case !start.Before(expires):
		return t.malformed("its " + name + " is not before its exp")
	case start.After(now.Add(clockSkew)):
		return errkind.New(errkind.Unauthenticated,
			"token starts (%s) at %s and the clock here says %s: set the clocks of this server and of the cluster",
			name, stamp(start), stamp(now)).Because(errkind.NotYetValid)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// isIdentifier tells whether a text from outside is fit to be an identifier in an audit record: 1 to 128 visible ASCII characters.
func isIdentifier(text string) bool {
	if text == "" || len(text) > 128 {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
