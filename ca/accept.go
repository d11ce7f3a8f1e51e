package ca

import (
	"math"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
)

// accepted returns what the backend's answer is held against: what was approved, widened by what the backend declared that its authority chooses
// itself. However late it may end a certificate, policy stays the bound: the longest lifetime of the profile, and that of the rule.
func (s *snapshot) accepted(d *decision) chain.Leaf {
	want := s.choices.Accept(d.leaf)
	longest := d.profile.Lifetime(math.MaxInt64)
	if d.limit > 0 {
		longest = min(longest, d.limit)
	}
	latest := d.began.Add(longest).Truncate(time.Second)
	if latest.Before(d.leaf.NotAfter) {
		latest = d.leaf.NotAfter
	}
	if want.NotAfter.After(latest) {
		want.NotAfter = latest
	}
	return want
}
