package main

import (
	"encoding"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// holder compares a schema with the Go type that its objects are decoded to, and
// says what passes the schema and is no value of the type.
type holder struct {
	t *testing.T
	// leaves counts what was compared, by what it is.
	leaves map[string]int
}

// interval is what an integer can be.
type interval struct{ min, max float64 }

// intervals are those of the integers of Go. The API server has none above those of
// int64.
var intervals = map[reflect.Kind]interval{
	reflect.Int: {math.MinInt64, math.MaxInt64}, reflect.Int8: {math.MinInt8, math.MaxInt8}, reflect.Int16: {math.MinInt16, math.MaxInt16},
	reflect.Int32: {math.MinInt32, math.MaxInt32}, reflect.Int64: {math.MinInt64, math.MaxInt64},
	reflect.Uint: {0, math.MaxInt64}, reflect.Uint8: {0, math.MaxUint8}, reflect.Uint16: {0, math.MaxUint16}, reflect.Uint32: {0, math.MaxUint32}, reflect.Uint64: {0, math.MaxInt64},
}

// intervalOf are the integers that pass the schema. The API server takes an integer
// without a format for one of 64 bits.
func intervalOf(s node) interval {
	i := interval{math.MinInt64, math.MaxInt64}
	if s["format"] == "int32" {
		i = interval{math.MinInt32, math.MaxInt32}
	}
	if v, ok := s["minimum"].(float64); ok {
		i.min = max(i.min, v)
	}
	if v, ok := s["maximum"].(float64); ok {
		i.max = min(i.max, v)
	}
	return i
}

// ofKubernetes says that seconds are of a type of Kubernetes, which no code here reads: the API
// server judges them in the pod or the claim.
func ofKubernetes(at string) bool {
	return strings.HasSuffix(at, ".tolerationSeconds") || strings.HasSuffix(at, ".deletionGracePeriodSeconds")
}

func (h *holder) leaf(what string) { h.leaves[what]++ }

// hold demands that what passes the schema is a value of the type.
func (h *holder) hold(at string, s node, t reflect.Type) {
	require.NotNil(h.t, s, at)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if h.special(at, s, t) {
		return
	}
	for _, i := range []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()} {
		require.False(h.t, reflect.PointerTo(t).Implements(i), "%s: %s decodes itself: say here and in limit.go what it can hold", at, t)
	}
	switch limits, integer := intervals[t.Kind()]; {
	case integer:
		require.Equal(h.t, "integer", s["type"], at)
		has := intervalOf(s)
		require.GreaterOrEqual(h.t, has.min, limits.min, "%s: minimum of %s", at, t)
		require.LessOrEqual(h.t, has.max, limits.max, "%s: maximum of %s", at, t)
		if strings.HasSuffix(at, "Seconds") && !ofKubernetes(at) {
			require.LessOrEqual(h.t, has.max, float64(100*vmi.MostSeconds), "%s: seconds become nanoseconds, and need a limit", at)
		}
		h.leaf(t.Kind().String())
	case t.Kind() == reflect.Float32:
		require.Equal(h.t, "number float", describe(s), at)
		h.leaf("float32")
	case t.Kind() == reflect.Float64, t.Kind() == reflect.String, t.Kind() == reflect.Bool:
		require.Equal(h.t, map[reflect.Kind]string{reflect.Float64: "number", reflect.String: "string", reflect.Bool: "boolean"}[t.Kind()], s["type"], at)
		h.leaf(t.Kind().String())
	default:
		h.compound(at, s, t)
	}
}

// special is for the types that decode themselves. It says whether t is one.
func (h *holder) special(at string, s node, t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		require.Equal(h.t, true, s["x-kubernetes-int-or-string"], at)
		require.Equal(h.t, quantity.Pattern, s["pattern"], at)
		require.EqualValues(h.t, quantity.MaxLength, s["maxLength"], at)
		require.Equal(h.t, interval{-quantity.Most, quantity.Most}, intervalOf(s), at)
	case reflect.TypeFor[intstr.IntOrString]():
		require.Equal(h.t, true, s["x-kubernetes-int-or-string"], at)
		require.Equal(h.t, intervals[reflect.Int32], intervalOf(s), at)
	case reflect.TypeFor[metav1.Duration]():
		require.Equal(h.t, "string", s["type"], at)
		require.Equal(h.t, `^([0-9]{1,6}(\.[0-9]+)?(ms|s|m|h))+$`, s["pattern"], at)
		require.EqualValues(h.t, 16, s["maxLength"], "%s: more hours overflow", at)
	case reflect.TypeFor[metav1.Time]():
		require.Equal(h.t, "string date-time", describe(s), at)
		require.Equal(h.t, dateTime, s["pattern"], at)
	case reflect.TypeFor[metav1.FieldsV1]():
		require.Equal(h.t, "object", s["type"], at)
	default:
		return false
	}
	h.leaf(t.Name())
	return true
}

