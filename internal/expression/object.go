package expression

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// objectType is a declared type with fields.
type objectType struct {
	cel    *types.Type
	fields map[string]*objectField
}

type objectField struct {
	declared Variable
	kind     *types.FieldType
	object   *objectType // of an Object
}

// value returns the field's value of a Go object, which may be nil.
func (f *objectField) value(object any) any {
	var value any
	if object != nil {
		value = f.declared.Get(object)
	}
	switch {
	case f.object != nil:
		return &instance{of: f.object, value: value}
	case value == nil:
		return f.declared.empty()
	default:
		return value
	}
}

func (f *objectField) isSet(object any) bool {
	return object != nil && !isEmpty(f.declared.Get(object))
}

// declare builds the type of an Object and of every object inside, and notes them by their names.
func declare(v Variable, path string, all map[string]*objectType) *objectType {
	t := &objectType{cel: types.NewObjectType(typeName(path), traits.FieldTesterType|traits.IndexerType), fields: make(map[string]*objectField)}
	for _, declared := range v.Fields {
		f := &objectField{declared: declared}
		at := path + "." + declared.Name
		if declared.Kind == Object {
			f.object = declare(declared, at, all)
		}
		f.kind = &types.FieldType{
			Type:    declared.celType(at),
			IsSet:   f.isSet,
			GetFrom: func(object any) (any, error) { return f.value(object), nil },
		}
		t.fields[declared.Name] = f
	}
	all[typeName(path)] = t
	return t
}

// instance is a Go value as expressions see it.
type instance struct {
	of    *objectType
	value any
}

// ConvertToNative implements ref.Val: an object is not converted.
func (o *instance) ConvertToNative(reflect.Type) (any, error) { return nil, errObject }

// ConvertToType implements ref.Val: an object has its own type alone.
func (o *instance) ConvertToType(kind ref.Type) ref.Val {
	if kind == types.TypeType {
		return o.of.cel
	}
	return types.WrapErr(errObject)
}

// Equal implements ref.Val: objects are not compared, only their fields are.
func (o *instance) Equal(ref.Val) ref.Val { return types.WrapErr(errObject) }

// Type implements ref.Val.
func (o *instance) Type() ref.Type { return o.of.cel }

// Value implements ref.Val.
func (o *instance) Value() any { return o.value }

// IsSet implements traits.FieldTester, for objects of which the checker does not know the type.
func (o *instance) IsSet(name ref.Val) ref.Val {
	f, err := o.field(name)
	if err != nil {
		return err
	}
	return types.Bool(f.isSet(o.value))
}

// Get implements traits.Indexer, for objects of which the checker does not know the type.
func (o *instance) Get(name ref.Val) ref.Val {
	f, err := o.field(name)
	if err != nil {
		return err
	}
	return types.DefaultTypeAdapter.NativeToValue(f.value(o.value))
}

func (o *instance) field(name ref.Val) (*objectField, ref.Val) {
	text, _ := name.(types.String)
	if f, ok := o.of.fields[string(text)]; ok {
		return f, nil
	}
	return nil, types.NewErr("no such field: %s", clip(string(text)))
}

var errObject = errors.New("an object is not a value; use its fields")

// provider adds the declared types to those of the language.
type provider struct {
	types.Provider
	objects map[string]*objectType
}

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if t, ok := p.objects[name]; ok {
		return types.NewTypeTypeWithParam(t.cel), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if t, ok := p.objects[name]; ok {
		return slices.Sorted(maps.Keys(t.fields)), true
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if t, ok := p.objects[name]; ok {
		f, ok := t.fields[field]
		if !ok {
			return nil, false
		}
		return f.kind, true
	}
	return p.Provider.FindStructFieldType(name, field)
}
