package expression

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// MaxSource is how long an expression may be, in bytes.
	MaxSource = 4096
	// MaxText is how long the text may be that an expression yields, in bytes.
	MaxText = 2048
	// maxProblems is how many of an expression's problems an error tells.
	maxProblems = 5
	// maxNesting is how deep macros such as all and map may stand inside of each other.
	maxNesting = 3
	// maxDepth is how deep the text may be nested for the parser.
	maxDepth = 64
)

// Environment is a set of variables, for several expressions over the same ones. It is immutable and safe for concurrent use.
type Environment struct {
	env       *cel.Env
	variables []Variable
	objects   map[string]*objectType
}

// NewEnvironment checks the declarations of variables. An error is a fault of the program, not of its configuration.
func NewEnvironment(variables ...Variable) (*Environment, error) {
	e := &Environment{variables: variables, objects: make(map[string]*objectType)}
	base, err := cel.NewEnv(language()...)
	if err != nil {
		return nil, fmt.Errorf("the language of expressions: %w", err)
	}
	var options []cel.EnvOption
	for _, v := range variables {
		if err := v.check(v.Name, true); err != nil {
			return nil, err
		}
		if v.Kind == Object {
			declare(v, v.Name, e.objects)
		}
		options = append(options, cel.Variable(v.Name, v.celType(v.Name)))
	}
	options = append(options, cel.CustomTypeProvider(&provider{Provider: base.CELTypeProvider(), objects: e.objects}))
	e.env, err = base.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("declaring variables: %w", err)
	}
	return e, nil
}

// check looks for what would fail only when an expression is evaluated.
func (v Variable) check(path string, top bool) error {
	switch {
	case v.Name == "" || v.celType(path) == nil:
		return fmt.Errorf("variable %q has no name or no kind", path)
	case top != (v.Get == nil):
		return fmt.Errorf("variable %q: fields have a Get, and nothing else has", path)
	case (v.Kind == Object) != (len(v.Fields) > 0):
		return fmt.Errorf("variable %q: objects have fields, and nothing else has", path)
	}
	for _, f := range v.Fields {
		if err := f.check(path+"."+f.Name, false); err != nil {
			return err
		}
	}
	return nil
}

// language is what expressions may use: the base environment of Kubernetes 1.37, without what the package comment names.
func language() []cel.EnvOption {
	return []cel.EnvOption{
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		cel.ParserRecursionLimit(maxDepth),
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(), cel.ValidateHomogeneousAggregateLiterals()),
		cel.CostEstimatorOptions(checker.PresenceTestHasCost(false)),
		ext.Strings(ext.StringsVersion(0)),
		ext.Sets(),
		library.URLs(), library.Regex(), library.Lists(library.ListsVersion(1)), library.IP(), library.CIDR(), library.Format(),
	}
}

// Expression is a compiled expression. It is immutable and safe for concurrent use.
type Expression struct {
	source  string
	of      *Environment
	program cel.Program
	reads   map[string]bool
	cost    uint64
}

// New compiles an expression over variables of its own; see Environment.Compile.
func New(source string, result Kind, variables ...Variable) (*Expression, error) {
	e, err := NewEnvironment(variables...)
	if err != nil {
		return nil, err
	}
	return e.Compile(source, result)
}

// Compile compiles an expression whose result is a Bool or a String. The error is for whoever wrote it: it gives line and column, both from 1, of what
// does not parse, does not fit the types, could cost more than MaxCost or is too long. A result whose type shows only when the expression is
// evaluated, such as an entry of a Map, is accepted here and looked at then.
func (e *Environment) Compile(source string, result Kind) (*Expression, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, errors.New("the expression is empty")
	case len(source) > MaxSource:
		return nil, fmt.Errorf("the expression is %d bytes long; at most %d", len(source), MaxSource)
	case !utf8.ValidString(source):
		return nil, errors.New("the expression is not UTF-8")
	}
	compiled, issues := e.env.Compile(source)
	if err := issues.Err(); err != nil {
		return nil, problems(issues)
	}
	if err := checkResult(compiled.OutputType(), result); err != nil {
		return nil, err
	}
	w := &walker{tree: compiled.NativeRep(), variables: e.variables, reads: make(map[string]bool), bounds: make(map[int64]*bound)}
	if w.walk(w.tree.Expr(), scope{}); w.err != nil {
		return nil, w.err
	}
	x := &Expression{source: source, of: e, reads: w.reads}
	estimate, err := e.env.EstimateCost(compiled, &estimator{bounds: w.bounds})
	if err != nil {
		return nil, fmt.Errorf("estimating the cost: %w", err)
	}
	if x.cost = estimate.Max; x.cost > MaxCost {
		return nil, expensive(x.cost)
	}
	x.program, err = e.env.Program(compiled,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostLimit(MaxCost),
		cel.CostTracking(&library.CostEstimator{}),
		cel.CostTrackerOptions(interpreter.PresenceTestHasCost(false)),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency),
	)
	if err != nil {
		return nil, fmt.Errorf("preparing the expression: %s", clip(err.Error()))
	}
	return x, nil
}

