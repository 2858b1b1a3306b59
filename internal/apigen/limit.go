package main

import (
	"math"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
)

// What an API server stores and a Go type cannot hold makes the whole list of
// objects unreadable for every client of that type, so the schema refuses it.

// sized are the integers of Go whose limits are not those of a format. The API
// server has no integers above those of int64.
var sized = map[string]struct{ min, max int64 }{
	"int8": {math.MinInt8, math.MaxInt8}, "int16": {math.MinInt16, math.MaxInt16},
	"uint8": {0, math.MaxUint8}, "uint16": {0, math.MaxUint16}, "uint32": {0, math.MaxUint32},
	"uint": {0, math.MaxInt64}, "uint64": {0, math.MaxInt64},
}

// dateTime is the form of the times that Go decodes. The API server's own check,
// the format date-time, is of the date.
const dateTime = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`

// limitNumber puts the limits of a number of the language into its schema.
func limitNumber(s node, goType string) {
	if goType == "float32" {
		s["format"] = "float"
	}
	limits, ok := sized[goType]
	if !ok {
		return
	}
	// What is int32 for controller-gen has half of the values of uint32.
	delete(s, "format")
	narrow(s, limits.min, limits.max)
}

// narrow sets minimum and maximum, unless they are narrower already. The largest
// integer of all needs no maximum, and is not one that JSON has.
func narrow(s node, least, most int64) {
	if was, ok := s["minimum"].(float64); !ok || was < float64(least) {
		s["minimum"] = least
	}
	if was, ok := s["maximum"].(float64); (!ok || was > float64(most)) && most < math.MaxInt64 {
		s["maximum"] = most
	}
}

// limit puts the limits of quantities, of what is an integer or a string, and of
// times into a schema and all below it.
func limit(s node) {
	switch quantities := s["pattern"] != nil; {
	case s["x-kubernetes-int-or-string"] == true && quantities:
		s["pattern"], s["maxLength"] = quantity.Pattern, quantity.MaxLength
		narrow(s, -quantity.Most, quantity.Most)
	case s["x-kubernetes-int-or-string"] == true:
		narrow(s, math.MinInt32, math.MaxInt32)
	case s["type"] == "string" && s["format"] == "date-time":
		s["pattern"] = dateTime
	}
	for _, below := range s.child("properties") {
		limit(object(below))
	}
	if elem, suffix := s.element(); suffix != "" {
		limit(elem)
	}
}

// describeMetadata gives the metadata of a template the fields of its type, which
// controller-gen leaves out. Those that an object has and its type has not still
// pass.
func describeMetadata(s node) {
	s["properties"] = plain(reflect.TypeFor[metav1.ObjectMeta]())["properties"]
}

// plain is the schema of a type as far as what it can hold.
func plain(t reflect.Type) node {
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return node{"type": "string", "format": "date-time", "nullable": true}
	case t == reflect.TypeFor[metav1.FieldsV1](), t == reflect.TypeFor[runtime.RawExtension]():
		return node{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return plain(t.Elem())
	case reflect.Slice:
		return node{"type": "array", "items": map[string]any(plain(t.Elem())), "x-kubernetes-list-type": "atomic"}
	case reflect.Map:
		return node{"type": "object", "additionalProperties": map[string]any(plain(t.Elem()))}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.Int64:
		return node{"type": "integer", "format": "int64"}
	case reflect.Struct:
		properties := map[string]any{}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			properties[name] = map[string]any(plain(t.Field(i).Type))
		}
		return node{"type": "object", "properties": properties}
	}
	return node{"type": "string"}
}

// mostItems is the length of a list, and mostEntries that of a map, that has no limit of its
// own. No manifest comes near them.
const (
	mostItems   = 1024
	mostEntries = 256
)

// limitLists puts a limit into every list and every map that has none: what reads an object
// before its schema does would decode a list of a million elements, and what is stored is
// kept in caches and judged by policies again and again.
func limitLists(s node) {
	switch {
	case s["type"] == "array" && s["maxItems"] == nil:
		s["maxItems"] = mostItems
	case s["additionalProperties"] != nil && s["maxProperties"] == nil:
		s["maxProperties"] = mostEntries
	}
	for _, below := range s.child("properties") {
		limitLists(object(below))
	}
	if elem, suffix := s.element(); suffix != "" {
		limitLists(elem)
	}
}
