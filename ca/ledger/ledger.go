// Package ledger defines the roll of everything that the authority has been asked to sign: what was reserved before a key was
// used, what became of it, and the join tokens that pay for an issuance.
//
// The implementations are in its folders (sqlite); ledgertest holds the contract that each of them passes. The package never
// decides whether something may be issued.
package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Serial is a certificate serial number: 1 to 20 octets, big-endian, positive, no leading zero octets. It is comparable.
type Serial string

// SerialFromInt returns n as a Serial. It refuses what RFC 5280 §4.1.2.2 forbids: zero, negative numbers, more than 20 octets.
func SerialFromInt(n *big.Int) (Serial, error) {
	if n == nil || n.Sign() <= 0 || n.BitLen() > 159 {
		return "", errors.New("serial must be positive and at most 159 bits (RFC 5280 §4.1.2.2)")
	}
	return Serial(n.Bytes()), nil
}

// ParseSerial reads the hexadecimal form, with or without colons.
func ParseSerial(text string) (Serial, error) {
	clean := strings.ReplaceAll(text, ":", "")
	if len(clean)%2 == 1 {
		clean = "0" + clean
	}
	b, err := hex.DecodeString(clean)
	if err != nil {
		return "", fmt.Errorf("serial %q is not hexadecimal", text)
	}
	return SerialFromInt(new(big.Int).SetBytes(b))
}

// String returns the serial as lower-case hexadecimal, two digits an octet.
func (s Serial) String() string { return hex.EncodeToString([]byte(s)) }

// Int returns the serial as a number.
func (s Serial) Int() *big.Int { return new(big.Int).SetBytes([]byte(s)) }

// State is what became of a reservation.
type State string

// The states. A reservation that the process did not live to settle stays Reserved for ever: a certificate of that serial may have been
// signed, but never left the process.
const (
	Reserved State = "reserved"
	Issued   State = "issued"
	Failed   State = "failed"
)

// Intent is what is made durable before a key is used.
type Intent struct {
	Serial   Serial
	Created  time.Time
	Identity string // the principal's SPIFFE ID
	Profile  string
	Rule     string   // the rule that allowed it
	Names    []string // every name of the certificate to come, as "URI:…", "DNS:…", "IP:…"
	Origin   Origin
	KeyID    []byte // SHA-256 of the DER SubjectPublicKeyInfo
	// JoinToken is the hash of the join token that this issuance consumes; nil for none.
	JoinToken []byte
}

