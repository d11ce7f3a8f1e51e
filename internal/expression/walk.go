package expression

import (
	"fmt"
	"maps"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// walker looks at a checked expression: which fields it reads, how long its values can get, and whether it does what makes an expression
// expensive or misleading whatever its estimate says.
type walker struct {
	tree      *ast.AST
	variables []Variable
	reads     map[string]bool
	bounds    map[int64]*bound // by the number of a node
	err       error            // the first refusal
}

// scope is what the names of macros stand for, and how deep the macros are nested.
type scope struct {
	names map[string]*bound
	depth int
}

func (w *walker) refuse(e ast.Expr, format string, args ...any) {
	if w.err == nil {
		at := w.tree.SourceInfo().GetStartLocation(e.ID())
		w.err = fmt.Errorf("%s%s", position(at.Line(), at.Column()), fmt.Sprintf(format, args...))
	}
}

// walk returns the bound of a node and notes it.
func (w *walker) walk(e ast.Expr, in scope) *bound {
	b := w.node(e, in)
	if b != nil {
		w.bounds[e.ID()] = b
	}
	return b
}

func (w *walker) node(e ast.Expr, in scope) *bound {
	switch e.Kind() {
	case ast.LiteralKind:
		if s, ok := e.AsLiteral().(types.String); ok {
			return &bound{length: uint64(len(s))}
		}
		return nil
	case ast.IdentKind:
		if b, ok := in.names[e.AsIdent()]; ok {
			return b
		}
		if v, ok := find(w.variables, e.AsIdent()); ok {
			return declared(v)
		}
		return nil
	case ast.SelectKind:
		s := e.AsSelect()
		return w.field(e, s.Operand(), s.FieldName(), s.IsTestOnly(), in)
	case ast.CallKind:
		return w.call(e, in)
	case ast.ListKind:
		list := &bound{length: uint64(len(e.AsList().Elements()))}
		for i, element := range e.AsList().Elements() {
			b := w.walk(element, in)
			if list.element = either(list.element, b); i == 0 {
				list.element = b
			}
		}
		return list
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key(), in)
			w.walk(entry.AsMapEntry().Value(), in)
		}
		return &bound{length: uint64(len(e.AsMap().Entries()))}
	case ast.StructKind:
		w.refuse(e, "an expression makes no objects")
		return nil
	case ast.ComprehensionKind:
		return w.comprehension(e, in)
	case ast.UnspecifiedExprKind:
		return nil
	default:
		return nil
	}
}

// field follows a selection, and notes it if it reads.
func (w *walker) field(e, operand ast.Expr, name string, testOnly bool, in scope) *bound {
	inside := w.walk(operand, in)
	path, declaredPath := w.path(operand)
	if declaredPath && !testOnly {
		w.reads[path+"."+name] = true
	}
	if v, ok := w.declaration(e); ok {
		return declared(v)
	}
	return inside.items() // of a Map
}

// path returns the dotted path of a selection that begins at a variable.
func (w *walker) path(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		_, ok := find(w.variables, e.AsIdent())
		return e.AsIdent(), ok
	case ast.SelectKind:
		above, ok := w.path(e.AsSelect().Operand())
		return above + "." + e.AsSelect().FieldName(), ok && !e.AsSelect().IsTestOnly()
	default:
		return "", false
	}
}

// declaration returns what declares a selected field.
func (w *walker) declaration(e ast.Expr) (Variable, bool) {
	path, ok := w.path(e)
	if !ok {
		return Variable{}, false
	}
	fields, v := w.variables, Variable{}
	for name := range strings.SplitSeq(path, ".") {
		if v, ok = find(fields, name); !ok {
			return Variable{}, false
		}
		fields = v.Fields
	}
	return v, true
}

