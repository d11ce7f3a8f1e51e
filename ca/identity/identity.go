// Package identity holds who calls: the credential a workload shows and the Principal that an Authenticator makes of it.
//
// It never decides what a principal may have (ca/authorize does) and never talks to a network.
package identity

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Method names the kind of credential that proved a Principal. Values are fixed: they are metric labels and ledger values.
type Method string

// The methods.
const (
	MethodKubernetes  Method = "kubernetes"  // a service-account token, verified against its cluster
	MethodOIDC        Method = "oidc"        // an ID token of a configured OpenID Connect issuer
	MethodCertificate Method = "certificate" // a certificate that this authority issued, shown in the TLS handshake
	MethodJoinToken   Method = "join_token"  // a one-time token, made by the operator
	MethodServer      Method = "server"      // the server itself, for its serving certificate
)

// Principal is an authenticated caller. It is immutable once an Authenticator has returned it.
type Principal struct {
	// ID is the caller's own identity, in our trust domain.
	ID spiffeid.ID
	// Method says by which kind of credential the identity was proven.
	Method Method
	// CredentialID identifies the credential without revealing it: a token's jti, or the public half of a join token.
	CredentialID string
	// Expiry is when the credential ends; zero if it does not say.
	Expiry time.Time
	// JoinToken is the hash of the join token that the issuance has to consume; empty for every other method.
	JoinToken []byte
	// Kubernetes is set for MethodKubernetes.
	Kubernetes *Kubernetes
	// OIDC is set for MethodOIDC.
	OIDC *OIDC
	// Certificate is set for MethodCertificate.
	Certificate *Certificate
}

// Verification says how a service-account token was verified, for the audit record.
type Verification string

// The ways, strongest first. VerifiedOffline says nothing about whether the pod still exists.
const (
	VerifiedReview  Verification = "tokenreview"      // the cluster was asked, or had been within the cache's time
	VerifiedLive    Verification = "offline+liveness" // by the issuer's keys, and its objects exist by our view of the cluster
	VerifiedOffline Verification = "offline"          // by the issuer's keys alone
)

// OIDC is what an ID token says of its holder.
type OIDC struct {
	Provider string         // the issuer's name in the configuration
	Issuer   string         // the claim iss
	Subject  string         // the claim sub
	Claims   map[string]any // every claim, in the types of encoding/json; treat it as read-only
}

// Certificate is the certificate by which its holder renews it.
type Certificate struct {
	Serial   string // lower-case hexadecimal
	NotAfter time.Time
	// Profile is the profile that it was issued under. Without ClientAuth, the extended key usage by which its key may stand for its holder as a client,
	// it renews under that profile alone.
	Profile    string
	ClientAuth bool
	// Origin is the method by which the first certificate of the line was got.
	Origin Method
	// Grace is true if it had expired and was accepted nevertheless, within the grace that is configured.
	Grace bool
}

// Kubernetes is what a cluster says of a service-account token's holder.
type Kubernetes struct {
	Cluster            string
	Namespace          string
	ServiceAccount     string
	ServiceAccountUID  string
	PodName, PodUID    string
	NodeName, NodeUID  string
	TokenAudienceMatch string // the audience of ours that the token carried
	Verification       Verification
}

// Credential is what a caller showed, not yet believed.
type Credential struct {
	// Bearer is the token of the authorization header; empty if there was none.
	Bearer Secret
	// ClusterID is the cluster that the caller says it runs in; empty means the local one.
	ClusterID string
	// PeerChain is the client certificate chain of the TLS connection, unverified beyond what TLS did; empty if there was none.
	PeerChain []*x509.Certificate
	// Remote is the address that the connection came from, for the audit record. It proves nothing.
	Remote netip.AddrPort
}

// Authenticator turns a Credential into a Principal.
type Authenticator interface {
	// Authenticate returns handled=false, and nothing else, if the credential is not of the kind that this Authenticator knows.
	// Otherwise its verdict is final: the first Authenticator that handles a credential decides. Errors are classified by
	// errkind: Unauthenticated when the credential is bad, Unavailable or Exhausted when that could not be found out. It is safe for
	// concurrent use and honours ctx.
	Authenticate(ctx context.Context, credential Credential) (principal *Principal, handled bool, err error)
}

// Secret is a string that shows itself nowhere: not in logs, not in formatted text, not in JSON. Fields that hold one are exported or
// printed by nobody: fmt calls no method of what an unexported field holds.
type Secret string

const redacted = "[redacted]"

// String returns a fixed text.
func (Secret) String() string { return redacted }

// Format writes a fixed text, whatever the verb: for a verb that does not suit a string, fmt would otherwise show the string itself.
func (Secret) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(redacted)) }

// LogValue returns a fixed text.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns a fixed text; JSON and YAML encoders use it.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }
