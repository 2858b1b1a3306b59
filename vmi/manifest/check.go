package manifest

import (
	"fmt"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/vmi/schema"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/validate"
)

// Object is an object of a manifest with what was found. APIVersion, kind and name
// are as they are written, or empty if they are not.
type Object struct {
	APIVersion, Kind, Name string
	// Faults are what an API server with Podvisor refuses.
	Faults []Fault
	// Unserved are the fields and values that are right and that the API server does
	// not accept yet, with the reasons. One without a path is the whole object: its
	// kind is not served.
	Unserved served.Fields
	// Notes say why the object is not checked.
	Notes []string
	// Complete is the object with defaults. It is nil if the object is not checked,
	// or has a field that is not in its type. The template of a VM has what its instance
	// type and its preference say, if these are known, and the VM then names neither.
	Complete vmi.Object
}

// Fault is something that is wrong with an object.
type Fault struct {
	// Field is its path, as in spec.volumes[0].name. It is empty for a fault that no
	// single field can correct.
	Field   string
	Type    field.ErrorType
	Message string
}

// Check returns the objects of a manifest in their order: YAML documents, JSON
// documents, or lists of objects. Each object of a kind of the table in vmi/kinds
// is decoded strictly, completed and validated, as a cluster c does when a user
// creates it; the others have a note. UUIDs and serial numbers, which a cluster
// derives from the object's UID or chooses, are derived from namespace and name.
//
// A VM is judged with the instance type and the preference that it or its claim names, if
// they are in the manifest or among those given, as [Sizes] returns them of other manifests.
// Otherwise it has a note.
//
// The error says that data cannot be split into documents.
func Check(data []byte, c kinds.Cluster, sizes ...vmi.Object) ([]Object, error) {
	docs, err := documents(data)
	if err != nil {
		return nil, err
	}
	known := lookup(append(sizesIn(docs), sizes...))
	var out []Object
	for _, d := range docs {
		out = append(out, d.check(c, known)...)
	}
	return out, nil
}

// Configuration returns the one KubeVirt of a manifest, which may have other
// objects. It is not complete if it has faults.
func Configuration(data []byte) (Object, error) {
	all, err := Check(data, kinds.Cluster{})
	if err != nil {
		return Object{}, err
	}
	var found []Object
	for _, o := range all {
		if gvk.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind() == vmi.KubeVirts.GroupKind() {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return Object{}, fmt.Errorf("read the configuration: must have one object of the kind KubeVirt, has %d", len(found))
	}
	return found[0], nil
}

// String is kind/name, as far as they are known.
func (o Object) String() string {
	kind, name := o.Kind, o.Name
	if kind == "" {
		kind = "unknown"
	}
	if name == "" {
		name = "unnamed"
	}
	return kind + "/" + name
}

// YAML is the complete object as YAML.
func (o Object) YAML() ([]byte, error) {
	text, err := yaml.Marshal(o.Complete)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o, err)
	}
	return text, nil
}

// String is the fault in one line: field if it has one, type and message.
func (f Fault) String() string {
	text := string(f.Type) + ": " + strings.Join(strings.Fields(f.Message), " ")
	if f.Field == "" {
		return text
	}
	return f.Field + ": " + text
}

// check checks one object, or all objects of a list.
func (d document) check(c kinds.Cluster, known instancetype.Lookup) []Object {
	if d.list() {
		var out []Object
		for _, item := range d.items() {
			out = append(out, item.check(c, known)...)
		}
		return out
	}
	o := Object{APIVersion: d.apiVersion, Kind: d.kind, Name: d.name}
	d, o.Faults = d.renewed()
	k, ok := d.row()
	switch {
	case d.fault != "":
		o.Faults = []Fault{{Type: field.ErrorTypeInvalid, Message: d.fault}}
	case !ok && len(o.Faults) > 0:
	case !ok && d.unknown():
		o.Faults = []Fault{{"kind", field.ErrorTypeNotSupported, d.apiVersion + " has no kind " + d.kind}}
	case !ok:
		o.Notes = []string{d.skipped()}
	case d.apiVersion != k.GroupVersion().String():
		o.Faults = []Fault{{"apiVersion", field.ErrorTypeNotSupported, d.apiVersion + " is not served: write " + k.GroupVersion().String()}}
	default:
		o.examine(d, k, c, known)
	}
	return []Object{o}
}

