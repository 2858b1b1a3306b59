package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
)

// correction takes out of an object the values that have a wrong type, each with its
// fault. The decoder stops at the first and does not always report its path, so
// each value is decoded alone, in an object that has no other.
type correction struct {
	kind   reflect.Type
	faults []Fault
}

// decodes returns the error of decoding the value.
func (c *correction) decodes(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	o := reflect.New(c.kind).Interface()
	if l := quantity.FaultsIn(o, text); len(l) > 0 {
		return fmt.Errorf("%w%s", errExcessive, l[0].Detail)
	}
	return json.Unmarshal(text, o)
}

// errExcessive is the class of quantities that are not decoded.
var errExcessive = errors.New("")

// value returns the value at the path as far as it can be decoded. around makes of
// it an object that has nothing else.
func (c *correction) value(at *field.Path, v any, around func(any) any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		right := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if part, ok := c.value(at.Child(k), v[k], func(p any) any { return around(map[string]any{k: p}) }); ok {
				right[k] = part
			}
		}
		if len(v) > 0 {
			return right, c.decodes(around(map[string]any{})) == nil
		}
	case []any:
		right := make([]any, len(v))
		for i, part := range v {
			// What is wrong leaves a gap: the others keep their places.
			if part, ok := c.value(at.Index(i), part, func(p any) any { return around([]any{p}) }); ok {
				right[i] = part
			}
		}
		if len(v) > 0 {
			return right, c.decodes(around([]any{})) == nil
		}
	}
	err := c.decodes(around(v))
	if err == nil || at == nil {
		return v, err == nil
	}
	if f := wrongType(at, v, err); !slices.Contains(c.faults, f) {
		c.faults = append(c.faults, f)
	}
	if text := fmt.Sprint(v); c.decodes(around(text)) == nil {
		return text, true
	}
	return nil, false
}

// wrongType is the fault of the value v at the path, with what it must be instead.
func wrongType(at *field.Path, v any, err error) Fault {
	name := at.String()
	var e *json.UnmarshalTypeError
	if errors.Is(err, errExcessive) {
		return Fault{name, field.ErrorTypeInvalid, err.Error()}
	}
	if !errors.As(err, &e) {
		message := err.Error()
		if errors.Is(err, resource.ErrFormatWrong) || errors.Is(err, resource.ErrNumeric) || errors.Is(err, resource.ErrSuffix) {
			message = "must be a quantity, such as 2, 500m or 512Mi, not " + shown(v)
		}
		return Fault{name, field.ErrorTypeTypeInvalid, message}
	}
	message := "must be " + word(e.Type) + ", not " + shown(v)
	list, object := e.Value == "array", e.Value == "object"
	switch i := strings.LastIndexAny(name, ".["); {
	// The list or object around the value may have the wrong type.
	case list && i >= 0 && shown(v) != "a list":
		name, message = name[:i], "must be "+word(e.Type)+", not a list"
	case object && i >= 0 && shown(v) != "an object":
		name, message = name[:i], "must be "+word(e.Type)+", not an object"
	case e.Type.Kind() == reflect.String && !list && !object:
		message += ": put it in quotes"
	}
	return Fault{name, field.ErrorTypeTypeInvalid, message}
}

// word is what a user calls a type.
func word(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative"
	}
	return "an object"
}

func shown(v any) string {
	switch v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
