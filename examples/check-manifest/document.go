package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// document is an object as it is written.
type document struct {
	APIVersion, Kind, Namespace, Name string

	data []byte
	// fields is the object as data says it, with what has a wrong type.
	fields map[string]any
	// generated says that the name is only the beginning of one.
	generated bool
	// unnamed says that there is no name, not even one of a wrong type.
	unnamed bool
	// fault is why it is no object at all.
	fault string
}

// String is kind/name, as far as they are known.
func (d document) String() string {
	kind, name := d.Kind, d.Name
	if kind == "" {
		kind = "unknown"
	}
	if name == "" {
		name = "unnamed"
	}
	return kind + "/" + name
}

// documents splits a file: YAML separated by ---, or JSON one after the other.
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

// header reads what an object says of itself. Nothing but comments is no object.
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
	// What has a wrong type is a fault of the object, once its kind is known.
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	meta, _ := fields["metadata"].(map[string]any)
	d := document{APIVersion: text(fields, "apiVersion"), Kind: text(fields, "kind"), Namespace: text(meta, "namespace"), Name: text(meta, "name"), data: data, fields: fields}
	if d.Name == "" {
		d.Name = text(meta, "generateName")
		d.generated = d.Name != ""
	}
	name := meta["name"]
	d.unnamed = d.Name == "" && (name == nil || name == "")
	if d.Kind == "" || d.APIVersion == "" {
		d.fault = "apiVersion and kind must be set"
	}
	return []document{d}
}

func (d document) ours() bool {
	return kinds[d.Kind] != nil && strings.HasPrefix(d.APIVersion, vmi.GroupVersion.Group+"/")
}

// list says whether the document is a list of objects.
func (d document) list() bool {
	item, is := strings.CutSuffix(d.Kind, "List")
	return is && (item == "" || kinds[item] != nil)
}

func (d document) items() []document {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(d.data, &list); err != nil {
		return []document{{Kind: d.Kind, fault: err.Error()}}
	}
	var out []document
	for _, item := range list.Items {
		// Items of a typed list need not say what they are.
		if typed := strings.TrimSuffix(d.Kind, "List"); typed != "" {
			item = withKind(item, d.APIVersion, typed)
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

// fault is one line of the output without its object.
type fault struct {
	Field   string
	Type    field.ErrorType
	Message string
}

// unknownField is how the strict decoder reports a field that there is not, and
// one that is there twice.
var unknownField = regexp.MustCompile(`^(unknown|duplicate) field "(.*)"$`)

// repeatedKey is how the YAML decoder reports a field that is there twice.
var repeatedKey = regexp.MustCompile(`line (\d+): key "(.*)" already set in map`)

// decode reads an object strictly. Every field that there is not is a fault, and
// the rest of the object can be used nevertheless.
func decode(data []byte, into runtime.Object) (faults []fault, usable bool) {
	scheme := runtime.NewScheme()
	if err := vmi.AddToScheme(scheme); err != nil {
		return []fault{{Type: field.ErrorTypeInternal, Message: err.Error()}}, false
	}
	s := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Yaml: true, Strict: true})
	_, _, err := s.Decode(data, nil, into)
	strict, ok := runtime.AsStrictDecodingError(err)
	switch {
	case err == nil:
		return nil, true
	case !ok:
		return wrongTypes(data, into, err), false
	}
	for _, e := range strict.Errors() {
		m := unknownField.FindStringSubmatch(e.Error())
		twice := repeatedKey.FindStringSubmatch(e.Error())
		switch {
		case twice != nil:
			faults = append(faults, fault{Type: field.ErrorTypeDuplicate, Message: fmt.Sprintf("line %s of the document has a field %q that is there before: leave one out", twice[1], twice[2])})
		case m == nil:
			faults = append(faults, fault{Type: field.ErrorTypeInvalid, Message: e.Error()})
		case m[1] == "duplicate":
			faults = append(faults, fault{m[2], field.ErrorTypeDuplicate, "the field is there twice: leave one out"})
		default:
			faults = append(faults, fault{m[2], field.ErrorTypeInvalid, fmt.Sprintf("there is no field %q in this API: remove it, or look for its right name with kubectl explain", m[2])})
		}
	}
	return faults, true
}
