package expression

import (
	"math"
	"math/bits"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// What Kubernetes allows its own policies. A unit is some 0.1 µs, and in an evaluation of very many steps, in which the counting itself gets slower, more
// than 1 µs.
const (
	// MaxCost is what one evaluation may cost, by the estimate when it is compiled and by count while it runs.
	MaxCost = celconfig.PerCallLimit
	// MaxTotalCost is what all the evaluations of one decision may cost together.
	MaxTotalCost = celconfig.RuntimeCELCostBudget
)

// Sizes of values whose declarations say nothing else. MaxMap is that of every text and every list inside of a Map.
const (
	defaultSize  = 1024
	defaultItems = 100
	// MaxMap is how many bytes a Map may have as JSON, for the estimates to hold.
	MaxMap = 16 << 10
)

// bound is how long a text, or how long a list and each of its elements, can be. Nil means that nobody knows.
type bound struct {
	length  uint64
	element *bound
}

// anything is the bound of what stands in a Map: its parts are no longer than it is.
func anything() *bound {
	b := &bound{length: MaxMap}
	b.element = b
	return b
}

// items returns the bound of a list's elements.
func (b *bound) items() *bound {
	if b == nil {
		return nil
	}
	return b.element
}

// either returns the bound of what can be one or the other.
func either(a, b *bound) *bound {
	switch {
	case a == nil || b == nil:
		return nil
	case a == b || a.element == a && a.length >= b.length:
		return a
	case b.element == b && b.length >= a.length:
		return b
	case a.element == nil && b.element == nil:
		return &bound{length: max(a.length, b.length)}
	case a.element == nil:
		return &bound{length: max(a.length, b.length), element: b.element} // the empty list has no element
	case b.element == nil:
		return &bound{length: max(a.length, b.length), element: a.element}
	default:
		return &bound{length: max(a.length, b.length), element: either(a.element, b.element)}
	}
}

func add(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return math.MaxUint64
}

func multiply(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// declared returns the bound of a variable or field.
func declared(v Variable) *bound {
	size := v.Size
	if size == 0 {
		size = defaultSize
	}
	switch v.Kind {
	case String:
		return &bound{length: size}
	case Strings:
		items := v.Items
		if items == 0 {
			items = defaultItems
		}
		return &bound{length: items, element: &bound{length: size}}
	case Map:
		return anything()
	case Bool, Duration, Object:
		return nil
	default:
		return nil
	}
}

// estimator tells the checker the bounds that were found for the nodes of an expression, and the costs of functions as Kubernetes counts them.
type estimator struct{ bounds map[int64]*bound }

// EstimateSize implements checker.CostEstimator.
func (e *estimator) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if node.Expr() == nil {
		return nil
	}
	if b := e.bounds[node.Expr().ID()]; b != nil {
		return &checker.SizeEstimate{Max: b.length}
	}
	return nil
}

// EstimateCallCost implements checker.CostEstimator.
func (e *estimator) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	if function == "join" && target != nil && (*target).Expr() != nil {
		return e.join((*target).Expr(), args)
	}
	estimate := (&library.CostEstimator{SizeEstimator: e}).EstimateCallCost(function, overload, target, args)
	if estimate != nil && estimate.ResultSize != nil && function == "replace" {
		// what it makes can be far longer than what it is given, which Kubernetes leaves out of the price
		estimate.CostEstimate = estimate.Add(estimate.ResultSize.MultiplyByCostFactor(1))
	}
	return estimate
}

// join is estimated by what it makes. Kubernetes knows the length of a list's elements only if they are declared.
func (e *estimator) join(list ast.Expr, args []checker.AstNode) *checker.CallEstimate {
	var separator *bound
	if len(args) > 0 && args[0].Expr() != nil {
		separator = e.bounds[args[0].Expr().ID()]
	}
	size := checker.SizeEstimate{Max: math.MaxUint64}
	if made := joined(e.bounds[list.ID()], separator, len(args) > 0); made != nil {
		size.Max = made.length
	}
	return &checker.CallEstimate{CostEstimate: size.MultiplyByCostFactor(1), ResultSize: &size}
}
