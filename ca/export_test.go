package ca

import (
	"crypto"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// KeyName returns the name of a key's kind.
func KeyName(public crypto.PublicKey) string { return keyName(public) }

// NewSerial draws a serial number as an issuance does.
func (a *Authority) NewSerial() (ledger.Serial, error) { return a.newSerial() }
