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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// wrongTypes are the values of an object that have a wrong type. The decoder stops
// at the first and does not always report its path, so each value is decoded alone,
// in an object that has no other.
func wrongTypes(data []byte, into runtime.Object, whole error) []Fault {
	var object any
	if err := yaml.Unmarshal(data, &object); err != nil {
		return []Fault{{Type: field.ErrorTypeTypeInvalid, Message: err.Error()}}
	}
	var faults []Fault
	kind := reflect.TypeOf(into).Elem()
	leaves(nil, object, func(v any) any { return v }, func(at *field.Path, v, alone any) {
		text, err := json.Marshal(alone)
		if err == nil {
			err = json.Unmarshal(text, reflect.New(kind).Interface())
		}
		if err == nil {
			return
		}
		if f := wrongType(at, v, err); !slices.Contains(faults, f) {
			faults = append(faults, f)
		}
	})
	if len(faults) == 0 {
		return []Fault{{Type: field.ErrorTypeTypeInvalid, Message: whole.Error()}}
	}
	return faults
}

// leaves calls visit with each value that has no parts, and with an object that
// has it and nothing else, which around makes of it.
func leaves(at *field.Path, v any, around func(any) any, visit func(at *field.Path, v, alone any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			leaves(at.Child(k), v[k], func(p any) any { return around(map[string]any{k: p}) }, visit)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, part := range v {
			leaves(at.Index(i), part, func(p any) any { return around([]any{p}) }, visit)
		}
		if len(v) > 0 {
			return
		}
	}
	if at != nil {
		visit(at, v, around(v))
	}
}

// wrongType is the fault of the value v at the path, with what it must be instead.
func wrongType(at *field.Path, v any, err error) Fault {
	name := at.String()
	var e *json.UnmarshalTypeError
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
