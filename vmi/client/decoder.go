package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/decode"
)

// negotiated are the serializers of a kind, with decoders that decode object by
// object.
type negotiated struct {
	runtime.NegotiatedSerializer
	definition vmi.Definition
	head       []byte       // of objects of the kind, as an API server writes them
	object     reflect.Type // of objects of the kind
}

func newNegotiated(s runtime.NegotiatedSerializer, d vmi.Definition) negotiated {
	head := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, d.GroupVersion(), d.Kind)
	return negotiated{s, d, head, reflect.TypeOf(d.New())}
}

func (n negotiated) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return decoder{n.NegotiatedSerializer.DecoderToVersion(d, gv), n.definition, n.head, n.object}
}

// decoder decodes answers and events. An object that the Go type cannot hold is
// decoded in part and marked, see [vmi.Unreadable]: one such object must not keep a
// client from all others.
type decoder struct {
	runtime.Decoder
	definition vmi.Definition
	head       []byte
	of         reflect.Type
}

func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	// Most are known by their beginning, without a first look at the whole.
	if bytes.HasPrefix(data, d.head) {
		gvk := d.definition.GroupVersionKind
		out, err := d.object(data, into)
		return out, &gvk, err
	}
	var first error
	if !quantity.Suspicious(data) {
		out, gvk, err := d.Decoder.Decode(data, defaults, into)
		if err == nil {
			return out, gvk, nil
		}
		first = err
	}
	var t metav1.TypeMeta
	if json.Unmarshal(data, &t) == nil {
		gvk := t.GroupVersionKind()
		switch gvk {
		case d.definition.GroupVersionKind:
			out, err := d.object(data, into)
			return out, &gvk, err
		case d.definition.GroupVersion().WithKind(d.definition.Kind + "List"):
			out, err := d.list(data, into)
			return out, &gvk, err
		}
	}
	if first != nil {
		return nil, nil, first
	}
	return d.Decoder.Decode(data, defaults, into) // of another kind, as a Status
}

// object decodes one object. As a client's decoder does, it leaves the kind out.
func (d decoder) object(data []byte, into runtime.Object) (vmi.Object, error) {
	o, ok := into.(vmi.Object)
	if ok && reflect.TypeOf(o) == d.of {
		reflect.ValueOf(o).Elem().SetZero() // what failed before may have left a part
	} else {
		o = d.definition.New()
	}
	if err := decode.Into(data, o); err != nil && vmi.Unreadable(o) == nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return o, nil
}

// list decodes a list, each of its objects alone.
func (d decoder) list(data []byte, into runtime.Object) (runtime.Object, error) {
	var parts struct {
		Metadata json.RawMessage   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, err
	}
	l := d.definition.NewList()
	if reflect.TypeOf(into) == reflect.TypeOf(l) {
		l = into
		reflect.ValueOf(l).Elem().SetZero()
	}
	head, err := json.Marshal(map[string]any{"metadata": parts.Metadata})
	if err == nil {
		err = json.Unmarshal(head, l)
	}
	if err != nil {
		return nil, fmt.Errorf("decode the metadata of a list of %s: %w", d.definition.Plural, err)
	}
	objects := make([]runtime.Object, len(parts.Items))
	for i, item := range parts.Items {
		o := d.definition.New()
		if err := decode.Into(item, o); err != nil && vmi.Unreadable(o) == nil {
			return nil, fmt.Errorf("decode object %d of a list of %s: %w", i, d.definition.Plural, err)
		}
		objects[i] = o
	}
	if len(objects) == 0 {
		return l, nil
	}
	return l, meta.SetList(l, objects)
}

// readable is the error of an object that could not be decoded whole, or nil.
func readable(kind string, o vmi.Object) error {
	if why := vmi.Unreadable(o); why != nil {
		return fmt.Errorf("decode %s %s: %w", kind, keyOf(o), why)
	}
	return nil
}

// writable is why the object must not be written as a whole, or nil.
func writable(kind string, o vmi.Object) error {
	if why := vmi.Unreadable(o); why != nil {
		return fmt.Errorf("write %s %s, of which a part is known only (use Patch): %w", kind, keyOf(o), why)
	}
	return nil
}

// keyOf is the namespace and the name of the object.
func keyOf(o vmi.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// mostErrors is how many objects the error of a list names.
const mostErrors = 10

// listReadable is the error of a list that holds objects which could not be decoded
// whole, or nil.
func listReadable(kind string, l runtime.Object) error {
	var all []error
	more := 0
	err := meta.EachListItem(l, func(i runtime.Object) error {
		o, ok := i.(vmi.Object)
		if !ok {
			return nil
		}
		switch err := readable(kind, o); {
		case err == nil:
		case len(all) == mostErrors:
			more++
		default:
			all = append(all, err)
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		return err
	}
	if more > 0 {
		all = append(all, fmt.Errorf("and %d more: %w", more, vmi.ErrUnreadable))
	}
	return errors.Join(all...)
}
