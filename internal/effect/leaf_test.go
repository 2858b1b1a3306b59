package effect

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
)

// leaf is a field that has no fields itself, with a path as package served writes
// it. A struct without fields is one too: its presence is what it says.
type leaf struct {
	path string
	typ  reflect.Type
}

// values are types with a form of their own in JSON.
var values = []reflect.Type{reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]()}

// leaves are the served ones of the spec.
func leaves() []leaf {
	hidden := map[string]bool{}
	for _, f := range served.Unserved(vmi.VirtualMachineInstances.Kind) {
		if f.Value == "" {
			hidden[f.Path] = true
		}
	}
	w := walk{hidden: hidden}
	w.below("spec", reflect.TypeFor[vmi.VirtualMachineInstanceSpec]())
	return w.found
}

type walk struct {
	hidden map[string]bool
	found  []leaf
}

// below adds the leaves of a type, which is at the path. It returns whether there
// is any.
func (w *walk) below(path string, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case slices.Contains(values, t):
		w.found = append(w.found, leaf{path, t})
	case t.Kind() == reflect.Struct:
		if before := len(w.found); w.fields(path, t) == before {
			w.found = append(w.found, leaf{path, t})
		}
	case t.Kind() == reflect.Slice:
		w.below(path+"[]", t.Elem())
	case t.Kind() == reflect.Map:
		w.below(path+"{}", t.Elem())
	default:
		w.found = append(w.found, leaf{path, t})
	}
}

// fields adds the leaves of a struct's fields and returns how many leaves there
// are then.
func (w *walk) fields(path string, t reflect.Type) int {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			w.fields(path, embedded)
		case name != "" && name != "-" && !w.hidden[path+"."+name]:
			w.below(path+"."+name, f.Type)
		}
	}
	return len(w.found)
}