func expensive(cost uint64) error {
	const way = "; look at fewer or shorter values, or nest all, exists, map and filter less deep"
	if cost == math.MaxUint64 || cost > math.MaxUint64/1000 { // a share of what has no bound
		return errors.New("how much it can cost has no bound, since nobody knows how long a value gets that it makes" + way)
	}
	return fmt.Errorf("it could cost %d units, and an evaluation may cost %d%s", cost, MaxCost, way)
}

// problems makes one line of what the compiler says.
func problems(issues *cel.Issues) error {
	var lines []string
	for i, p := range issues.Errors() {
		if i == maxProblems {
			lines = append(lines, "and more")
			break
		}
		lines = append(lines, position(p.Location.Line(), p.Location.Column())+clip(p.Message))
	}
	return errors.New(strings.Join(lines, "; "))
}

func checkResult(output *cel.Type, result Kind) error {
	var want *cel.Type
	switch result {
	case Bool:
		want = cel.BoolType
	case String:
		want = cel.StringType
	case Duration, Strings, Map, Object:
	}
	switch {
	case want == nil:
		return fmt.Errorf("an expression yields a Bool or a String, not the kind %d", result)
	case output.IsExactType(want) || output.IsExactType(cel.DynType):
		return nil
	default:
		return fmt.Errorf("it has to yield a %s and yields a %s", want, clip(output.String()))
	}
}

// Source returns the text of the expression.
func (x *Expression) Source() string { return x.source }

// Cost returns what an evaluation is estimated to cost at most, in the units of MaxCost.
func (x *Expression) Cost() uint64 { return x.cost }

// Reads tells whether the expression reads a field of a variable, other than by has().
func (x *Expression) Reads(variable, field string) bool { return x.reads[variable+"."+field] }

// Holds evaluates an expression that yields a Bool. It also returns what that cost, in the units of MaxCost. If ctx has ended, before the evaluation or
// during it, the error is that of ctx; any other says what the expression did: it read a key that is not there, say, or cost too much. Such
// an error can quote values, so it is for the log and not for the caller.
func (x *Expression) Holds(ctx context.Context, values Values) (holds bool, cost uint64, err error) {
	out, cost, err := x.eval(ctx, values)
	if err != nil {
		return false, cost, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, cost, fmt.Errorf("it yielded a %s and has to yield a bool", out.Type().TypeName())
	}
	return bool(b), cost, nil
}

// Text evaluates an expression that yields a String, of at most MaxText bytes of UTF-8. Errors are as in Holds.
func (x *Expression) Text(ctx context.Context, values Values) (string, error) {
	out, _, err := x.eval(ctx, values)
	if err != nil {
		return "", err
	}
	s, ok := out.(types.String)
	switch {
	case !ok:
		return "", fmt.Errorf("it yielded a %s and has to yield a string", out.Type().TypeName())
	case len(s) > MaxText:
		return "", fmt.Errorf("it yielded a text of %d bytes; at most %d", len(s), MaxText)
	case !utf8.ValidString(string(s)):
		return "", errors.New("it yielded a text that is not UTF-8")
	}
	return string(s), nil
}

func (x *Expression) eval(ctx context.Context, values Values) (ref.Val, uint64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	out, details, err := x.program.ContextEval(ctx, activation{x.of, values})
	var cost uint64
	if details != nil {
		if actual := details.ActualCost(); actual != nil {
			cost = *actual
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, cost, ctx.Err()
	case err != nil:
		return nil, cost, errors.New(clip(err.Error()))
	case types.IsUnknownOrError(out):
		return nil, cost, fmt.Errorf("it yielded no value: %s", clip(fmt.Sprint(out)))
	}
	return out, cost, nil
}

// activation gives an evaluation its values.
type activation struct {
	of     *Environment
	values Values
}

// ResolveName implements cel.Activation.
func (a activation) ResolveName(name string) (any, bool) {
	value, ok := a.values[name]
	if !ok {
		return nil, false
	}
	if t, isObject := a.of.objects[typeName(name)]; isObject {
		return &instance{of: t, value: value}, true
	}
	return value, true
}

// Parent implements cel.Activation.
func (a activation) Parent() cel.Activation { return nil }
