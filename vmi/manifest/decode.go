package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/served"
)

// unknownField is how the strict decoder reports a field that is not in the type,
// and one that is there twice.
var unknownField = regexp.MustCompile(`^(unknown|duplicate) field "(.*)"$`)

// ofTemplate are the fields of the metadata of templates. The API server keeps those that
// it does not know: programs of other versions of Kubernetes write them.
var ofTemplate = regexp.MustCompile(`^spec\.(template|dataVolumeTemplates\[\d+\])\.metadata\.`)

// repeatedKey is how the YAML decoder reports a field that is there twice.
var repeatedKey = regexp.MustCompile(`line (\d+): key "(.*)" already set in map`)

// decode reads an object strictly. Every value of a wrong type and every field that
// is not in the type is a fault, and the rest of the object is read nevertheless.
func decode(d document, into vmi.Object) []Fault {
	c := correction{kind: reflect.TypeOf(into).Elem()}
	data := d.data
	if c.decodes(d.fields) != nil {
		right, _ := c.value(nil, d.fields, func(v any) any { return v })
		var err error
		if data, err = json.Marshal(right); err != nil {
			return append(c.faults, Fault{Type: field.ErrorTypeTypeInvalid, Message: err.Error()})
		}
		if _, err := yaml.YAMLToJSONStrict(d.data); err != nil {
			for text := range strings.Lines(err.Error()) {
				if repeatedKey.MatchString(text) {
					c.faults = append(c.faults, strictFault(text, nil))
				}
			}
		}
	}
	scheme := runtime.NewScheme()
	for _, d := range kinds.Definitions() {
		d.AddToScheme(scheme)
	}
	s := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Yaml: true, Strict: true})
	_, _, err := s.Decode(data, nil, into)
	strict, ok := runtime.AsStrictDecodingError(err)
	switch {
	case err == nil:
		return c.faults
	case !ok:
		return append(c.faults, Fault{Type: field.ErrorTypeTypeInvalid, Message: err.Error()})
	}
	reasons := map[string]string{}
	for _, f := range served.Untyped(d.kind).In(d.fields) {
		reasons[f.Path] = "KubeVirt has this field and Podvisor does not: " + f.Why
	}
	former := served.FormersIn(d.kind, d.fields)
	for _, f := range former {
		reasons[f.Path] = f.Why + ": this is a field of before " + vmi.GroupVersion.String()
	}
	found := map[string]bool{}
	for _, e := range strict.Errors() {
		f := strictFault(e.Error(), reasons)
		if ofTemplate.MatchString(f.Field) && f.Type != field.ErrorTypeDuplicate {
			continue
		}
		c.faults, found[f.Field] = append(c.faults, f), true
	}
	for _, f := range former {
		if !found[f.Path] { // it is below another one
			c.faults = append(c.faults, Fault{f.Path, field.ErrorTypeInvalid, reasons[f.Path]})
		}
	}
	return c.faults
}

// strictFault is the fault that the strict decoder reports with this text.
func strictFault(text string, reasons map[string]string) Fault {
	if m := repeatedKey.FindStringSubmatch(text); m != nil {
		return Fault{Type: field.ErrorTypeDuplicate, Message: fmt.Sprintf("line %s of the document has a field %q that is there before: leave one out", m[1], m[2])}
	}
	m := unknownField.FindStringSubmatch(text)
	switch {
	case m == nil:
		return Fault{Type: field.ErrorTypeInvalid, Message: text}
	case m[1] == "duplicate":
		return Fault{m[2], field.ErrorTypeDuplicate, "the field is there twice: leave one out"}
	case reasons[m[2]] != "":
		return Fault{m[2], field.ErrorTypeInvalid, reasons[m[2]]}
	}
	return Fault{m[2], field.ErrorTypeInvalid, fmt.Sprintf("there is no field %q in this API: remove it, or look for its right name with kubectl explain", m[2])}
}
