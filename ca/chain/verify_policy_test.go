package chain

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"slices"
	"strings"
	"testing"
)

// Contents of object identifiers of policies.
const (
	policyOne = "\x2a\x03\x01"
	policyTwo = "\x2a\x03\x02"
)

// policiesOf encodes certificate policies without qualifiers.
func policiesOf(policies ...string) pkix.Extension {
	var list [][]byte
	for _, policy := range policies {
		list = append(list, element(0x30, element(0x06, []byte(policy))))
	}
	return testExtension([]int{2, 5, 29, 32}, false, element(0x30, list...))
}

func mappingOf(issuer, subject string) pkix.Extension {
	return testExtension([]int{2, 5, 29, 33}, true, element(0x30, element(0x30, element(0x06, []byte(issuer)), element(0x06, []byte(subject)))))
}

// requireExplicitOf encodes policy constraints.
func requireExplicitOf(skip byte) pkix.Extension {
	return testExtension([]int{2, 5, 29, 36}, true, element(0x30, element(0x80, []byte{skip})))
}

func parseOID(t *testing.T, text string) x509.OID {
	t.Helper()
	oid, err := x509.ParseOID(text)
	if err != nil {
		t.Fatal(err)
	}
	return oid
}

// TestPoliciesOfAPath covers what PKITS does not ask for: what comes out, and the anchor's constraints.
func TestPoliciesOfAPath(t *testing.T) {
	one, two := parseOID(t, "1.2.3.1"), parseOID(t, "1.2.3.2")
	for name, c := range map[string]struct {
		root, intermediate, leaf []pkix.Extension
		inputs                   PolicyOptions
		want                     string // the policies that come out, or a refusal's rule
	}{
		"none":                         {nil, nil, nil, PolicyOptions{}, ""},
		"none and one required":        {nil, nil, nil, PolicyOptions{Explicit: true}, "§6.1.3 (f)"},
		"the same":                     {nil, []pkix.Extension{policiesOf(policyOne, policyTwo)}, []pkix.Extension{policiesOf(policyOne)}, PolicyOptions{Explicit: true}, "1.2.3.1"},
		"any above":                    {nil, []pkix.Extension{policiesOf(oidAnyPolicy)}, []pkix.Extension{policiesOf(policyOne)}, PolicyOptions{}, "1.2.3.1"},
		"any everywhere":               {nil, []pkix.Extension{policiesOf(oidAnyPolicy)}, []pkix.Extension{policiesOf(oidAnyPolicy)}, PolicyOptions{}, "2.5.29.32.0"},
		"any everywhere, one accepted": {nil, []pkix.Extension{policiesOf(oidAnyPolicy)}, []pkix.Extension{policiesOf(oidAnyPolicy)}, PolicyOptions{Acceptable: []x509.OID{one}}, "1.2.3.1"},
		"another, not required":        {nil, []pkix.Extension{policiesOf(policyOne)}, []pkix.Extension{policiesOf(policyOne)}, PolicyOptions{Acceptable: []x509.OID{two}}, ""},
		"another, required":            {nil, []pkix.Extension{policiesOf(policyOne)}, []pkix.Extension{policiesOf(policyOne)}, PolicyOptions{Acceptable: []x509.OID{two}, Explicit: true}, "§6.1.5 (g)"},
		"mapped":                       {nil, []pkix.Extension{policiesOf(policyOne), mappingOf(policyOne, policyTwo)}, []pkix.Extension{policiesOf(policyTwo)}, PolicyOptions{Explicit: true}, "1.2.3.1"},
		"mapped, which is inhibited":   {nil, []pkix.Extension{policiesOf(policyOne), mappingOf(policyOne, policyTwo)}, []pkix.Extension{policiesOf(policyTwo)}, PolicyOptions{Explicit: true, InhibitMapping: true}, "§6.1.3 (f)"},
		"mapped to any":                {nil, []pkix.Extension{policiesOf(policyOne), mappingOf(policyOne, oidAnyPolicy)}, []pkix.Extension{policiesOf(policyTwo)}, PolicyOptions{}, "§6.1.4 (a)"},
		"any, which is inhibited":      {nil, []pkix.Extension{policiesOf(oidAnyPolicy)}, []pkix.Extension{policiesOf(policyOne)}, PolicyOptions{Explicit: true, InhibitAny: true}, "§6.1.3 (f)"},
		"required by the anchor":       {[]pkix.Extension{requireExplicitOf(0)}, nil, nil, PolicyOptions{}, "§6.1.3 (f)"},
		"required by the intermediate": {nil, []pkix.Extension{requireExplicitOf(0)}, nil, PolicyOptions{}, "§6.1.3 (f)"},
		"required later":               {nil, []pkix.Extension{requireExplicitOf(5)}, nil, PolicyOptions{}, ""},
		"required by the leaf":         {nil, nil, []pkix.Extension{requireExplicitOf(0)}, PolicyOptions{}, "§6.1.5 (g)"},
		"the anchor's policies":        {[]pkix.Extension{policiesOf(policyTwo)}, []pkix.Extension{policiesOf(policyOne)}, []pkix.Extension{policiesOf(policyOne)}, PolicyOptions{}, "1.2.3.1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.root.ExtraExtensions, f.intermediate.ExtraExtensions, f.leaf.ExtraExtensions = c.root, c.intermediate, c.leaf
			f.leaf.IsCA = true // only such may have constraints
			f.options.Policies = c.inputs
			path, err := f.verify(t)
			if err != nil {
				if !strings.HasPrefix(c.want, "§") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("found %v, want %q", err, c.want)
				}
				return
			}
			var found []string
			for _, policy := range path.Policies {
				found = append(found, policy.String())
			}
			if got := strings.Join(found, " "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestSkipCounts(t *testing.T) {
	for _, c := range []struct {
		contents []byte
		want     int
	}{{[]byte{0}, 0}, {[]byte{1}, 1}, {[]byte{0x7f}, 127}, {[]byte{1, 0}, 256}, {[]byte{1, 0, 0}, unlimited}, {[]byte{0xff}, 0}, {slices.Repeat([]byte{0x7f}, 100), unlimited}} {
		if found := skipCount(c.contents); found != c.want {
			t.Errorf("%x: found %d, want %d", c.contents, found, c.want)
		}
	}
}
