package expression

import (
	"time"

	"github.com/google/cel-go/cel"
)

// Kind is the type of a variable, of a field or of a result.
type Kind uint8

// The kinds.
const (
	// Bool is a Go bool.
	Bool Kind = iota + 1
	// String is a Go string.
	String
	// Duration is a time.Duration.
	Duration
	// Strings is a []string.
	Strings
	// Map is a map[string]any in the types of encoding/json, for what has no declared form: the claims of a token.
	Map
	// Object is a Go value of any type with declared fields.
	Object
)

// Variable declares a variable, or a field of one.
type Variable struct {
	// Name is an identifier of CEL.
	Name string
	Kind Kind
	// Fields are those of an Object.
	Fields []Variable
	// Get returns a field's value from the Go value of its object, which is never nil. Nil stands for an empty value; an Object whose value is nil
	// is absent: has() says so, and its fields are empty. A variable that is no field has no Get.
	Get func(object any) any
	// Size is how long a String, or each of Strings, can be, in bytes, for the estimate of the cost. Zero means 1024. Whoever evaluates sees to it.
	Size uint64
	// Items is how many Strings there can be. Zero means 100.
	Items uint64
}

// Values are what an evaluation reads, by the names of the variables. A variable without a value is an error once it is read. What they hold is
// not changed.
type Values map[string]any

// celType returns the type as the checker knows it.
func (v Variable) celType(path string) *cel.Type {
	switch v.Kind {
	case Bool:
		return cel.BoolType
	case String:
		return cel.StringType
	case Duration:
		return cel.DurationType
	case Strings:
		return cel.ListType(cel.StringType)
	case Map:
		return cel.MapType(cel.StringType, cel.DynType)
	case Object:
		return cel.ObjectType(typeName(path))
	default:
		return nil
	}
}

// typeName returns the name of an object's type. Its space keeps it from being written in an expression: no object can be made there, and no field
// is taken for a type.
func typeName(path string) string { return "object " + path }

// empty returns the value of a field whose object is absent.
func (v Variable) empty() any {
	switch v.Kind {
	case Bool:
		return false
	case String:
		return ""
	case Duration:
		return time.Duration(0)
	case Strings:
		return []string(nil)
	case Map:
		return map[string]any(nil)
	case Object:
		return nil
	default:
		return nil
	}
}

// isEmpty tells whether has() says no.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case string:
		return value == ""
	case time.Duration:
		return value == 0
	case []string:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	default:
		return false
	}
}
