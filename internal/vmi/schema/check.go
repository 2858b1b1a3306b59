package schema

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxFaults is the number of faults that are reported at most: an object can have
// thousands of them.
const MaxFaults = 50

// Faults returns what the schema of the kind refuses in an object, or nothing. A kind
// that is not served has no schema and no faults. The object is a tree as JSON decodes
// to, with numbers of any type; it is not changed. There are about [MaxFaults] at most.
func Faults(kind string, object map[string]any) field.ErrorList {
	n := all().Kinds[kind]
	if n == nil {
		return nil
	}
	c := checker{}
	c.value(nil, n, object)
	return c.faults
}

// Completed is a copy of an object as the API server judges it: without null where the
// schema has none, and with the defaults of the schema. What the kind has no schema for
// stays as it is.
func Completed(kind string, object map[string]any) map[string]any {
	c, _ := completed(all().Kinds[kind], object).(map[string]any)
	return c
}

func completed(n *node, v any) any {
	if n == nil {
		n = &node{}
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			below := n.child(name)
			if value == nil && below != nil && !below.Nullable {
				continue
			}
			out[name] = completed(below, value)
		}
		for _, name := range n.defaulted {
			if out[name] == nil {
				out[name] = n.Properties[name].Default
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = completed(n.Items, v[i])
		}
		return out
	}
	return v
}

// child is the schema of a field, or nil if there is none.
func (n *node) child(name string) *node {
	if p := n.Properties[name]; p != nil {
		return p
	}
	return n.Values
}

// checker collects faults.
type checker struct{ faults field.ErrorList }

func (c *checker) add(e *field.Error) { c.faults = append(c.faults, e) }

// place is where a value is in the object, which is nil. Its path is made for a fault only.
type place struct {
	around *place
	name   string // of a field
	index  int    // of an element, or -1
}

func (p *place) path() *field.Path {
	switch {
	case p == nil:
		return nil
	case p.index >= 0:
		return p.around.path().Index(p.index)
	}
	return child(p.around.path(), p.name)
}

// value checks a value and all below it.
func (c *checker) value(at *place, n *node, v any) {
	switch {
	case len(c.faults) >= MaxFaults:
		return
	case v == nil && n.Nullable:
		return
	case !n.is(v):
		c.add(field.TypeInvalid(at.path(), typeOf(v), "must be of type "+n.types()+": "+fmt.Sprintf("%q", typeOf(v))))
		return
	}
	before := len(c.faults)
	switch v := v.(type) {
	case map[string]any:
		c.object(at, n, v)
	case []any:
		c.list(at, n, v)
	case string:
		c.text(at, n, v)
	default:
		if f, ok := number(v); ok {
			c.number(at, n, v, f)
		}
	}
	if len(n.Enum) > 0 && !slices.ContainsFunc(n.Enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		c.add(field.NotSupported(at.path(), v, texts(n.Enum)))
	}
	if len(c.faults) > before {
		return // a rule takes the rest for right
	}
	if len(n.Rules) == 0 {
		return
	}
	self := scope{"self": v}
	for _, r := range n.Rules {
		if ok, err := r.expression.eval(self); err != nil || ok != true {
			c.add(field.Invalid(below(at.path(), r.FieldPath), field.OmitValueType{}, r.Message))
		}
	}
}

// below is a path of a rule, such as .numa.guestMappingPassthrough, from a value on.
func below(at *field.Path, path string) *field.Path {
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		at = at.Child(name)
	}
	return at
}

// is says that the value has the type.
func (n *node) is(v any) bool {
	f, isNumber := number(v)
	integer := isNumber && f == float64(int64(f))
	switch {
	case n.IntOrString:
		_, isText := v.(string)
		return isText || integer
	case n.Type == "":
		return true
	}
	switch v.(type) {
	case map[string]any:
		return n.Type == "object"
	case []any:
		return n.Type == "array"
	case string:
		return n.Type == "string"
	case bool:
		return n.Type == "boolean"
	}
	return isNumber && n.Type == "number" || integer && n.Type == "integer"
}

