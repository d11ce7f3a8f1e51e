package tokenreview

import (
	"context"
	"fmt"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// ClusterEntry is one cluster of a Clusters.
type ClusterEntry struct {
	// Name is the cluster's name in the configuration; callers may give it as their cluster id.
	Name string
	// IDs are what callers may say they run in, besides Name.
	IDs []string
	// Issuer is the claim iss of the cluster's tokens, exactly. It may be empty for the local cluster alone.
	Issuer string
	// Authenticator decides about the cluster's tokens.
	Authenticator identity.Authenticator
}

// Clusters is an Authenticator that sends each service-account token to the authenticator of its cluster, and to no other: what that one says is
// final. It holds nothing that clusters share, so one that hangs or fails leaves the others alone. Safe for concurrent use.
type Clusters struct {
	local    identity.Authenticator
	byID     map[string]identity.Authenticator
	byIssuer map[string]identity.Authenticator
}

// NewClusters returns a Clusters. local is the cluster of callers of whom neither cluster id nor issuer says anything else. Names and ids, and
// issuers, differ between clusters.
func NewClusters(local ClusterEntry, others ...ClusterEntry) (*Clusters, error) {
	c := &Clusters{local: local.Authenticator, byID: make(map[string]identity.Authenticator), byIssuer: make(map[string]identity.Authenticator)}
	owners := make(map[string]string) // of names and ids
	for i, entry := range append([]ClusterEntry{local}, others...) {
		switch {
		case entry.Name == "":
			return nil, fmt.Errorf("tokenreview: cluster %d has no name: give it one for the audit records", i)
		case entry.Authenticator == nil:
			return nil, fmt.Errorf("tokenreview: cluster %q has no authenticator", entry.Name)
		case entry.Issuer == "" && i > 0:
			return nil, fmt.Errorf("tokenreview: cluster %q has no issuer: it tells its tokens from those of other clusters", entry.Name)
		}
		for j, id := range append([]string{entry.Name}, entry.IDs...) {
			owner, taken := owners[id]
			switch {
			case id == "":
				return nil, fmt.Errorf("tokenreview: cluster %q has an empty cluster id: a caller without one is told by its token's issuer; remove the entry", entry.Name)
			case taken && (j == 0 || owner != entry.Name):
				return nil, fmt.Errorf("tokenreview: clusters %q and %q have the name or cluster id %q both: it has to tell them apart", owner, entry.Name, id)
			}
			owners[id], c.byID[id] = entry.Name, entry.Authenticator
		}
		if entry.Issuer == "" {
			continue
		}
		if c.byIssuer[entry.Issuer] != nil {
			return nil, fmt.Errorf("tokenreview: cluster %q has the issuer %s of another cluster: set --service-account-issuer of one of them", entry.Name, entry.Issuer)
		}
		c.byIssuer[entry.Issuer] = entry.Authenticator
	}
	return c, nil
}

// Authenticate handles every bearer token that is meant to be a JWT. A cluster id decides where the token goes, and one that nobody has is refused;
// without one, the issuer that the token names decides. Neither is believed: the cluster's authenticator finds out whether the token is good.
func (c *Clusters) Authenticate(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
	token := credential.Bearer.Reveal()
	if !looksLikeJWT(token) {
		return nil, false, nil
	}
	chosen := c.local
	switch id := credential.ClusterID; {
	case id != "":
		known, ok := c.byID[id]
		if !ok {
			return nil, true, unknownCluster(id)
		}
		chosen = known
	case len(c.byIssuer) > 0:
		if named, ok := c.byIssuer[issuerOf(token)]; ok {
			chosen = named
		}
	}
	return chosen.Authenticate(ctx, credential)
}

// issuerOf returns the claim iss of a token that nobody has verified, empty if it cannot be read.
func issuerOf(token string) string {
	parsed, err := parseShape(token)
	if err != nil {
		return ""
	}
	issuer, _ := parsed.claims.text("iss")
	return issuer
}

// unknownCluster refuses a caller of a cluster that is not configured.
func unknownCluster(id string) error {
	if len(id) > 64 {
		id = id[:64] + "…"
	}
	return errkind.New(errkind.Unauthenticated,
		"cluster %q is not known here: set the caller's cluster id to one of this server's, or add it to the server's cluster ids", id).
		Because(errkind.UnknownCluster)
}
