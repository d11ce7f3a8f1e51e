package ca

import (
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/profile"
)

// Door names the way in which an order came. Values are fixed: they are metric labels and ledger values.
type Door string

// The doors.
const (
	DoorChancery Door = "chancery" // gRPC, chancery.v1
	DoorIstio    Door = "istio"    // gRPC, istio.v1.auth
	DoorServer   Door = "server"   // the server's own certificate
)

// DefaultProfile is what an order without a profile gets.
const DefaultProfile = "workload"

// Order is what a door asks the Authority to issue, on behalf of an authenticated principal.
type Order struct {
	Principal *identity.Principal
	Door      Door
	// Remote is the address the request came from, for the records alone.
	Remote string
	// CSR is the untrusted PKCS #10 request, PEM or DER (csr.Parse).
	CSR []byte
	// Profile is a profile's name; empty means DefaultProfile.
	Profile string
	// Names are wanted names; empty means those in the CSR, and if there are none either, the principal's own identity.
	Names identity.Names
	// Lifetime is what was asked for; zero or less means the profile's default.
	Lifetime time.Duration
	// Jitter is the share of the lifetime, 0 to 1, of which a part is taken away, so that holders that renew at half of it do not come together.
	Jitter float64
}

// profile returns the name of the profile that is meant.
func (o Order) profile() string {
	if o.Profile == "" {
		return DefaultProfile
	}
	return o.Profile
}

// Issuance is what an order yields. Chain and Bundle come from the same snapshot.
type Issuance struct {
	Serial   ledger.Serial
	Chain    chain.Chain
	Bundle   *bundle.Bundle
	NotAfter time.Time
	// RenewAt is when the holder ought to ask again: after half and up to two thirds of the life, or after a third where many others would come with it.
	// Through DoorIstio nobody is told: holders come back after half.
	RenewAt time.Time
	// Issued is the server's time at the decision.
	Issued time.Time
	// Clamp says why the lifetime is shorter than asked for; zero if it is not.
	Clamp profile.Clamp
	// Rule is the name of the rule that allowed it.
	Rule string
}