func (n *node) types() string {
	if n.IntOrString {
		return "integer or string"
	}
	return n.Type
}

// typeOf is the type of a value in the words of a schema.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	}
	if f, ok := number(v); ok && f == float64(int64(f)) {
		return "integer"
	}
	return "number"
}

// number is the value of a number of any type.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}

func (c *checker) object(at *place, n *node, v map[string]any) {
	for _, name := range n.Required {
		if _, ok := v[name]; !ok {
			c.add(field.Required(child(at.path(), name), ""))
		}
	}
	if most := n.MaxProperties; most != nil && len(v) > *most {
		c.add(field.TooMany(at.path(), len(v), *most))
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch p := n.Properties[name]; {
		case p != nil:
			c.value(&place{at, name, -1}, p, v[name])
		case n.Values != nil:
			c.value(&place{at, name, -1}, n.Values, v[name])
		}
	}
}

// child is the path of a field, also of one of the object itself.
func child(at *field.Path, name string) *field.Path {
	if at == nil {
		return field.NewPath(name)
	}
	return at.Child(name)
}

func (c *checker) list(at *place, n *node, v []any) {
	if most := n.MaxItems; most != nil && len(v) > *most {
		c.add(field.TooMany(at.path(), len(v), *most))
		return
	}
	seen := map[string]bool{}
	for i := range v {
		if n.Items != nil {
			c.value(&place{around: at, index: i}, n.Items, v[i])
		}
		if len(v) == 1 {
			return // it differs from no other
		}
		if key, ok := n.key(v[i]); ok {
			if seen[key] {
				c.add(field.Duplicate(at.path().Index(i), keyOf(n, v[i])))
			}
			seen[key] = true
		}
	}
}

// key is what the elements of a list differ by, if they must.
func (n *node) key(v any) (string, bool) {
	if n.ListType != "map" && n.ListType != "set" {
		return "", false
	}
	text, err := json.Marshal(keyOf(n, v))
	return string(text), err == nil
}

func keyOf(n *node, v any) any {
	m, ok := v.(map[string]any)
	if n.ListType != "map" || !ok {
		return v
	}
	key := map[string]any{}
	for _, name := range n.ListKeys {
		if value, ok := m[name]; ok {
			key[name] = value
		}
	}
	return key
}

func (c *checker) text(at *place, n *node, v string) {
	if most := n.MaxLength; most != nil && utf8.RuneCountInString(v) > *most {
		c.add(field.TooLong(at.path(), "", *most))
		return
	}
	if least := n.MinLength; least != nil && utf8.RuneCountInString(v) < *least {
		c.add(field.Invalid(at.path(), v, fmt.Sprintf("should be at least %d chars long", *least)))
	}
	if n.pattern != nil && !n.pattern.MatchString(v) {
		c.add(field.Invalid(at.path(), v, fmt.Sprintf("should match '%s'", n.Pattern)))
	}
	if n.Format == "byte" {
		if _, err := base64.StdEncoding.DecodeString(v); err != nil {
			c.add(field.Invalid(at.path(), v, "must be of type byte, which is base64"))
		}
	}
}

func (c *checker) number(at *place, n *node, v any, f float64) {
	if n.Minimum != nil && f < *n.Minimum {
		c.add(field.Invalid(at.path(), v, fmt.Sprintf("should be greater than or equal to %s", shown(*n.Minimum))))
	}
	if n.Maximum != nil && f > *n.Maximum {
		c.add(field.Invalid(at.path(), v, fmt.Sprintf("should be less than or equal to %s", shown(*n.Maximum))))
	}
}

// shown is a limit without an exponent.
func shown(f float64) string {
	if f == float64(int64(f)) {
		return fmt.Sprint(int64(f))
	}
	return fmt.Sprint(f)
}

func texts(all []any) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = fmt.Sprint(v)
	}
	return out
}
