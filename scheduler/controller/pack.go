package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// A template of many small values takes about five times the memory of its JSON. One that
// takes more than packedFrom bytes is kept as JSON, and decoded when its object is
// reconciled: so no object takes much more in the cache than in etcd.
const packedFrom = 16 << 10

// packed is the annotation of an object in the cache that has the template as JSON. The API
// server accepts no annotation of this name, so none that is stored has it.
const packed = "podvisor.io/template!"

// pack keeps a large template as JSON. Its volumes in claims stay, by which the object is
// indexed.
func pack(o metav1.Object, template **vmi.VirtualMachineInstanceTemplateSpec) {
	t := *template
	if t == nil || weight(reflect.ValueOf(t)) <= packedFrom {
		return
	}
	text, err := json.Marshal(t)
	if err != nil {
		return // it is kept as it is
	}
	*template = &vmi.VirtualMachineInstanceTemplateSpec{}
	for _, v := range t.Spec.Volumes {
		if v.Claim() != "" {
			(*template).Spec.Volumes = append((*template).Spec.Volumes, v)
		}
	}
	all := maps.Clone(o.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	all[packed] = string(text)
	o.SetAnnotations(all)
}

// unpacked is the template that was packed. Nil: none was.
func unpacked(o metav1.Object) *vmi.VirtualMachineInstanceTemplateSpec {
	text, ok := o.GetAnnotations()[packed]
	if !ok {
		return nil
	}
	t := &vmi.VirtualMachineInstanceTemplateSpec{}
	if err := json.Unmarshal([]byte(text), t); err != nil {
		panic(fmt.Sprintf("the template of %s is not the JSON that was made of it: %v", o.GetName(), err))
	}
	return t
}

// wholeVM is the VM with its template.
func wholeVM(v *vmi.VirtualMachine) *vmi.VirtualMachine {
	t := unpacked(v)
	if t == nil {
		return v
	}
	c := *v
	c.Spec.Template, c.Annotations = t, withoutPacked(v)
	return &c
}

// wholeSet is the set with its template.
func wholeSet(s *vmi.VirtualMachineInstanceReplicaSet) *vmi.VirtualMachineInstanceReplicaSet {
	t := unpacked(s)
	if t == nil {
		return s
	}
	c := *s
	c.Spec.Template, c.Annotations = t, withoutPacked(s)
	return &c
}

// wholePool is the pool with its template.
func wholePool(p *vmpool.VirtualMachinePool) *vmpool.VirtualMachinePool {
	t := unpacked(p)
	if t == nil {
		return p
	}
	c, of := *p, *p.Spec.VirtualMachineTemplate
	of.Spec.Template = t
	c.Spec.VirtualMachineTemplate, c.Annotations = &of, withoutPacked(p)
	return &c
}

func withoutPacked(o metav1.Object) map[string]string {
	all := maps.Clone(o.GetAnnotations())
	delete(all, packed)
	return all
}

// weight is about how many bytes of the heap a value points to.
func weight(v reflect.Value) int {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return 0 // it points to the zone, which all share
	}
	n := 0
	switch v.Kind() {
	case reflect.String:
		n = v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = int(v.Elem().Type().Size()) + weight(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += weight(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice {
			n = v.Cap() * int(v.Type().Elem().Size())
		}
		if isFlat(v.Type().Elem()) {
			return n
		}
		for i := range v.Len() {
			n += weight(v.Index(i))
		}
	case reflect.Map:
		n = v.Len() * int(v.Type().Key().Size()+v.Type().Elem().Size()) * 3 / 2 // some of its room is free
		for all := v.MapRange(); all.Next(); {
			n += weight(all.Key()) + weight(all.Value())
		}
	}
	return n
}

// isFlat says that values of the type point to nothing.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		return false
	}
	return true
}
