package serve

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/served"
)

// kinds are what admission does for the objects of each kind. Others pass.
var kinds = map[schema.GroupKind]kind{
	vmi.Kind.GroupKind():         of(served.Unserved(vmi.Kind.Kind), completeInstance, sameInstance, checkInstance),
	vmi.KubeVirts.GroupKind(): of(nil, completeKubeVirt, nil, checkKubeVirt),
}

// cluster is what is known of the cluster that an object is for.
type cluster struct {
	config.Config
	// kubevirts are all KubeVirts, or none while they are not known.
	kubevirts []*vmi.KubeVirt
}

// kind is what admission does for the objects of one kind, as JSON. The object
// before is empty if there was none.
type kind struct {
	// complete returns the object with what was left out, or what cannot be read
	// in it.
	complete func(c cluster, object, before []byte) (map[string]any, error)
	// check returns what is wrong with the object, or what cannot be read in it.
	check func(c cluster, object, before []byte) (field.ErrorList, error)
}

// of makes a kind of functions over its type, given what is known of the
// cluster, and of the fields that are not served. The old object is nil when an
// object is created.
//
// complete returns a completed copy. same says that the specs of two objects mean
// the same; it is nil for kinds whose spec may be changed. check returns what is
// wrong with an object that was completed.
func of[T any](unserved served.Fields, complete func(cluster, *T) *T, same func(c cluster, a, b *T) bool, check func(c cluster, v, old *T) field.ErrorList) kind {
	return kind{
		complete: func(c cluster, object, before []byte) (map[string]any, error) {
			v, old, err := decode[T](object, before)
			if err != nil {
				return nil, err
			}
			raw, err := tree(object)
			if err != nil {
				return nil, err
			}
			if same != nil && old != nil {
				if same(c, v, old) {
					err = restore(raw, before)
				}
				return raw, err
			}
			if err := fill(raw, v, complete(c, v), unserved); err != nil || same == nil {
				return raw, err
			}
			// What was written may stand in the way of a part, and the rest then mean
			// something else: a network without the interface that belongs to it.
			filled, err := valueOf[T](raw)
			if err == nil && !same(c, v, filled) {
				err = restore(raw, object)
			}
			return raw, err
		},
		check: func(c cluster, object, before []byte) (field.ErrorList, error) {
			v, old, err := decode[T](object, before)
			if err != nil {
				return nil, err
			}
			return check(c, complete(c, v), old), nil
		},
	}
}

func decode[T any](object, before []byte) (v, old *T, err error) {
	if err := json.Unmarshal(object, &v); err != nil {
		return nil, nil, err
	}
	if len(before) > 0 {
		err = json.Unmarshal(before, &old)
	}
	return v, old, err
}

// restore makes the raw object's spec the one that it was before.
func restore(raw map[string]any, before []byte) error {
	old, err := tree(before)
	if err != nil {
		return err
	}
	raw["spec"] = old["spec"]
	return nil
}

// valueOf is the object that was decoded, as a value of its type.
func valueOf[T any](object map[string]any) (v *T, err error) {
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	return v, err
}

// treeOf is the value as JSON, decoded.
func treeOf(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return tree(data)
}

// tree decodes JSON and keeps the digits of numbers.
func tree(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var t map[string]any
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	if t == nil {
		return nil, fmt.Errorf("read the object: it is null")
	}
	return t, nil
}