// Origin says who asked, as far as it was proven.
type Origin struct {
	Method       string `json:"method"`
	CredentialID string `json:"credential_id,omitempty"`
	Door         string `json:"door,omitempty"`
	Remote       string `json:"remote,omitempty"`
	Cluster      string `json:"cluster,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
	Account      string `json:"service_account,omitempty"`
	AccountUID   string `json:"service_account_uid,omitempty"`
	Pod          string `json:"pod,omitempty"`
	PodUID       string `json:"pod_uid,omitempty"`
	Node         string `json:"node,omitempty"`
	NodeUID      string `json:"node_uid,omitempty"`
	Issuer       string `json:"issuer,omitempty"`  // of an ID token
	Subject      string `json:"subject,omitempty"` // of an ID token
	// Renews is the serial, in hexadecimal, of the entry whose certificate was shown to get this one, and FirstMethod the method by which the first
	// of that line was got.
	Renews      string `json:"renews,omitempty"`
	FirstMethod string `json:"first_method,omitempty"`
}

// Outcome settles a reservation.
type Outcome struct {
	Serial Serial
	// Certificate is the DER leaf; set when it was issued.
	Certificate []byte
	// LeafSerial is the leaf's own serial number if it differs from Serial, since a remote authority chose it; otherwise it may be empty. Entries are
	// found by it and do not show it: it is in the certificate.
	LeafSerial  Serial
	IssuerKeyID []byte // the leaf's authority key identifier
	NotBefore   time.Time
	NotAfter    time.Time
	// Reason says why nothing was issued; set when it failed.
	Reason string
}

// Entry is one row of the roll.
type Entry struct {
	Intent
	State   State
	Outcome Outcome
	Settled time.Time   // zero while reserved
	Revoked *Revocation // nil unless it was revoked
}

// RevocationReason is a CRLReason (RFC 5280 §5.3.1).
type RevocationReason uint8

// The reasons that a certificate of ours can be revoked for. Those that are not here are for authorities, or undo a revocation, which the ledger does not.
const (
	Unspecified          RevocationReason = 0
	KeyCompromise        RevocationReason = 1
	AffiliationChanged   RevocationReason = 3
	Superseded           RevocationReason = 4
	CessationOfOperation RevocationReason = 5
	PrivilegeWithdrawn   RevocationReason = 9
)

var reasonNames = map[RevocationReason]string{
	Unspecified: "unspecified", KeyCompromise: "key-compromise", AffiliationChanged: "affiliation-changed", Superseded: "superseded",
	CessationOfOperation: "cessation-of-operation", PrivilegeWithdrawn: "privilege-withdrawn",
}

// String returns the reason as commands show and take it.
func (r RevocationReason) String() string {
	if name, ok := reasonNames[r]; ok {
		return name
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// ParseRevocationReason reads what String returns.
func ParseRevocationReason(text string) (RevocationReason, error) {
	names := make([]string, 0, len(reasonNames))
	for _, reason := range slices.Sorted(maps.Keys(reasonNames)) {
		if reasonNames[reason] == text {
			return reason, nil
		}
		names = append(names, reasonNames[reason])
	}
	return 0, fmt.Errorf("reason %q is none of %s", text, strings.Join(names, ", "))
}

// Revocation says that a certificate is not to be trusted any more. It is never undone.
type Revocation struct {
	At     time.Time
	Reason RevocationReason
	By     string // who revoked it, for people
}

// Check returns what is wrong with a revocation.
func (r Revocation) Check() error {
	if _, ok := reasonNames[r.Reason]; !ok {
		return fmt.Errorf("%s is not one for which a certificate can be revoked here", r.Reason)
	}
	if r.At.Year() < 1970 || r.At.Year() > 2200 {
		return fmt.Errorf("the time of revocation %v is out of range", r.At)
	}
	return nil
}

// Query selects entries. Zero fields select everything.
type Query struct {
	Identity    string
	State       State
	Since       time.Time // created at or after
	Until       time.Time // created before
	ValidAt     time.Time // issued, and NotBefore ≤ ValidAt ≤ NotAfter
	Revoked     bool      // revoked
	IssuerKeyID []byte    // issued, with this authority key identifier; of one that signs no more, ask with ValidAt or Until
	Limit       int       // at most 1000; zero means 100
	After       Serial    // the last serial of the page before; empty for the first page
}

// JoinToken is a one-time credential, known to the ledger by its hash alone.
type JoinToken struct {
	Hash     []byte // SHA-256 of the token
	ID       string // the public half, for people and audit records
	Identity string
	Created  time.Time
	Expires  time.Time
	// UsedBy is the serial whose reservation consumed the token; empty while it is unused.
	UsedBy Serial
}

// Errors of a Ledger, found with errors.Is. ErrUnavailable means that nothing was written and that the same call may succeed
// later (disk full, read-only, locked); implementations wrap the cause.
var (
	ErrNotFound    = errors.New("not in the ledger")
	ErrDuplicate   = errors.New("serial is already in the ledger")
	ErrTokenUsed   = errors.New("join token was already used")
	ErrTokenGone   = errors.New("join token is unknown or has expired")
	ErrNotIssued   = errors.New("nothing was issued under this serial")
	ErrSettled     = errors.New("reservation is already settled")
	ErrUnavailable = errors.New("ledger unavailable")
)

// Ledger is the durable roll. Every method is safe for concurrent use and honours ctx while it waits.
type Ledger interface {
	// Reserve makes the intent durable, and consumes its join token in the same transaction, before it returns nil. Two
	// reservations with one token: one gets nil, the other ErrTokenUsed. A serial that was ever reserved is ErrDuplicate. When ctx ends while
	// the write is on its way, the reservation may or may not have been made; Reserve then returns ctx's error and the ledger settles
	// the reservation as failed.
	Reserve(ctx context.Context, intent Intent) error
	// Commit makes the outcome durable before it returns nil: only then may the certificate leave. ErrNotFound if the serial was not
	// reserved, ErrSettled if it was settled before. If it returns any other error, the certificate must not leave.
	Commit(ctx context.Context, outcome Outcome) error
	// Fail settles a reservation as failed, for outcome.Reason, and gives its join token back, so that a caller can try again with it.
	Fail(ctx context.Context, outcome Outcome) error

	// Get returns the entry for a serial, or ErrNotFound.
	Get(ctx context.Context, serial Serial) (Entry, error)
	// Certificate returns the issued entry whose certificate is exactly der, or ErrNotFound. leaf is der's own serial number.
	Certificate(ctx context.Context, leaf Serial, der []byte) (Entry, error)
	// Revoke makes the revocation of an issued entry durable before it returns nil. An entry that is revoked already stays as it is, and Revoke
	// returns nil. ErrNotFound if the serial was not reserved or is not settled, ErrNotIssued if it failed.
	Revoke(ctx context.Context, serial Serial, revocation Revocation) error
	// Find returns entries, newest first.
	Find(ctx context.Context, query Query) ([]Entry, error)

	// AddToken stores a new join token.
	AddToken(ctx context.Context, token JoinToken) error
	// Token returns the token with this hash: ErrTokenGone if it is unknown or expired at now, ErrTokenUsed if it was used.
	Token(ctx context.Context, hash []byte, now time.Time) (JoinToken, error)

	// BundleSequence returns the sequence number of the trust bundle with this content hash. A hash other than the latest gets the
	// next number, durably; numbers start at 1 and never go back.
	BundleSequence(ctx context.Context, hash []byte) (uint64, error)
	// Probe proves that the ledger can be written, by writing durably.
	Probe(ctx context.Context) error
	// Close settles what is on its way, durably, and releases everything.
	Close() error
}