// examine checks an object of the kind.
func (o *Object) examine(d document, k kinds.Kind, c kinds.Cluster, known instancetype.Lookup) {
	o.Unserved = unserved(d, k)
	v := k.New()
	decoded := decode(d, v)
	o.Faults = slices.Concat(o.Faults, d.nameFaults(), decoded, metadataFaults(v))
	c.Defaults.UUID = defaults.UUID(types.UID(d.namespace + "/" + d.name))
	c.Defaults.Serial = string(defaults.UUID("serial of " + types.UID(d.namespace+"/"+d.name)))
	o.name(v, k, d.namespace, known, &c)
	done := k.Complete(v, c)
	all := k.Faults(done, c)
	all = slices.DeleteFunc(all, func(e *field.Error) bool { return slices.Contains(o.Faults, listed(field.ErrorList{e})[0]) })
	all = append(all, validate.Schema(k.Kind, stored(d, k, v, done), all)...)
	v = expanded(done, k, c)
	for _, f := range listed(all) {
		if !follows(f, decoded) {
			o.Faults = append(o.Faults, f)
		}
	}
	if len(decoded) == 0 {
		o.Complete = v
	}
}

// stored is the object as the API server judges it: as it is written, with the defaults
// that the webhook adds. v is the object decoded, and done is v complete.
func stored(d document, k kinds.Kind, v, done vmi.Object) map[string]any {
	raw := schema.Completed(k.Kind, d.fields)
	if k.Status {
		delete(raw, "status") // it is not stored
	}
	filled, err := k.Unserved().Filled(raw, v, done)
	if err != nil {
		panic(fmt.Sprintf("%T is not JSON: %v", v, err)) // its types are made of what JSON has
	}
	return filled
}

// unserved are the fields of the object that are not served yet. What is refused is
// a fault. A kind that is not served has those of its template too.
func unserved(d document, k kinds.Kind) served.Fields {
	all := k.Unserved().In(d.fields)
	if t, ok := template(d.fields); ok && !k.Served() {
		for _, f := range served.Unserved(vmi.VirtualMachineInstances.Kind).In(map[string]any{"spec": t}) {
			f.Path = "spec.template." + f.Path
			all = append(all, f)
		}
	}
	return slices.DeleteFunc(all, func(f served.Field) bool { return f.Refused })
}

// template is the spec of the VMIs that are made of the object, as it is written.
func template(object map[string]any) (any, bool) {
	spec, _ := object["spec"].(map[string]any)
	t, _ := spec["template"].(map[string]any)
	s, ok := t["spec"]
	return s, ok
}

// follows says that the fault may be there only because a value was not decoded.
func follows(f Fault, decoded []Fault) bool {
	return slices.ContainsFunc(decoded, func(d Fault) bool { return validate.Follows(f.Field, d.Field) })
}

// skipped is why an object is not checked.
func (d document) skipped() string {
	note := "not of Podvisor's kinds, not checked"
	gv, err := gvk.ParseGroupVersion(d.apiVersion)
	if err != nil || gv.Group != vmi.GroupName && !strings.HasSuffix(gv.Group, "."+vmi.GroupName) {
		return note
	}
	if why, ok := served.UntypedKind(d.kind); ok {
		note += ": " + why
	}
	return note
}

// unknown says that the kind is none of KubeVirt's, and said to be of its first group.
func (d document) unknown() bool {
	_, untyped := served.UntypedKind(d.kind)
	return gvk.FromAPIVersionAndKind(d.apiVersion, d.kind).Group == vmi.GroupName && !untyped
}

// nameFaults are the faults of the name, which an API server checks before
// anything else.
func (d document) nameFaults() []Fault {
	at := field.NewPath("metadata", "name")
	if d.unnamed {
		return listed(field.ErrorList{field.Required(at, "name the object, or let the cluster choose a name that begins with metadata.generateName")})
	}
	if d.name == "" {
		return nil
	}
	var l field.ErrorList
	// What follows generateName is a letter or a digit.
	for _, m := range apivalidation.NameIsDNSSubdomain(d.name, d.generated) {
		l = append(l, field.Invalid(at, d.name, m))
	}
	return listed(l)
}

// metadataFaults are the faults of the rest of the metadata, which an API server checks of
// all objects.
func metadataFaults(v vmi.Object) []Fault {
	at := field.NewPath("metadata")
	l := metav1validation.ValidateLabels(v.GetLabels(), at.Child("labels"))
	l = append(l, apivalidation.ValidateAnnotations(v.GetAnnotations(), at.Child("annotations"))...)
	l = append(l, apivalidation.ValidateOwnerReferences(v.GetOwnerReferences(), at.Child("ownerReferences"))...)
	l = append(l, apivalidation.ValidateFinalizers(v.GetFinalizers(), at.Child("finalizers"))...)
	return listed(l)
}

func listed(l field.ErrorList) []Fault {
	var faults []Fault
	for _, e := range l {
		faults = append(faults, Fault{Field: e.Field, Type: e.Type, Message: e.ErrorBody()})
	}
	return faults
}
