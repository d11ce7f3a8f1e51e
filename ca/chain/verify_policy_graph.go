package chain

import (
	"maps"
	"slices"
)

// policyGraph is the valid_policy_graph of RFC 9618, which replaces the tree of RFC 5280 §6.1.2 (a): a tree can grow exponentially with the
// path, the graph has at most one node for a policy and a depth. The zero policyGraph is NULL: no policy is valid.
type policyGraph struct {
	levels []map[string]*policyNode // by depth
}

type policyNode struct {
	expected []string // expected_policy_set
	parents  []*policyNode
	children int
	any      bool // valid_policy is anyPolicy
}

func newPolicyGraph() *policyGraph {
	return &policyGraph{levels: []map[string]*policyNode{{oidAnyPolicy: {expected: []string{oidAnyPolicy}, any: true}}}}
}

func (g *policyGraph) null() bool { return len(g.levels) == 0 }

func (g *policyGraph) deepest() map[string]*policyNode { return g.levels[len(g.levels)-1] }

// add adds a node to the deepest level.
func (g *policyGraph) add(policy string, parents []*policyNode) *policyNode {
	node := &policyNode{expected: []string{policy}, parents: parents, any: policy == oidAnyPolicy}
	for _, parent := range parents {
		parent.children++
	}
	g.deepest()[policy] = node
	return node
}

// prune removes nodes above the deepest level that lead nowhere; a graph with an empty level is NULL (RFC 9618 §4.4, 6.1.3 (d)(3)).
func (g *policyGraph) prune() {
	for depth := len(g.levels) - 2; depth >= 0; depth-- {
		for policy, node := range g.levels[depth] {
			if node.children == 0 {
				g.remove(depth, policy)
			}
		}
	}
	if len(g.deepest()) == 0 {
		g.levels = nil
	}
}

func (g *policyGraph) remove(depth int, policy string) {
	for _, parent := range g.levels[depth][policy].parents {
		parent.children--
	}
	delete(g.levels[depth], policy)
}

// process takes the policies of the next certificate into the graph: RFC 5280 §6.1.3 (d) and (e) as RFC 9618 has them. takeAny tells whether
// anyPolicy is to be processed.
func (g *policyGraph) process(facts policyFacts, takeAny bool) {
	if !facts.present {
		g.levels = nil
	}
	if g.null() {
		return
	}
	// the nodes that expect each policy, and the policies in a fixed order
	expecting := make(map[string][]*policyNode)
	for _, node := range g.deepest() {
		for _, policy := range node.expected {
			expecting[policy] = append(expecting[policy], node)
		}
	}
	anyParent := g.deepest()[oidAnyPolicy]
	g.levels = append(g.levels, make(map[string]*policyNode))

	hasAny := false
	for _, policy := range facts.policies {
		if policy == oidAnyPolicy {
			hasAny = true
			continue
		}
		if _, repeated := g.deepest()[policy]; repeated {
			continue
		}
		if parents := expecting[policy]; len(parents) > 0 {
			g.add(policy, parents)
		} else if anyParent != nil {
			g.add(policy, []*policyNode{anyParent})
		}
	}
	if hasAny && takeAny {
		for policy, parents := range expecting {
			if _, present := g.deepest()[policy]; !present {
				g.add(policy, parents)
			}
		}
	}
	g.prune()
}

// mapPolicies applies policy mappings to the deepest level: RFC 5280 §6.1.4 (b) as RFC 9618 has it.
func (g *policyGraph) mapPolicies(mappings []policyMapping, inhibited bool) {
	if g.null() || len(mappings) == 0 {
		return
	}
	subjects := make(map[string][]string)
	for _, mapping := range mappings {
		subjects[mapping.issuer] = append(subjects[mapping.issuer], mapping.subject)
	}
	depth := len(g.levels) - 1
	for _, policy := range slices.Sorted(maps.Keys(subjects)) {
		node, present := g.deepest()[policy]
		switch {
		case inhibited && present:
			g.remove(depth, policy)
		case inhibited:
		case present:
			node.expected = subjects[policy]
		case g.deepest()[oidAnyPolicy] != nil:
			// a child of the node of the level above whose policy is anyPolicy: only such a node can have one here
			g.add(policy, g.deepest()[oidAnyPolicy].parents).expected = subjects[policy]
		}
	}
	if inhibited {
		g.prune()
	}
}

// authorities returns the authority-constrained policy set (RFC 9618 §4.5, 6.1.5 (g)), in the terms of the anchor's domain.
func (g *policyGraph) authorities() map[string]bool {
	set := make(map[string]bool)
	if g.null() {
		return set
	}
	for _, level := range g.levels[1:] {
		for policy, node := range level {
			if !node.any && slices.ContainsFunc(node.parents, func(parent *policyNode) bool { return parent.any }) {
				set[policy] = true
			}
		}
	}
	if g.deepest()[oidAnyPolicy] != nil {
		set[oidAnyPolicy] = true
	}
	return set
}
