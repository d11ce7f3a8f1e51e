package ca

import "github.com/chancery-ca/chancery/ca/ledger"

// NewSerial draws a serial number as an issuance does.
func (a *Authority) NewSerial() (ledger.Serial, error) { return a.newSerial() }