// isFormer says that the schema is of a field of before v1, which no object may have.
func isFormer(s node) bool {
	rules, _ := s[validations].([]any)
	return len(rules) == 1 && object(rules[0])["rule"] == "false"
}

func (h *holder) compound(at string, s node, t reflect.Type) {
	switch t.Kind() {
	case reflect.Slice:
		require.NotEqual(h.t, reflect.Uint8, t.Elem().Kind(), "%s: bytes are base64: say here and in limit.go what they can hold", at)
		require.Equal(h.t, "array", s["type"], at)
		require.NotNil(h.t, s["maxItems"], "%s: a list needs a limit", at)
		h.hold(at+"[]", s.child("items"), t.Elem())
	case reflect.Map:
		require.Equal(h.t, "object", s["type"], at)
		require.Equal(h.t, reflect.String, t.Key().Kind(), at)
		require.NotNil(h.t, s["maxProperties"], "%s: a map needs a limit", at)
		h.hold(at+"{}", s.child("additionalProperties"), t.Elem())
	case reflect.Struct:
		require.Equal(h.t, "object", s["type"], at)
		require.Nil(h.t, s["additionalProperties"], at)
		fields := map[string]reflect.Type{}
		fieldsOf(t, fields)
		if s["x-kubernetes-preserve-unknown-fields"] == true {
			for name := range fields {
				require.NotNil(h.t, s.child("properties").child(name), "%s: all fields of %s pass", at, name)
			}
		}
		for name, below := range s.child("properties") {
			if isFormer(object(below)) {
				continue
			}
			require.NotNil(h.t, fields[name], "%s: %s has no field %s", at, t, name)
			h.hold(at+"."+name, object(below), fields[name])
		}
	default:
		h.t.Errorf("%s: the schema says nothing of %s", at, t)
	}
}

// fieldsOf collects the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type, into map[string]reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			into[name] = f.Type
		} else if f.Anonymous {
			fieldsOf(f.Type, into)
		}
	}
}

// holdAll compares the definitions with the types of their kinds. The metadata of an
// object itself is the API server's.
func holdAll(t *testing.T, all []*definition) map[string]int {
	t.Helper()
	h := holder{t: t, leaves: map[string]int{}}
	for _, d := range all {
		for _, k := range kinds.Definitions() {
			if k.Kind != d.kind() {
				continue
			}
			s := d.schema()
			delete(s.child("properties"), "metadata")
			h.hold(k.Kind, s, reflect.TypeOf(k.New()))
		}
	}
	t.Log(h.leaves)
	return h.leaves
}

func TestATypeHoldsWhatItsServedSchemaAllows(t *testing.T) {
	files, err := filepath.Glob("../../" + crds + "/*.yaml")
	require.NoError(t, err)
	var all []*definition
	for _, f := range files {
		d, err := readDefinition(f)
		require.NoError(t, err)
		all = append(all, d)
	}
	leaves := holdAll(t, all)
	for _, what := range []string{"Quantity", "Time", "uint", "uint32", "int32", "int64", "float32"} {
		require.NotZero(t, leaves[what], what)
	}
}

// Of every kind, also of those and of the fields that are not served yet.
func TestATypeHoldsWhatItsWholeSchemaAllows(t *testing.T) {
	m, all := generate(t)
	m.serveAll()
	dir := t.TempDir()
	_, err := writeServed(m, all, dir)
	require.NoError(t, err)
	require.Len(t, all, len(kinds.Definitions()))
	for i, d := range all {
		all[i], err = readDefinition(filepath.Join(dir, d.file))
		require.NoError(t, err)
	}
	require.NotZero(t, holdAll(t, all)["IntOrString"])
	for _, d := range all {
		if d.kind() == instanceKind {
			size := d.schema().at("spec", "domain", "memory", "hugepages", "pageSize")
			require.Equal(t, quantity.Pattern, size["pattern"], "a string that is read as a quantity")
			require.EqualValues(t, quantity.MaxLength, size["maxLength"])
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, len(all))
}

// at is the schema of the field at the path.
func (n node) at(path ...string) node {
	for _, name := range path {
		n = n.child("properties").child(name)
	}
	return n
}

func TestLimitsThatAreNarrowerStay(t *testing.T) {
	s := node{"type": "integer", "format": "int32", "minimum": 1.0}
	limitNumber(s, "uint32")
	require.Equal(t, node{"type": "integer", "minimum": 1.0, "maximum": int64(math.MaxUint32)}, s)
	s = node{"type": "integer", "maximum": 7.0}
	limitNumber(s, "uint")
	require.Equal(t, node{"type": "integer", "minimum": int64(0), "maximum": 7.0}, s)
	s = node{"type": "integer", "format": "int32"}
	limitNumber(s, "int32")
	require.Equal(t, node{"type": "integer", "format": "int32"}, s, "the API server checks the format")
}
