package main

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/internal/config"
)

// casesFile is what "chancery policy test" reads.
type casesFile struct {
	Cases []policyCase `yaml:"cases"`
}

// policyCase is a question to the rules and the answer that it ought to get.
type policyCase struct {
	Name      string        `yaml:"name"`
	Principal casePrincipal `yaml:"principal"`
	Request   caseRequest   `yaml:"request"`
	Expect    caseExpect    `yaml:"expect"`
}

// casePrincipal is a caller. A group of which nothing is given is absent.
type casePrincipal struct {
	ID           string          `yaml:"id"`     // a SPIFFE ID, or the path of one in the trust domain
	Method       string          `yaml:"method"` // empty: that of the group that is given, otherwise join_token
	CredentialID string          `yaml:"credential_id"`
	Kubernetes   caseKubernetes  `yaml:"kubernetes"`
	OIDC         caseOIDC        `yaml:"oidc"`
	Certificate  caseCertificate `yaml:"certificate"`
}

type caseKubernetes struct {
	Cluster        string `yaml:"cluster"`
	Namespace      string `yaml:"namespace"`
	ServiceAccount string `yaml:"service_account"`
	Pod            string `yaml:"pod"`
	Node           string `yaml:"node"`
	Verification   string `yaml:"verification"`
}

type caseOIDC struct {
	Provider string      `yaml:"provider"`
	Issuer   string      `yaml:"issuer"`
	Subject  string      `yaml:"subject"`
	Claims   config.JSON `yaml:"claims"`
}

type caseCertificate struct {
	Serial string `yaml:"serial"`
	Origin string `yaml:"origin"`
	Grace  bool   `yaml:"grace"`
}

// caseRequest is what the caller asks for. Without names it is the caller's own identity.
type caseRequest struct {
	Profile     string        `yaml:"profile"` // empty: workload
	URIs        []string      `yaml:"uris"`
	DNSNames    []string      `yaml:"dns_names"`
	IPAddresses []netip.Addr  `yaml:"ip_addresses"`
	Lifetime    time.Duration `yaml:"lifetime"` // zero: the profile's default
	Door        string        `yaml:"door"`     // empty: chancery
	Key         string        `yaml:"key"`      // empty: ecdsa-p256
}

// caseExpect is the answer. What is empty is not compared, but max_lifetime is if the decision is allow.
type caseExpect struct {
	Decision    string        `yaml:"decision"` // allow or deny
	Rule        string        `yaml:"rule"`
	Reason      string        `yaml:"reason"` // of a denial
	MaxLifetime time.Duration `yaml:"max_lifetime"`
}

// maxCases bounds a file.
const maxCases = 10_000

// readCases reads and checks a file of cases.
func readCases(name string, data []byte, trustDomain spiffeid.TrustDomain) ([]policyCase, *config.Document, error) {
	var file casesFile
	document, err := config.Decode(name, data, &file)
	if err != nil {
		return nil, nil, err
	}
	if n := len(file.Cases); n == 0 || n > maxCases {
		document.Bad("cases", "has %d entries; it needs 1 to %d", n, maxCases)
	}
	first := make(map[string]int)
	for i, c := range file.Cases {
		path := fmt.Sprintf("cases[%d]", i)
		bad := func(key, format string, args ...any) { document.Bad(path+"."+key, format, args...) }
		if j, twice := first[c.Name]; twice || strings.TrimSpace(c.Name) == "" {
			bad("name", "%s", map[bool]string{true: fmt.Sprintf("%q is the name of cases[%d] already", c.Name, j), false: "is empty"}[twice])
		}
		first[c.Name] = i
		c.Principal.check(trustDomain, func(key, format string, args ...any) { bad("principal."+key, format, args...) })
		c.Expect.check(func(key, format string, args ...any) { bad("expect."+key, format, args...) })
		if c.Request.Lifetime < 0 {
			bad("request.lifetime", "is negative")
		}
	}
	return file.Cases, document, document.Err()
}

type complain func(key, format string, args ...any)

