package decode

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/podvisor/podvisor/internal/shorten"
	quantities "github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// kept are the parts of an object that are decoded on their own.
var kept = []string{"apiVersion", "kind", "metadata", "status"}

// Into decodes the JSON of an object into o, which is an empty object of its kind.
//
// If the Go type cannot hold the object, the error is a [vmi.UnreadableError], and
// o holds the metadata and what can be decoded of the status, and is marked: see
// [vmi.Unreadable]. If data is no JSON object, or has no name that can be decoded,
// the error is another one, and o is empty.
func Into(data []byte, o vmi.Object) error {
	var first error
	if !quantities.Suspicious(data) {
		if first = json.Unmarshal(data, o); first == nil {
			return nil
		}
		reflect.ValueOf(o).Elem().SetZero()
	}
	tree, err := object(data)
	if err != nil {
		return err
	}
	why := prune(tree, reflect.TypeOf(o).Elem(), first)
	if why == nil {
		why = hidden(data, o)
	}
	if why == nil {
		if err = json.Unmarshal(data, o); err == nil {
			return nil
		}
		why = &vmi.UnreadableError{Fields: []vmi.UnreadableField{{Message: shorten.Head(err.Error(), mostPath)}}}
		reflect.ValueOf(o).Elem().SetZero()
	}
	if err := partly(tree, o); err != nil {
		return errors.Join(err, why)
	}
	vmi.SetUnreadable(o, why)
	return why
}

// hidden are the costly quantities that the tree does not have: of a name that is
// there twice, or in other letters, the decoder reads each.
func hidden(data []byte, o vmi.Object) *vmi.UnreadableError {
	l := quantities.FaultsIn(o, data)
	if len(l) == 0 {
		return nil
	}
	why := &vmi.UnreadableError{}
	for _, e := range l {
		why.Fields = append(why.Fields, vmi.UnreadableField{Path: e.Field, Message: shorten.Head(e.Detail, mostPath)})
	}
	return why
}

// object decodes a JSON object and keeps the digits of its numbers.
func object(data []byte) (map[string]any, error) {
	d := stdjson.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if tree == nil {
		return nil, errors.New("the object is null")
	}
	return tree, nil
}

// partly decodes the parts of the tree that are kept. Nothing in it that could not
// be decoded is left.
func partly(tree map[string]any, o vmi.Object) error {
	part := map[string]any{}
	for _, name := range kept {
		if v, ok := tree[name]; ok {
			part[name] = v
		}
	}
	err := convert(part, o)
	if err != nil {
		delete(part, "status")
		reflect.ValueOf(o).Elem().SetZero()
		err = convert(part, o)
	}
	if err == nil && o.GetName() == "" {
		err = errors.New("the object has no name")
	}
	if err != nil {
		reflect.ValueOf(o).Elem().SetZero()
	}
	return err
}

// convert decodes into to what from is as JSON.
func convert(from, to any) error {
	data, err := stdjson.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}
