package inspect

import (
	"fmt"
	"time"
)

// Status says how a time lies to a validity.
type Status string

// The statuses.
const (
	Valid       Status = "valid"
	Expired     Status = "expired"
	NotYetValid Status = "not_yet_valid"
)

// Validity is the time in which something holds, both ends included, as seen from a moment.
type Validity struct {
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	Status    Status    `json:"status"`
	// RemainingSeconds counts to NotAfter; it is negative once that is over.
	RemainingSeconds int64 `json:"remaining_seconds"`

	at time.Time
}

func validity(notBefore, notAfter, at time.Time) Validity {
	v := Validity{NotBefore: notBefore.UTC(), NotAfter: notAfter.UTC(), Status: Valid, RemainingSeconds: notAfter.Unix() - at.Unix(), at: at}
	switch {
	case at.Unix() < notBefore.Unix():
		v.Status = NotYetValid
	case at.Unix() > notAfter.Unix():
		v.Status = Expired
	}
	return v
}

// endless is the notAfter of certificates without a well-defined end (RFC 5280 §4.1.2.5).
var endless = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// String says it in words: "valid for another 43 minutes (until 2027-01-15T12:43:00Z)".
func (v Validity) String() string { return v.words("valid", "expired %s ago (at %s)") }

// words says the status, with the word for what is valid and the sentence for what is over: for how long, since when.
func (v Validity) words(valid, over string) string {
	switch {
	case v.Status == NotYetValid:
		return fmt.Sprintf("not %s yet: starts in %s (at %s)", valid, span(v.NotBefore.Unix()-v.at.Unix()), stamp(v.NotBefore))
	case v.Status == Expired:
		return fmt.Sprintf(over, span(-v.RemainingSeconds), stamp(v.NotAfter))
	case v.NotAfter.Equal(endless):
		return valid + " without an end"
	default:
		return fmt.Sprintf("%s for another %s (until %s)", valid, span(v.RemainingSeconds), stamp(v.NotAfter))
	}
}

// Whole says since when and for how long in all.
func (v Validity) Whole() string {
	if v.NotAfter.Equal(endless) || v.NotAfter.Before(v.NotBefore) {
		return fmt.Sprintf("since %s", stamp(v.NotBefore))
	}
	return fmt.Sprintf("since %s, %s in all", stamp(v.NotBefore), span(v.NotAfter.Unix()-v.NotBefore.Unix()+1))
}

// span says a number of seconds in the largest unit of which there are at least two, rounded down: who reads "2 hours" has two hours.
func span(seconds int64) string {
	const minute, hour, day, year = 60, 3600, 86400, 365 * 86400
	for _, unit := range [...]struct {
		seconds int64
		name    string
	}{{year, "years"}, {day, "days"}, {hour, "hours"}, {minute, "minutes"}} {
		if count := seconds / unit.seconds; count >= 2 {
			return fmt.Sprintf("%d %s", count, unit.name)
		}
	}
	if seconds == 1 {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", seconds)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// counted says a number of things.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
