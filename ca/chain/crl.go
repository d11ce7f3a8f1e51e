package chain

import (
	"crypto/x509"
	"fmt"
	"math/big"

	"github.com/chancery-ca/chancery/ca/der"
	"github.com/chancery-ca/chancery/ca/pem"
)

// The bounds of a revocation list. One of 16 MiB holds some 400,000 entries.
const (
	maxCRLBytes    = 16 << 20
	maxCRLElements = 4_000_000
	maxCRLs        = 100
)

// labelCRL is the label of RFC 7468 §6.
const labelCRL = "X509 CRL"

// CRL is a certificate revocation list (RFC 5280 §5) that was read strictly, with all that its scope and its entries say. It is immutable.
type CRL struct {
	list    *x509.RevocationList
	issuer  distinguishedName
	scope   crlScope
	base    *big.Int       // the base number of a delta; nil for a complete list
	issuers map[string]int // canonical names of the entries' certificate issuers; that of the list is 0
	entries map[crlSubject]Reason
	checked bool // nothing in it was refused
}

// crlSubject is a certificate that an entry is about.
type crlSubject struct {
	issuer int    // see CRL.issuers
	serial string // the contents of the INTEGER
}

// List returns the list as crypto/x509 reads it. It must not be changed.
func (c *CRL) List() *x509.RevocationList { return c.list }

// Delta tells whether the list holds only changes since another.
func (c *CRL) Delta() bool { return c.base != nil }

// Indirect tells whether the list may hold certificates of other issuers than its own.
func (c *CRL) Indirect() bool { return c.scope.indirect }

// ParseCRL reads a revocation list from anyone. It refuses what is Malformed and what crypto/x509 does not read; version 1 lists, those
// without a number or nextUpdate, and those with a critical extension that is not processed here are among that. Errors are of type *ParseError.
func ParseCRL(encoding []byte) (*CRL, error) { return parseCRL(encoding, Malformed) }

// ParseIssuedCRL reads a revocation list that we issued just now: it refuses what is Nonconforming, too. Errors are of type *ParseError.
func ParseIssuedCRL(encoding []byte) (*CRL, error) { return parseCRL(encoding, Nonconforming) }

func parseCRL(encoding []byte, limit Severity) (*CRL, error) {
	list, findings := InspectCRL(encoding)
	var refused []Finding
	for _, finding := range findings {
		if finding.Severity >= limit || list == nil {
			refused = append(refused, finding)
		}
	}
	if len(refused) > 0 {
		return nil, &ParseError{Findings: refused}
	}
	list.checked = true
	return list, nil
}

// InspectCRL reads a revocation list and returns everything that is wrong with it. The list is nil if it is not DER or if crypto/x509 does not read
// it; in both cases there is a finding that says so. It must not be relied on when there are findings: it is for showing.
func InspectCRL(encoding []byte) (*CRL, []Finding) {
	in := crlInspection{crl: &CRL{entries: make(map[crlSubject]Reason)}}
	if err := der.CheckWithin(encoding, der.Limits{MaxBytes: maxCRLBytes, MaxElements: maxCRLElements}); err != nil {
		in.add(Malformed, "der", "RFC 5280 §5.1", "the revocation list is not DER: %v", err)
		return nil, in.findings
	}
	in.certificateList(encoding)
	list, err := x509.ParseRevocationList(encoding)
	if err != nil {
		if len(in.findings) == 0 {
			in.add(Malformed, "crypto-x509", "RFC 5280 §5.1", "the revocation list cannot be read: %s", bounded(err.Error()))
		}
		return nil, in.findings
	}
	in.crl.list = list
	return in.crl, in.findings
}

// ParseCRLs reads revocation lists as PEM text or one as DER, each as ParseCRL does. Any damaged block and any refused list refuses the
// whole input. Errors wrap a *pem.Error or a *ParseError.
func ParseCRLs(input []byte) ([]*CRL, error) {
	// a SEQUENCE too long for the short form of a length, as every list is: text does not start with such octets
	if len(input) > 1 && input[0] == 0x30 && input[1] >= 0x80 {
		list, err := ParseCRL(input)
		if err != nil {
			return nil, fmt.Errorf("revocation list: %w", err)
		}
		return []*CRL{list}, nil
	}
	blocks, err := pem.Decode(input, pem.Rules{Labels: []string{labelCRL}, MaxBytes: 2 * maxCRLBytes, MaxBlocks: maxCRLs})
	if err != nil {
		return nil, fmt.Errorf("revocation lists: %w", err)
	}
	lists := make([]*CRL, len(blocks))
	for i, block := range blocks {
		if lists[i], err = ParseCRL(block.Bytes); err != nil {
			return nil, fmt.Errorf("revocation list %d (line %d): %w", i+1, block.Line, err)
		}
	}
	return lists, nil
}
