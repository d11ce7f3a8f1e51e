package profile

import (
	"fmt"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// Backdate is how far notBefore lies before the time of issuance, so that a verifier whose clock is a little slow accepts a new
// certificate. It is added outside the lifetime that was asked for.
const Backdate = time.Minute

// retryIssuer is when a caller may come back to an authority whose issuer or clock a person has to mend.
const retryIssuer = time.Minute

// Wanted is the life that was asked for.
type Wanted struct {
	// Lifetime counts from the time of issuance; zero or less means the profile's default.
	Lifetime time.Duration
	// Jitter is the share of the lifetime, 0 to 1, that may be taken away. What is outside counts as the nearest bound.
	Jitter float64
	// Shorten chooses how much of that is taken: a lifetime from shortest to longest. It is asked only where the two differ; what it answers outside of
	// them counts as the nearest. Nil takes nothing away.
	Shorten func(shortest, longest time.Duration) time.Duration
	// Cap is a maximum beside the profile's; zero means that there is none. CapReason says in Clamp.Reason who set it.
	Cap       time.Duration
	CapReason string
}

// Lifetime returns what an asked lifetime, or the default for none, is at most: the profile's maximum applies, jitter and the issuers' window do
// not. It does not refuse what is below the minimum.
func (p *Profile) Lifetime(asked time.Duration) time.Duration {
	if asked <= 0 {
		asked = p.config.DefaultLifetime
	}
	return min(asked, p.config.MaxLifetime)
}

// Window is the time that the issuers allow: none of them is valid outside of it.
type Window struct {
	NotBefore, NotAfter time.Time
	// Begins and Ends are the subjects of the issuers that begin last and end first, for sentences.
	Begins, Ends string
}

// Unbounded is the Window of issuers that nobody knows yet.
var Unbounded = Window{NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}

// Clamp says why a lifetime is shorter than asked for; its zero value means that it is not. A lifetime that jitter alone has shortened is not clamped.
type Clamp struct {
	Asked, Granted time.Duration
	Reason         string
}

// Validity is a certificate's life. Its times are whole seconds.
type Validity struct {
	NotBefore, NotAfter time.Time
	// Issued is the time of issuance, from which lifetimes count.
	Issued time.Time
	Clamp  Clamp

	asked time.Duration // what Clamp.Asked would say
}

// Validity returns the life of a certificate that is issued now: the wanted lifetime, at most the profile's maximum, inside the issuers' window, and
// reduced by the jitter though never below the minimum. Errors are errkind.Invalid if too little was asked for, errkind.Denied if the cap is
// below the minimum, and errkind.Unavailable if the window has no room.
func (p *Profile) Validity(now time.Time, wanted Wanted, window Window) (Validity, error) {
	switch {
	case now.Before(window.NotBefore):
		return Validity{}, errkind.New(errkind.Unavailable, "the server's clock says %s, but its issuer %s is valid only from %s; the operator has to set the clock",
			stamp(now), window.Begins, stamp(window.NotBefore)).Because(errkind.IssuerNotValid).After(retryIssuer)
	case now.After(window.NotAfter):
		return Validity{}, errkind.New(errkind.Unavailable, "the server's clock says %s, but its issuer %s ended at %s; the authority needs a new issuer",
			stamp(now), window.Ends, stamp(window.NotAfter)).Because(errkind.IssuerNotValid).After(retryIssuer)
	}
	v := Validity{Issued: now.Truncate(time.Second), asked: wanted.Lifetime}
	if v.asked <= 0 {
		v.asked = p.config.DefaultLifetime
	}
	if v.asked < p.config.MinLifetime {
		return Validity{}, errkind.New(errkind.Invalid, "a lifetime of %s is below the minimum of profile %s, %s; ask for more or for none", v.asked,
			p.config.Name, p.config.MinLifetime).Because(errkind.LifetimeRefused)
	}
	lifetime, reason := v.asked, ""
	if lifetime > p.config.MaxLifetime {
		lifetime = p.config.MaxLifetime
		reason = fmt.Sprintf("the maximum of profile %s is %s", p.config.Name, lifetime)
	}
	if wanted.Cap > 0 && lifetime > wanted.Cap {
		if wanted.Cap < p.config.MinLifetime {
			return Validity{}, errkind.New(errkind.Denied, "%s allows at most %s, which is below the minimum of profile %s, %s; ask under another profile",
				wanted.CapReason, wanted.Cap, p.config.Name, p.config.MinLifetime).Because(errkind.LifetimeRefused)
		}
		lifetime, reason = wanted.Cap, fmt.Sprintf("%s allows at most %s", wanted.CapReason, wanted.Cap)
	}
	v.NotBefore, v.NotAfter = v.Issued.Add(-Backdate), v.Issued.Add(lifetime).Truncate(time.Second)
	if v.NotBefore.Before(window.NotBefore) {
		v.NotBefore = window.NotBefore
	}
	if v.NotAfter.After(window.NotAfter) {
		v.NotAfter = window.NotAfter
		if v.NotAfter.Sub(v.Issued) < p.config.MinLifetime {
			return Validity{}, errkind.New(errkind.Unavailable, "issuer %s ends at %s: less than the minimum lifetime of profile %s, %s, is left; the authority needs a new issuer",
				window.Ends, stamp(window.NotAfter), p.config.Name, p.config.MinLifetime).Because(errkind.IssuerNotValid).After(retryIssuer)
		}
		reason = fmt.Sprintf("issuer %s ends at %s", window.Ends, stamp(window.NotAfter))
	}
	// last, so that certificates which all end with their issuer are spread too
	v.NotAfter = v.Issued.Add(p.shortened(v.NotAfter.Sub(v.Issued), wanted)).Truncate(time.Second)
	return v.ended(reason), nil
}

// Signed returns the validity of the certificate that a backend made: a backend may end it earlier than was approved, as when its own
// issuer ends, and renewal has to come earlier then; or later, where the operator allows it to. The error is errkind.Unavailable if that leaves less than the profile's minimum.
func (p *Profile) Signed(v Validity, notBefore, notAfter time.Time) (Validity, error) {
	v.NotBefore = notBefore
	switch {
	case notAfter.Equal(v.NotAfter):
		return v, nil
	case notAfter.After(v.NotAfter):
		v.NotAfter = notAfter
		return v.ended(v.Clamp.Reason), nil
	}
	v.NotAfter = notAfter
	if v.NotAfter.Sub(v.Issued) < p.config.MinLifetime {
		return Validity{}, errkind.New(errkind.Unavailable, "the signing backend ends certificates at %s: less than the minimum lifetime of profile %s, %s, is left",
			stamp(notAfter), p.config.Name, p.config.MinLifetime).Because(errkind.IssuerNotValid).After(retryIssuer)
	}
	return v.ended("the signing backend ends it at " + stamp(notAfter)), nil
}

// ended fills in what follows from NotAfter. A reason makes it a clamped life.
func (v Validity) ended(reason string) Validity {
	if reason != "" {
		v.Clamp = Clamp{Asked: v.asked, Granted: v.NotAfter.Sub(v.Issued), Reason: reason}
	}
	return v
}

// shortened returns a lifetime within the jitter that was asked for.
func (p *Profile) shortened(lifetime time.Duration, wanted Wanted) time.Duration {
	if wanted.Shorten == nil || !(wanted.Jitter > 0) { // NaN too
		return lifetime
	}
	shortest := max(lifetime-time.Duration(float64(lifetime)*min(wanted.Jitter, 1)), p.config.MinLifetime)
	if shortest >= lifetime {
		return lifetime
	}
	return min(max(wanted.Shorten(shortest, lifetime), shortest), lifetime)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