func (p casePrincipal) check(trustDomain spiffeid.TrustDomain, bad complain) {
	if _, err := p.spiffeID(trustDomain); err != nil {
		bad("id", "%s", err)
	}
	if p.Method != "" && !slices.Contains(principalMethods(), identity.Method(p.Method)) {
		bad("method", "%q is not one of %s", p.Method, principalMethods())
	}
}

func principalMethods() []identity.Method {
	return []identity.Method{identity.MethodKubernetes, identity.MethodOIDC, identity.MethodCertificate, identity.MethodJoinToken}
}

func (e caseExpect) check(bad complain) {
	switch e.Decision {
	case decisionAllow:
		if e.Reason != "" {
			bad("reason", "is that of a denial; what is allowed has none")
		}
	case decisionDeny:
		if e.MaxLifetime != 0 {
			bad("max_lifetime", "is that of what is allowed; a denial has none")
		}
	default:
		bad("decision", "%q is neither %s nor %s", e.Decision, decisionAllow, decisionDeny)
	}
	if e.Reason != "" && !slices.Contains(errkind.Reasons(), errkind.Reason(e.Reason)) {
		bad("reason", "%q is not a reason", e.Reason)
	}
}

const (
	decisionAllow = "allow"
	decisionDeny  = "deny"
)

func (p casePrincipal) spiffeID(trustDomain spiffeid.TrustDomain) (spiffeid.ID, error) {
	var id spiffeid.ID
	var err error
	if strings.HasPrefix(p.ID, "/") {
		id, err = spiffeid.FromPath(trustDomain, p.ID)
	} else {
		id, err = spiffeid.FromString(p.ID)
	}
	switch {
	case err != nil:
		return id, fmt.Errorf("%q is neither a SPIFFE ID nor the path of one: %w", p.ID, err)
	case !id.MemberOf(trustDomain) || id.Path() == "":
		return id, fmt.Errorf("%q is not a workload's identity in the trust domain %s", p.ID, trustDomain.Name())
	default:
		return id, nil
	}
}

// principal returns the caller as an authenticator would. What spiffeID refuses is an error.
func (p casePrincipal) principal(trustDomain spiffeid.TrustDomain) (*identity.Principal, error) {
	id, err := p.spiffeID(trustDomain)
	if err != nil {
		return nil, err
	}
	out := &identity.Principal{ID: id, Method: identity.MethodJoinToken, CredentialID: p.CredentialID}
	if given(p.Certificate) {
		out.Method, out.Certificate = identity.MethodCertificate, &identity.Certificate{
			Serial: p.Certificate.Serial, Origin: identity.Method(p.Certificate.Origin), Grace: p.Certificate.Grace,
		}
	}
	if given(p.OIDC) {
		out.Method, out.OIDC = identity.MethodOIDC, &identity.OIDC{
			Provider: p.OIDC.Provider, Issuer: p.OIDC.Issuer, Subject: p.OIDC.Subject, Claims: p.OIDC.Claims,
		}
	}
	if given(p.Kubernetes) {
		k := p.Kubernetes
		out.Method, out.Kubernetes = identity.MethodKubernetes, &identity.Kubernetes{
			Cluster: k.Cluster, Namespace: k.Namespace, ServiceAccount: k.ServiceAccount, PodName: k.Pod, NodeName: k.Node, Verification: identity.Verification(k.Verification),
		}
	}
	if p.Method != "" {
		out.Method = identity.Method(p.Method)
	}
	return out, nil
}

// given tells whether anything of a group is there.
func given(group any) bool { return !reflect.ValueOf(group).IsZero() }

// order returns what a door would make of the request.
func (r caseRequest) order(principal *identity.Principal) ca.Order {
	door := ca.Door(r.Door)
	if door == "" {
		door = ca.DoorChancery
	}
	return ca.Order{
		Principal: principal, Door: door, Profile: r.Profile, Lifetime: r.Lifetime,
		Names: identity.Names{URIs: r.URIs, DNS: r.DNSNames, IPs: r.IPAddresses},
	}
}
