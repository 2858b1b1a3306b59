package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi/kinds"
)

// document is an object as it is written.
type document struct {
	apiVersion, kind, namespace, name string

	data []byte
	// fields is the object as data says it, with values of wrong types.
	fields map[string]any
	// generated says that the name is only the beginning of one.
	generated bool
	// unnamed says that there is no name, not even one of a wrong type.
	unnamed bool
	// fault is why it is no object at all.
	fault string
}

// documents splits a manifest: YAML separated by ---, or JSON one after the other.
func documents(data []byte) ([]document, error) {
	var out []document
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, values(part)...)
	}
}

// values are the objects of one part. Only JSON has several.
func values(part []byte) []document {
	if !bytes.HasPrefix(bytes.TrimSpace(part), []byte("{")) {
		return header(part)
	}
	var out []document
	decoder := json.NewDecoder(bytes.NewReader(part))
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			// YAML may begin like JSON.
			return header(part)
		}
		out = append(out, header(raw)...)
	}
}

// header reads kind and name of an object. Nothing but comments is no object.
func header(data []byte) []document {
	var object any
	if err := yaml.Unmarshal(data, &object); err != nil {
		return []document{{fault: err.Error()}}
	}
	if object == nil {
		return nil
	}
	fields, ok := object.(map[string]any)
	if !ok {
		return []document{{fault: "must be an object with apiVersion and kind"}}
	}
	// A wrong type is a fault of the object, once its kind is known.
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	meta, _ := fields["metadata"].(map[string]any)
	d := document{
		apiVersion: text(fields, "apiVersion"), kind: text(fields, "kind"), namespace: text(meta, "namespace"), name: text(meta, "name"),
		data: data, fields: fields,
	}
	if d.name == "" {
		d.name = text(meta, "generateName")
		d.generated = d.name != ""
	}
	name := meta["name"]
	d.unnamed = d.name == "" && (name == nil || name == "")
	if d.kind == "" || d.apiVersion == "" {
		d.fault = "apiVersion and kind must be set"
	}
	return []document{d}
}

// row is the row of the object's kind. It is false if there is none.
func (d document) row() (kinds.Kind, bool) { return d.rowOf(d.kind) }

func (d document) rowOf(kind string) (kinds.Kind, bool) {
	return kinds.Find(schema.FromAPIVersionAndKind(d.apiVersion, kind).GroupKind())
}

// list says that the document is a list of objects.
func (d document) list() bool {
	item, is := strings.CutSuffix(d.kind, "List")
	_, typed := d.rowOf(item)
	return d.fault == "" && is && (item == "" || typed)
}

func (d document) items() []document {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(d.data, &list); err != nil {
		return []document{{kind: d.kind, fault: err.Error()}}
	}
	var out []document
	for _, item := range list.Items {
		// Items of a typed list need not say what they are.
		if typed := strings.TrimSuffix(d.kind, "List"); typed != "" {
			item = withKind(item, d.apiVersion, typed)
		}
		out = append(out, header(item)...)
	}
	return out
}

func withKind(item json.RawMessage, apiVersion, kind string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil || fields["kind"] != nil || fields["apiVersion"] != nil {
		return item
	}
	fields["apiVersion"], _ = json.Marshal(apiVersion)
	fields["kind"], _ = json.Marshal(kind)
	out, err := json.Marshal(fields)
	if err != nil {
		return item
	}
	return out
}
