package tokenreview

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// Liveness knows which objects of a cluster exist.
type Liveness interface {
	// Synced tells whether the view of the cluster is complete and recent enough to be believed.
	Synced() bool
	// Alive returns nil if the objects that holder names exist, have the UIDs that it has, and belong together. Its error is classified (errkind) and
	// has the cause for the log. One that wraps ErrGone is final; any other means that the cluster has to be asked.
	Alive(holder *identity.Kubernetes) error
}

// ErrGone is wrapped by what a Liveness says about an object that it has seen and seen to go.
var ErrGone = errors.New("it was seen, and it is gone")

// OfflineConfig says which tokens of one cluster are good. Zero values of the optional fields mean their defaults.
type OfflineConfig struct {
	// Cluster is the name of the cluster in principals and audit records. Required.
	Cluster string
	// Identity makes the identities of the cluster's service accounts. Required.
	Identity identity.Path
	// Issuer is the claim iss that tokens have to have, exactly. Required.
	Issuer string
	// Audiences are ours; a token has to be for one of them. At least one.
	Audiences []string
	// Algorithms are accepted, of RS256, ES256, ES384 and ES512. Default all four.
	Algorithms []string
	// AcceptNodeBound also takes tokens that are bound to a node and to no pod. Off by default.
	AcceptNodeBound bool
	// EnforceWarnAfter refuses tokens whose claim warnafter has passed. Off by default.
	EnforceWarnAfter bool
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c OfflineConfig) complete() (OfflineConfig, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Audiences, c.Algorithms = slices.Clone(c.Audiences), slices.Clone(c.Algorithms)
	switch {
	case c.Cluster == "":
		return c, errors.New("tokenreview: cluster is empty: give the cluster a name for the audit records")
	case c.Identity.IsZero():
		return c, errors.New("tokenreview: offline verification needs an identity path: make one with identity.NewPath")
	case c.Issuer == "":
		return c, errors.New("tokenreview: issuer is empty: pin the one of the cluster's tokens, or any issuer with a known key would do")
	case len(c.Audiences) == 0, slices.Contains(c.Audiences, ""):
		return c, errors.New("tokenreview: audiences are empty or have an empty entry: name ours, or any token of the cluster would do")
	}
	var err error
	c.Algorithms, err = checkAlgorithms(c.Algorithms)
	return c, err
}

// verifiable are the algorithms that a KeySet verifies.
var verifiable = []string{"RS256", "ES256", "ES384", "ES512"}

// checkAlgorithms returns the algorithms, or all that are verifiable for none.
func checkAlgorithms(algorithms []string) ([]string, error) {
	if len(algorithms) == 0 {
		return verifiable, nil
	}
	for _, name := range algorithms {
		if !slices.Contains(verifiable, name) {
			return nil, errors.New("tokenreview: a signature algorithm is none of " + strings.Join(verifiable, ", "))
		}
	}
	return algorithms, nil
}

// Offline authenticates service-account tokens by their issuer's keys, without a call of the API server. It is safe for concurrent use.
type Offline struct {
	config   OfflineConfig
	keys     *KeySet
	liveness Liveness
	fallback identity.Authenticator
	logger   *slog.Logger
}

// NewOffline returns an Offline for one cluster. With liveness the token's objects have to exist; what liveness can neither say yes to nor has seen to go,
// fallback decides, which asks the cluster (Online). Without liveness there is no fallback, and a token is good to its end, even if its pod is gone. logger
// may be nil.
func NewOffline(config OfflineConfig, keys *KeySet, liveness Liveness, fallback identity.Authenticator, logger *slog.Logger) (*Offline, error) {
	if keys == nil {
		return nil, errors.New("tokenreview: offline verification needs the issuer's keys")
	}
	if (liveness == nil) != (fallback == nil) {
		return nil, errors.New("tokenreview: liveness and the fallback for what it does not know belong together")
	}
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Offline{config: config, keys: keys, liveness: liveness, fallback: fallback, logger: logger}, nil
}

// Authenticate handles every bearer token that is meant to be a JWT.
func (o *Offline) Authenticate(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
	token := credential.Bearer.Reveal()
	if !looksLikeJWT(token) {
		return nil, false, nil
	}
	parsed, principal, err := o.read(token)
	if err == nil {
		err = o.keys.verify(ctx, token, parsed)
	}
	if err == nil { // it may have expired while the keys were fetched
		err = checkExpiry(principal.Expiry, o.config.Now())
	}
	switch {
	case err != nil && o.fallback != nil && errkind.ReasonOf(err) == errkind.IssuerUnavailable: // the cluster has the keys
		o.keys.count(verifiedAskedForKeys)
		return o.fallback.Authenticate(ctx, credential)
	case err != nil:
		o.keys.count(resultOf(err))
		return nil, true, err
	case o.liveness == nil:
		o.keys.count(verifiedGood)
		principal.Kubernetes.Verification = identity.VerifiedOffline
		return principal, true, nil
	}
	// a view may be incomplete, and a pod that is seconds old may be younger than the view: the cluster itself knows
	if !o.liveness.Synced() {
		o.keys.count(verifiedAskedForView)
		return o.fallback.Authenticate(ctx, credential)
	}
	err = o.liveness.Alive(principal.Kubernetes)
	switch {
	case err == nil:
		o.keys.count(verifiedGood)
		principal.Kubernetes.Verification = identity.VerifiedLive
		return principal, true, nil
	case errors.Is(err, ErrGone): // an API server whose own view is behind would still say yes
		o.keys.count(verifiedGone)
		return nil, true, err
	}
	o.keys.count(verifiedAskedForObject)
	o.logger.DebugContext(ctx, "the view of the cluster does not confirm a token; the cluster is asked", slog.String("cluster", o.config.Cluster),
		slog.String("cause", err.Error()))
	return o.fallback.Authenticate(ctx, credential)
}

