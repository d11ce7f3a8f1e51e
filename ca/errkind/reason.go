package errkind

import "errors"

// Reason says which rule refused something, in a word from a fixed list: it is a metric label, a field of the audit record and the reason of the
// google.rpc.ErrorInfo that a caller gets. An error without one has the reason of its kind.
type Reason string

// Reasons about the credential.
//
//nolint:gosec // G101: these are words about credentials
const (
	NoCredential        Reason = "no_credential"        // none was sent
	UnknownCredential   Reason = "unknown_credential"   // of no kind that is accepted
	MalformedCredential Reason = "malformed_credential" // not of the form of its kind
	WrongAudience       Reason = "wrong_audience"       // made for someone else
	WrongIssuer         Reason = "wrong_issuer"         // made by someone who is not trusted for it
	UnknownCluster      Reason = "unknown_cluster"      // of a cluster that is not configured
	BadSignature        Reason = "bad_signature"        // no key of its issuer made it, or its algorithm is not accepted
	CredentialExpired   Reason = "credential_expired"   // its time is over
	NotYetValid         Reason = "not_yet_valid"        // it begins in the future
	NotBound            Reason = "not_bound"            // bound to nothing that lives, or not to what is accepted
	ObjectGone          Reason = "object_gone"          // the pod, service account or node that it names does not exist, or is another one by now
	ClusterRefused      Reason = "cluster_refused"      // the cluster does not accept it
	TokenUsed           Reason = "token_used"           // a join token that was used before
	TokenUnknown        Reason = "token_unknown"        // a join token that never was, or has expired
	NotMapped           Reason = "not_mapped"           // a good token of an issuer whose mapping gives it no identity
	UnknownCertificate  Reason = "unknown_certificate"  // not of this authority, or not in its ledger
	CertificateRevoked  Reason = "certificate_revoked"  // a certificate of this authority that was revoked
	NotRenewable        Reason = "not_renewable"        // a good certificate that may not be renewed by itself
)

// Reasons about the request.
const (
	BadRequest      Reason = "bad_request"      // a field breaks its format
	BadCSR          Reason = "bad_csr"          // the request does not parse, or its signature is not by its key
	KeyRefused      Reason = "key_refused"      // the key is of a kind, strength or list that is refused
	UnknownProfile  Reason = "unknown_profile"  // there is none of this name
	NamesMismatch   Reason = "names_mismatch"   // the names do not fit each other or the profile
	LifetimeRefused Reason = "lifetime_refused" // shorter than the profile allows
	NotAllowed      Reason = "not_allowed"      // no rule allows it
	PolicyDenied    Reason = "policy_denied"    // a rule denies it
	PolicyFailed    Reason = "policy_failed"    // a rule could not be evaluated
	ProxyRefused    Reason = "proxy_refused"    // a node proxy asked for an identity that it may not hold
	LintRefused     Reason = "lint_refused"     // the certificate would break a rule of its format
)

// Reasons of ours.
const (
	RateLimited        Reason = "rate_limited"        // the caller, or its node, asks too often
	Overloaded         Reason = "overloaded"          // the server has more to do than it can in time
	DeadlineTooNear    Reason = "deadline_too_near"   // it cannot be done in the time that the caller gives
	ClusterUnavailable Reason = "cluster_unavailable" // the cluster could not be asked
	IssuerUnavailable  Reason = "issuer_unavailable"  // the keys of a token's issuer could not be had
	LedgerUnavailable  Reason = "ledger_unavailable"  // the ledger cannot record or answer
	SignerUnavailable  Reason = "signer_unavailable"  // the signing backend does not answer
	SignerWrong        Reason = "signer_wrong"        // the backend's answer was refused by the checker
	SignerRefused      Reason = "signer_refused"      // the backend refused the request for good
	IssuerNotValid     Reason = "issuer_not_valid"    // the authority's own issuer has not begun, has ended, or ends too soon
)

// Reasons of errors that name none: one for each kind.
const (
	reasonInternal        Reason = "internal"
	reasonInvalid         Reason = "invalid"
	reasonUnauthenticated Reason = "unauthenticated"
	reasonDenied          Reason = "denied"
	reasonNotFound        Reason = "not_found"
	reasonConflict        Reason = "conflict"
	reasonExhausted       Reason = "exhausted"
	reasonUnavailable     Reason = "unavailable"
)

// Reasons returns the whole list, for the metrics that count by it.
func Reasons() []Reason {
	return []Reason{
		NoCredential, UnknownCredential, MalformedCredential, WrongAudience, WrongIssuer, UnknownCluster, BadSignature, CredentialExpired, NotYetValid,
		NotBound, ObjectGone, ClusterRefused, TokenUsed, TokenUnknown, NotMapped, UnknownCertificate, CertificateRevoked, NotRenewable,
		BadRequest, BadCSR, KeyRefused, UnknownProfile, NamesMismatch, LifetimeRefused, NotAllowed, PolicyDenied, PolicyFailed, ProxyRefused, LintRefused,
		RateLimited, Overloaded, DeadlineTooNear, ClusterUnavailable, IssuerUnavailable, LedgerUnavailable, SignerUnavailable, SignerWrong,
		SignerRefused, IssuerNotValid,
		reasonInternal, reasonInvalid, reasonUnauthenticated, reasonDenied, reasonNotFound, reasonConflict, reasonExhausted, reasonUnavailable,
	}
}

// Because returns a copy of the error with a reason.
func (e *Error) Because(reason Reason) *Error {
	c := *e
	c.reason = reason
	return &c
}

// ReasonOf returns the reason of the outermost classified error in err's chain, or that of err's kind.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) && e.reason != "" {
		return e.reason
	}
	return Reason(Of(err).String())
}
