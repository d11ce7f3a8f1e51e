package authorize

import (
	"fmt"

	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/internal/expression"
)

// Bounds of what expressions see: the sizes that the costs are estimated by. A request beyond them is one that a conditional rule cannot be asked about.
const (
	maxNames   = 100  // of each kind
	maxURI     = 2048 // SPIFFE-ID §2.3
	maxDNSName = 253
	maxAddress = 45
	maxLabel   = 63
	maxText    = 1024 // of what a credential says of itself
)

// input is a request as expressions see it.
type input struct {
	Request
	addresses []string
}

// newInput refuses what is larger than expressions are compiled for.
func newInput(request Request) (*input, error) {
	names := request.Names
	if n := max(len(names.URIs), len(names.DNS), len(names.IPs)); n > maxNames {
		return nil, fmt.Errorf("%d names of one kind; conditions are asked about at most %d", n, maxNames)
	}
	for _, list := range []struct {
		names []string
		most  int
	}{{names.URIs, maxURI}, {names.DNS, maxDNSName}} {
		for _, name := range list.names {
			if len(name) > list.most {
				return nil, fmt.Errorf("a name of %d bytes; conditions are asked about names of at most %d", len(name), list.most)
			}
		}
	}
	in := &input{Request: request, addresses: make([]string, 0, len(names.IPs))}
	for _, ip := range names.IPs {
		in.addresses = append(in.addresses, ip.String())
	}
	return in, nil
}

func (in *input) values() expression.Values { return expression.Values{"principal": in, "request": in} }

// Variables of conditions; docs/policy.md is their manual. Getters are called with what the object's own getter returned.
func variables() []expression.Variable {
	return []expression.Variable{
		{Name: "principal", Kind: expression.Object, Fields: []expression.Variable{
			text("id", maxURI, func(in *input) string { return in.Principal.ID.String() }),
			text("trust_domain", maxText, func(in *input) string { return in.Principal.ID.TrustDomain().Name() }),
			text("path", maxURI, func(in *input) string { return in.Principal.ID.Path() }),
			text("method", maxLabel, func(in *input) string { return string(in.Principal.Method) }),
			text("credential_id", maxText, func(in *input) string { return in.Principal.CredentialID }),
			group("kubernetes", func(in *input) *identity.Kubernetes { return in.Principal.Kubernetes },
				text("cluster", maxLabel, func(k *identity.Kubernetes) string { return k.Cluster }),
				text("namespace", maxLabel, func(k *identity.Kubernetes) string { return k.Namespace }),
				text("service_account", maxDNSName, func(k *identity.Kubernetes) string { return k.ServiceAccount }),
				text("pod", maxDNSName, func(k *identity.Kubernetes) string { return k.PodName }),
				text("node", maxDNSName, func(k *identity.Kubernetes) string { return k.NodeName }),
				text("verification", maxLabel, func(k *identity.Kubernetes) string { return string(k.Verification) }),
			),
			group("oidc", func(in *input) *identity.OIDC { return in.Principal.OIDC },
				text("provider", maxLabel, func(o *identity.OIDC) string { return o.Provider }),
				text("issuer", maxText, func(o *identity.OIDC) string { return o.Issuer }),
				text("subject", maxText, func(o *identity.OIDC) string { return o.Subject }),
				expression.Variable{Name: "claims", Kind: expression.Map, Get: get(func(o *identity.OIDC) any { return o.Claims })},
			),
			group("certificate", func(in *input) *identity.Certificate { return in.Principal.Certificate },
				text("serial", maxLabel, func(c *identity.Certificate) string { return c.Serial }),
				text("origin", maxLabel, func(c *identity.Certificate) string { return string(c.Origin) }),
				expression.Variable{Name: "grace", Kind: expression.Bool, Get: get(func(c *identity.Certificate) any { return c.Grace })},
			),
		}},
		{Name: "request", Kind: expression.Object, Fields: []expression.Variable{
			text("profile", maxLabel, func(in *input) string { return in.Profile }),
			texts("uris", maxURI, func(in *input) []string { return in.Names.URIs }),
			texts("dns_names", maxDNSName, func(in *input) []string { return in.Names.DNS }),
			texts("ip_addresses", maxAddress, func(in *input) []string { return in.addresses }),
			{Name: "lifetime", Kind: expression.Duration, Get: get(func(in *input) any { return in.Lifetime })},
			text("door", maxLabel, func(in *input) string { return in.Door }),
			text("key", maxLabel, func(in *input) string { return in.Key }),
		}},
	}
}

// get makes a getter of one for the object's own type.
func get[T any](of func(T) any) func(any) any {
	return func(object any) any {
		if own, ok := object.(T); ok {
			return of(own)
		}
		return nil
	}
}

func text[T any](name string, size uint64, of func(T) string) expression.Variable {
	return expression.Variable{Name: name, Kind: expression.String, Size: size, Get: get(func(o T) any { return of(o) })}
}

func texts[T any](name string, size uint64, of func(T) []string) expression.Variable {
	return expression.Variable{Name: name, Kind: expression.Strings, Size: size, Items: maxNames, Get: get(func(o T) any { return of(o) })}
}

// group declares an object that is absent where of returns nil.
func group[T any](name string, of func(*input) *T, fields ...expression.Variable) expression.Variable {
	return expression.Variable{Name: name, Kind: expression.Object, Fields: fields, Get: get(func(in *input) any {
		if g := of(in); g != nil {
			return g
		}
		return nil
	})}
}
