package ca

import (
	"crypto"
	"log/slog"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/ledger"
)

// KeyName returns the name of a key's kind.
func KeyName(public crypto.PublicKey) string { return keyName(public) }

// NewSerial draws a serial number as an issuance does.
func (a *Authority) NewSerial() (ledger.Serial, error) { return a.newSerial() }

// Refusals is the bound on records of refusals.
type Refusals struct{ *refusals }

// NewRefusals returns one by itself.
func NewRefusals(logger *slog.Logger, now func() time.Time, limit RecordLimit) Refusals {
	return Refusals{newRefusals(logger, now, limit)}
}

// Admit tells whether a refusal gets its own record.
func (r Refusals) Admit(door Door, remote string, reason errkind.Reason) bool {
	return r.admit(Order{Door: door, Remote: remote}, reason)
}

// Flush writes what is pending.
func (r Refusals) Flush() { r.flush() }
