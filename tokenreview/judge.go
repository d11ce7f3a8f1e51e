package tokenreview

import (
	"errors"
	"slices"
	"strings"

	authv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// Keys of the extra information that an API server gives about a service account's token.
const (
	extraPrefix       = "authentication.kubernetes.io/"
	extraPodName      = extraPrefix + "pod-name"
	extraPodUID       = extraPrefix + "pod-uid"
	extraNodeName     = extraPrefix + "node-name"
	extraNodeUID      = extraPrefix + "node-uid"
	extraCredentialID = extraPrefix + "credential-id"
)

const (
	allAccountsGroup  = "system:serviceaccounts"
	accountsOfPrefix  = "system:serviceaccounts:"
	credentialIDStart = "JTI=" // how the API server begins a credential-id that is a token's jti
)

const wayOut = "send the token of a projected serviceAccountToken volume"

// judge makes a principal of what the cluster answered about a token, or says which rule refuses it.
func (o *Online) judge(status *authv1.TokenReviewStatus, claimed claims, token string) (*identity.Principal, error) {
	var said error
	if status.Error != "" {
		said = errors.New("the API server said: " + redact(status.Error, token))
	}
	if !status.Authenticated || said != nil {
		return nil, errkind.Wrap(errkind.Unauthenticated, said,
			"the cluster does not accept the token: it is forged, expired or revoked, or its pod is gone; %s", wayOut).Because(errkind.ClusterRefused)
	}
	audience, ok := o.match(status.Audiences, claimed.audiences)
	if !ok {
		return nil, errkind.New(errkind.Unauthenticated, "the cluster does not confirm that the token is for us: %s", askFor(o.config.Audiences)).
			Because(errkind.WrongAudience)
	}
	holder, err := accountOf(status.User)
	if err != nil {
		return nil, errkind.Wrap(errkind.Unauthenticated, err, "the token's holder is no service account; %s", wayOut).Because(errkind.ClusterRefused)
	}
	if status.User.Username != claimed.subject {
		return nil, errkind.New(errkind.Unauthenticated, "the cluster answered for another account than the token's subject; %s", wayOut).
			Because(errkind.ClusterRefused)
	}
	holder.Cluster, holder.TokenAudienceMatch, holder.Verification = o.config.Cluster, audience, identity.VerifiedReview
	if err := o.bind(holder, status.User.Extra); err != nil {
		return nil, err
	}
	id, err := o.config.Identity.ID(holder.Namespace, holder.ServiceAccount)
	if err != nil {
		return nil, errkind.Wrap(errkind.Unauthenticated, err, "the token's service account has no SPIFFE ID").Because(errkind.NotMapped)
	}
	if err := checkExpiry(claimed.expires, o.config.Now()); err != nil { // it may have expired while the cluster thought
		return nil, err
	}
	return &identity.Principal{
		ID:           id,
		Method:       identity.MethodKubernetes,
		CredentialID: credentialID(status.User.Extra, claimed.id),
		Expiry:       claimed.expires,
		Kubernetes:   holder,
	}, nil
}

// match returns the audience of ours that both the cluster and the token name. An empty list of the cluster's means that the token is
// good for the API server, not that it is for us.
func (o *Online) match(confirmed, claimed []string) (string, bool) {
	for _, ours := range o.config.Audiences {
		if slices.Contains(confirmed, ours) && slices.Contains(claimed, ours) {
			return ours, true
		}
	}
	return "", false
}

// accountOf reads the service account out of user name, groups and UID. All three have to agree.
func accountOf(user authv1.UserInfo) (*identity.Kubernetes, error) {
	rest, isAccount := strings.CutPrefix(user.Username, accountPrefix)
	namespace, name, twoParts := strings.Cut(rest, ":")
	switch {
	case !isAccount || !twoParts:
		return nil, errors.New("the user name is not system:serviceaccount:NAMESPACE:NAME")
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return nil, errors.New("the user name's namespace is no DNS label (RFC 1123)")
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return nil, errors.New("the user name's service account is no DNS subdomain (RFC 1123)")
	case !slices.Contains(user.Groups, allAccountsGroup):
		return nil, errors.New("the user is not in the group system:serviceaccounts")
	case !slices.Contains(user.Groups, accountsOfPrefix+namespace):
		return nil, errors.New("the user is not in the group system:serviceaccounts:NAMESPACE of its namespace")
	case !isIdentifier(user.UID):
		return nil, errors.New("the user has no UID")
	}
	return &identity.Kubernetes{Namespace: namespace, ServiceAccount: name, ServiceAccountUID: user.UID}, nil
}

// bind fills in the live object that the token is bound to, and refuses a token that is bound to none.
func (o *Online) bind(holder *identity.Kubernetes, extra map[string]authv1.ExtraValue) error {
	for _, field := range []struct {
		key  string
		into *string
		fits func(string) bool
	}{
		{extraPodName, &holder.PodName, isObjectName},
		{extraPodUID, &holder.PodUID, isIdentifier},
		{extraNodeName, &holder.NodeName, isObjectName},
		{extraNodeUID, &holder.NodeUID, isIdentifier},
	} {
		values, present := extra[field.key]
		if !present {
			continue
		}
		if len(values) != 1 || !field.fits(values[0]) {
			return errkind.New(errkind.Unauthenticated, "the cluster's answer has no single well-formed %s; %s", field.key, wayOut).
				Because(errkind.ClusterRefused)
		}
		*field.into = values[0]
	}
	return checkBinding(holder, o.config.AcceptNodeBound)
}

// checkBinding refuses a token that is bound to nothing that lives, or to less than is accepted.
func checkBinding(holder *identity.Kubernetes, acceptNodeBound bool) error {
	switch {
	case (holder.PodName == "") != (holder.PodUID == ""):
		return errkind.New(errkind.Unauthenticated, "the cluster's answer has only one of the pod's name and UID; %s", wayOut).
			Because(errkind.ClusterRefused)
	case holder.NodeName == "" && holder.NodeUID != "":
		return errkind.New(errkind.Unauthenticated, "the cluster's answer has a node's UID without its name; %s", wayOut).
			Because(errkind.ClusterRefused)
	case holder.PodUID != "":
		return nil
	case holder.NodeUID == "":
		return errkind.New(errkind.Unauthenticated, "token is not bound to a pod, so it would outlive its workload: %s, "+
			"not one of a Secret or of an unbound TokenRequest", wayOut).Because(errkind.NotBound)
	case !acceptNodeBound:
		return errkind.New(errkind.Unauthenticated, "token is bound to a node and not to a pod, which this server is not set up to accept: %s", wayOut).
			Because(errkind.NotBound)
	}
	return nil
}

func isObjectName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// credentialID returns the token's jti: as the cluster says it, or, from clusters that do not, as the accepted token claims it.
func credentialID(extra map[string]authv1.ExtraValue, claimed string) string {
	if values := extra[extraCredentialID]; len(values) == 1 {
		if id, isJTI := strings.CutPrefix(values[0], credentialIDStart); isJTI && isIdentifier(id) {
			return id
		}
	}
	return claimed
}