// read makes a principal of what a token claims. Every rule but the signature is held against it, so that a token that cannot be good costs none.
func (o *Offline) read(token string) (jwt, *identity.Principal, error) {
	now := o.config.Now()
	parsed, claimed, err := peekJWT(token, o.config.Audiences, now)
	if err != nil {
		return jwt{}, nil, err
	}
	if claimed.issuer != o.config.Issuer {
		return jwt{}, nil, wrongIssuer(o.config.Issuer)
	}
	if err := checkAlgorithm(parsed.header, o.config.Algorithms); err != nil {
		return jwt{}, nil, err
	}
	holder, err := holderOf(parsed.claims, claimed.subject)
	if err != nil {
		return jwt{}, nil, errkind.Wrap(errkind.Unauthenticated, err, "the token's claim kubernetes.io is not that of a service-account token; %s", wayOut).
			Because(errkind.MalformedCredential)
	}
	if err := checkBinding(holder, o.config.AcceptNodeBound); err != nil {
		return jwt{}, nil, err
	}
	if o.config.EnforceWarnAfter {
		if err := checkWarnAfter(parsed.claims, now); err != nil {
			return jwt{}, nil, err
		}
	}
	id, err := o.config.Identity.ID(holder.Namespace, holder.ServiceAccount)
	if err != nil {
		return jwt{}, nil, errkind.Wrap(errkind.Unauthenticated, err, "the token's service account has no SPIFFE ID").Because(errkind.NotMapped)
	}
	holder.Cluster = o.config.Cluster
	for _, ours := range o.config.Audiences {
		if slices.Contains(claimed.audiences, ours) {
			holder.TokenAudienceMatch = ours
			break
		}
	}
	return parsed, &identity.Principal{
		ID: id, Method: identity.MethodKubernetes, CredentialID: claimed.id, Expiry: claimed.expires, Kubernetes: holder,
	}, nil
}

// checkAlgorithm refuses a token whose algorithm is not configured.
func checkAlgorithm(header object, accepted []string) error {
	if algorithm, _ := header.text("alg"); !slices.Contains(accepted, algorithm) {
		return errkind.New(errkind.Unauthenticated, "token's signature algorithm is not accepted: its issuer has to sign with %s", strings.Join(accepted, ", ")).
			Because(errkind.BadSignature)
	}
	return nil
}

// privateClaim is the member in which Kubernetes says what a token is bound to.
const privateClaim = "kubernetes.io"

// holderOf reads the claim kubernetes.io of a verified token, which has to agree with its subject.
func holderOf(payload object, subject string) (*identity.Kubernetes, error) {
	private, err := parseObject(payload[privateClaim])
	if err != nil {
		return nil, errors.New("the claim kubernetes.io is missing or no object")
	}
	holder := &identity.Kubernetes{}
	var ok bool
	if holder.Namespace, ok = private.text("namespace"); !ok || len(validation.IsDNS1123Label(holder.Namespace)) > 0 {
		return nil, errors.New("the namespace is no DNS label (RFC 1123)")
	}
	if holder.ServiceAccount, holder.ServiceAccountUID, err = reference(private, "serviceaccount"); err != nil {
		return nil, err
	}
	switch {
	case holder.ServiceAccountUID == "":
		return nil, errors.New("there is no serviceaccount")
	case subject != accountPrefix+holder.Namespace+":"+holder.ServiceAccount:
		return nil, errors.New("the subject is another account than serviceaccount")
	}
	if holder.PodName, holder.PodUID, err = reference(private, "pod"); err != nil {
		return nil, err
	}
	if holder.NodeName, holder.NodeUID, err = reference(private, "node"); err != nil {
		return nil, err
	}
	if _, present := private["secret"]; present && holder.PodUID != "" {
		return nil, errors.New("it is bound to a pod and to a secret")
	}
	return holder, nil
}

// reference reads the name and UID of an object, both empty if it is not there.
func reference(private object, member string) (name, uid string, err error) {
	text, present := private[member]
	if !present {
		return "", "", nil
	}
	named, err := parseObject(text)
	if err != nil {
		return "", "", errors.New(member + " is no object")
	}
	var ok bool
	if name, ok = named.text("name"); !ok || !isObjectName(name) {
		return "", "", errors.New(member + " has no name that is a DNS subdomain (RFC 1123)")
	}
	uid, hasUID := named.text("uid")
	if _, there := named["uid"]; !there && member == "node" { // written by clusters that did not find the node
		return name, "", nil
	}
	if !hasUID || !isIdentifier(uid) {
		return "", "", errors.New(member + " has no UID")
	}
	return name, uid, nil
}

// checkWarnAfter refuses an API server's own token that lives longer than it was asked for.
func checkWarnAfter(payload object, now time.Time) error {
	private, err := parseObject(payload[privateClaim])
	if err != nil {
		return malformed("its claim kubernetes.io " + err.Error())
	}
	if _, present := private["warnafter"]; !present {
		return nil
	}
	after, ok := private.date("warnafter")
	switch {
	case !ok:
		return malformed("its warnafter is no time in whole seconds")
	case !now.Before(after):
		return errkind.New(errkind.Unauthenticated, "token was to be replaced before %s (warnafter) and the clock here says %s: send the volume's current token",
			stamp(after), stamp(now)).Because(errkind.CredentialExpired)
	}
	return nil
}