// call returns the bound of a function's result. What is not listed has none: the estimate is then without limit, and the expression refused.
func (w *walker) call(e ast.Expr, in scope) *bound {
	call := e.AsCall()
	var operands []*bound
	if call.IsMemberFunction() {
		operands = append(operands, w.walk(call.Target(), in))
	}
	for _, arg := range call.Args() {
		operands = append(operands, w.walk(arg, in))
	}
	at := func(i int) *bound {
		if i < len(operands) {
			return operands[i]
		}
		return nil
	}
	switch function := call.FunctionName(); function {
	case operators.Conditional:
		return either(at(1), at(2))
	case operators.Index, operators.OptIndex:
		return at(0).items()
	case operators.OptSelect:
		if name, ok := call.Args()[1].AsLiteral().(types.String); ok {
			return w.optional(call.Args()[0], string(name), at(0))
		}
		return nil
	case operators.Add:
		if a, b := at(0), at(1); a != nil && b != nil {
			joined := *either(a, b)
			joined.length = add(a.length, b.length)
			return &joined
		}
		return nil
	case "dyn", "optional.of", "optional.ofNonZeroValue", "value", "lowerAscii", "upperAscii", "substring", "trim", "charAt", "find", "url", "getScheme", "getHostname", "getHost",
		"getPort", "getEscapedPath":
		return at(0)
	case "orValue", "or":
		return either(at(0), at(1))
	case "split", "findAll":
		if b := at(0); b != nil {
			return &bound{length: add(b.length, 1), element: &bound{length: b.length}}
		}
		return nil
	case "min", "max":
		return at(0).items()
	case "replace":
		if a, b := at(0), at(2); a != nil && b != nil {
			return &bound{length: add(a.length, multiply(add(a.length, 1), b.length))}
		}
		return nil
	case "join":
		return joined(at(0), at(1), len(operands) > 1)
	case "string":
		if b := at(0); b != nil {
			return &bound{length: max(b.length, shortText)}
		}
		if kind := w.tree.GetType(call.Args()[0].ID()).Kind(); kind != types.StringKind && kind != types.BytesKind && kind != types.DynKind {
			return &bound{length: shortText}
		}
		return nil
	case "type":
		return &bound{length: shortText}
	case "validate":
		return &bound{length: defaultItems, element: &bound{length: defaultSize}}
	default:
		return nil
	}
}

// shortText is more than what any number, time or address is as text.
const shortText = 64

func joined(list, separator *bound, separated bool) *bound {
	if list.items() == nil || separated && separator == nil {
		return nil
	}
	each := list.items().length
	if separated {
		each = add(each, separator.length)
	}
	return &bound{length: multiply(list.length, each)}
}

// optional is field for the form a.?b.
func (w *walker) optional(operand ast.Expr, name string, inside *bound) *bound {
	path, ok := w.path(operand)
	if !ok {
		return inside.items()
	}
	w.reads[path+"."+name] = true
	if v, isDeclared := w.declaration(operand); isDeclared {
		if f, isField := find(v.Fields, name); isField {
			return declared(f)
		}
	}
	return inside.items()
}

// comprehension is a macro: all, exists, exists_one, map or filter.
func (w *walker) comprehension(e ast.Expr, in scope) *bound {
	c := e.AsComprehension()
	for _, name := range []string{c.IterVar(), c.IterVar2()} {
		if _, taken := find(w.variables, name); taken {
			w.refuse(e, "%q is a variable already; give the one of the macro another name", clip(name))
		}
	}
	if in.depth == maxNesting {
		w.refuse(e, "all, exists, map and filter stand more than %d deep inside of each other", maxNesting)
		return nil
	}
	in.depth++
	over := w.walk(c.IterRange(), in)
	inner := scope{names: maps.Clone(in.names), depth: in.depth}
	if inner.names == nil {
		inner.names = make(map[string]*bound)
	}
	inner.names[c.IterVar()] = over.items()
	if c.IterVar2() != "" {
		inner.names[c.IterVar2()] = over.items()
	}
	w.walk(c.AccuInit(), in)
	// what is collected: the macros that make a list add [element] in each step
	inner.names[c.AccuVar()] = nil
	w.walk(c.LoopCondition(), inner)
	w.walk(c.LoopStep(), inner)
	var collected *bound
	if element, ok := appended(c.LoopStep(), c.AccuVar()); ok && over != nil {
		collected = &bound{length: over.length, element: w.bounds[element.ID()]}
	}
	inner.names[c.AccuVar()] = collected
	return w.walk(c.Result(), inner)
}

// appended returns the element that a step adds to the list it makes.
func appended(step ast.Expr, list string) (ast.Expr, bool) {
	if step.Kind() != ast.CallKind {
		return nil, false
	}
	args := step.AsCall().Args()
	switch step.AsCall().FunctionName() {
	case operators.Conditional:
		return appended(args[1], list)
	case operators.Add:
		if args[0].Kind() == ast.IdentKind && args[0].AsIdent() == list && args[1].Kind() == ast.ListKind && args[1].AsList().Size() == 1 {
			return args[1].AsList().Elements()[0], true
		}
	}
	return nil, false
}

func find(fields []Variable, name string) (Variable, bool) {
	for _, v := range fields {
		if v.Name == name {
			return v, true
		}
	}
	return Variable{}, false
}

// position returns the beginning of a sentence about a place in an expression. Line and column are those of cel: lines count from 1, columns from 0,
// and a line below 1 stands for the whole expression.
func position(line, column int) string {
	if line < 1 {
		return ""
	}
	return fmt.Sprintf("line %d, column %d: ", line, column+1)
}

// clip makes text that an expression or a value holds fit for one line of an error.
func clip(text string) string {
	const most = 200
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
