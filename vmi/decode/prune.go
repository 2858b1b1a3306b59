package decode

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/shorten"
	quantities "github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// Limits of an UnreadableError, which becomes the message of a condition.
const (
	mostFields = 5
	mostPath   = 160
	mostValue  = 64
)

// prune removes from the tree what the type cannot hold, and returns what that was,
// or nil if there was nothing and whole is nil. whole is why the object could not be
// decoded as a whole.
func prune(tree map[string]any, t reflect.Type, whole error) *vmi.UnreadableError {
	var p pruner
	p.structure(nil, tree, t)
	if len(p.why.Fields) == 0 && whole != nil {
		p.why.Fields = []vmi.UnreadableField{{Message: shorten.Head(whole.Error(), mostPath)}}
	}
	if len(p.why.Fields) == 0 {
		return nil
	}
	return &p.why
}

// pruner notes what is removed.
type pruner struct{ why vmi.UnreadableError }

// fault notes that the value cannot be decoded.
func (p *pruner) fault(at *field.Path, v any, message string) {
	if len(p.why.Fields) == mostFields {
		p.why.More++
		return
	}
	p.why.Fields = append(p.why.Fields, vmi.UnreadableField{Path: shorten.Head(at.String(), mostPath), Value: shown(v), Message: shorten.Head(message, mostPath)})
}

// faults is how many there are.
func (p *pruner) faults() int { return len(p.why.Fields) + p.why.More }

// shown is the value as JSON, or what it is if it has parts.
func shown(v any) string {
	switch v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	text, err := stdjson.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return shorten.Head(string(text), mostValue)
}

var (
	quantity    = reflect.TypeFor[resource.Quantity]()
	unmarshaler = reflect.TypeFor[stdjson.Unmarshaler]()
)

// check returns what the type can hold of the value, and whether it can hold a value
// of this form at all. What it cannot hold is a fault.
func (p *pruner) check(at *field.Path, v any, t reflect.Type) (any, bool) {
	switch {
	case t.Kind() == reflect.Pointer:
		return p.check(at, v, t.Elem())
	case v == nil || t.Kind() == reflect.Interface:
		return v, true
	case t == quantity:
		return v, p.quantity(at, v)
	case reflect.PointerTo(t).Implements(unmarshaler):
		return v, p.any(at, v, t)
	}
	switch t.Kind() {
	case reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			p.fault(at, v, "must be an object")
			return v, false
		}
		p.structure(at, m, t)
		return v, true
	case reflect.Map:
		return v, p.mapping(at, v, t)
	case reflect.Slice:
		return p.list(at, v, t)
	case reflect.Array:
		return v, p.any(at, v, t)
	}
	return v, p.scalar(at, v, t)
}

// structure removes from the object the fields that the type cannot hold.
func (p *pruner) structure(at *field.Path, m map[string]any, t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch _, ok := m[name]; {
		case f.Anonymous && name == "" && embedded(f.Type).Kind() == reflect.Struct:
			p.structure(at, m, embedded(f.Type))
		case ok && f.IsExported():
			p.entry(at.Child(name), m, name, f.Type)
		}
	}
}

// entry makes the entry of the object what the type can hold of it, or removes it.
func (p *pruner) entry(at *field.Path, m map[string]any, key string, t reflect.Type) {
	if v, ok := p.check(at, m[key], t); ok {
		m[key] = v
	} else {
		delete(m, key)
	}
}

func embedded(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func (p *pruner) mapping(at *field.Path, v any, t reflect.Type) bool {
	m, ok := v.(map[string]any)
	if !ok {
		p.fault(at, v, "must be an object")
		return false
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		p.entry(at.Key(k), m, k, t.Elem())
	}
	return true
}

// list returns the list without the elements of which the type can hold a part only:
// such an element may mean something else.
func (p *pruner) list(at *field.Path, v any, t reflect.Type) (any, bool) {
	if t.Elem().Kind() == reflect.Uint8 {
		return v, p.any(at, v, t)
	}
	l, ok := v.([]any)
	if !ok {
		p.fault(at, v, "must be a list")
		return v, false
	}
	whole := []any{}
	for i := range l {
		before := p.faults()
		if p.check(at.Index(i), l[i], t.Elem()); p.faults() == before {
			whole = append(whole, l[i])
		}
	}
	return whole, true
}

// quantity checks the text of the quantity before anything is calculated with it.
func (p *pruner) quantity(at *field.Path, v any) bool {
	text, ok := v.(string)
	if n, isNumber := v.(stdjson.Number); isNumber {
		text, ok = n.String(), true
	}
	if !ok {
		p.fault(at, v, "must be a quantity, such as 2, 500m or 512Mi")
		return false
	}
	if quantities.Excessive([]byte(text)) {
		p.fault(at, v, quantities.MustBe)
		return false
	}
	if err := convert(text, &resource.Quantity{}); err != nil {
		p.fault(at, v, "must be a quantity, such as 2, 500m or 512Mi")
		return false
	}
	return true
}

// any checks a value whose type decodes itself.
func (p *pruner) any(at *field.Path, v any, t reflect.Type) bool {
	data, err := stdjson.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	if err != nil {
		p.fault(at, v, err.Error())
		return false
	}
	return true
}

func (p *pruner) scalar(at *field.Path, v any, t reflect.Type) bool {
	must := ""
	text := ""
	n, isNumber := v.(stdjson.Number)
	if isNumber {
		text = n.String()
	}
	switch t.Kind() {
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			must = "must be true or false"
		}
	case reflect.String:
		if _, ok := v.(string); !ok {
			must = "must be a string"
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if _, err := strconv.ParseInt(text, 10, t.Bits()); err != nil {
			must = fmt.Sprintf("must be a whole number from %d to %d", int64(-1)<<(t.Bits()-1), int64(math.MaxInt64)>>(64-t.Bits()))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if _, err := strconv.ParseUint(text, 10, t.Bits()); err != nil {
			must = fmt.Sprintf("must be a whole number from 0 to %d", uint64(math.MaxUint64)>>(64-t.Bits()))
		}
	case reflect.Float32, reflect.Float64:
		if _, err := strconv.ParseFloat(text, t.Bits()); err != nil {
			must = "must be a number"
		}
	default:
		return p.any(at, v, t)
	}
	if must != "" {
		p.fault(at, v, must)
	}
	return must == ""
}
