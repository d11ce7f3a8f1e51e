package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// DefaultPath is the path of a service account's SPIFFE ID where nothing else is configured.
const DefaultPath = "/ns/{namespace}/sa/{service_account}"

// The fields of an identity path.
const (
	fieldCluster   = "{cluster}"
	fieldNamespace = "{namespace}"
	fieldAccount   = "{service_account}"
)

// Path makes the SPIFFE IDs of a cluster's service accounts. Two service accounts never get the same. The zero Path makes none.
type Path struct {
	trustDomain spiffeid.TrustDomain
	cluster     string
	segments    []string // of the path; a field by its name in braces
}

// NewPath reads a template such as DefaultPath. Its fields are {cluster}, {namespace} and {service_account}; the last two are needed.
// Each field is a whole segment, so that no two service accounts share an identity, and the first segment is a fixed text other than chancery, below
// which are the authority's own identities.
func NewPath(trustDomain spiffeid.TrustDomain, cluster, template string) (Path, error) {
	if trustDomain.IsZero() {
		return Path{}, errors.New("identity path: trust domain is empty: name the one that the service accounts' identities live in")
	}
	rest, rooted := strings.CutPrefix(template, "/")
	p := Path{trustDomain: trustDomain, cluster: cluster, segments: strings.Split(rest, "/")}
	first := p.segments[0]
	switch {
	case !rooted:
		return Path{}, fmt.Errorf("identity path %q does not begin with /", template)
	case first == "chancery" || strings.HasPrefix(first, "{"):
		return Path{}, fmt.Errorf("identity path %q: the first segment has to be a fixed text other than chancery", template)
	}
	for _, field := range []string{fieldNamespace, fieldAccount} {
		if !slices.Contains(p.segments, field) {
			return Path{}, fmt.Errorf("identity path %q lacks the segment %s, so that service accounts would share an identity", template, field)
		}
	}
	if slices.Contains(p.segments, fieldCluster) && cluster == "" {
		return Path{}, fmt.Errorf("identity path %q names the cluster, which has no name", template)
	}
	if _, err := p.ID("namespace", "account"); err != nil { // a wrong segment is wrong for every account
		return Path{}, fmt.Errorf("identity path %q: a segment is fixed text or one of %s, %s, %s alone: %w", template, fieldCluster, fieldNamespace,
			fieldAccount, err)
	}
	return p, nil
}

// IsZero tells whether p makes no IDs.
func (p Path) IsZero() bool { return p.segments == nil }

// ID returns the SPIFFE ID of a service account.
func (p Path) ID(namespace, serviceAccount string) (spiffeid.ID, error) {
	segments := make([]string, len(p.segments))
	for i, segment := range p.segments {
		switch segment {
		case fieldCluster:
			segment = p.cluster
		case fieldNamespace:
			segment = namespace
		case fieldAccount:
			segment = serviceAccount
		}
		segments[i] = segment
	}
	id, err := spiffeid.FromSegments(p.trustDomain, segments...)
	if err != nil {
		return spiffeid.ID{}, fmt.Errorf("making a SPIFFE ID: %w", err)
	}
	return id, nil
}
