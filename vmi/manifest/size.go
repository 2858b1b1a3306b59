package manifest

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	decoder "github.com/podvisor/podvisor/vmi/decode"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// Sizes are the instance types and the preferences of a manifest, and the claims, whose labels
// may name them, for [Check] of another one.
// Those that cannot be decoded are left out: Check of their own manifest says why.
func Sizes(data []byte) ([]vmi.Object, error) {
	docs, err := documents(data)
	if err != nil {
		return nil, err
	}
	return sizesIn(docs), nil
}

func sizesIn(docs []document) []vmi.Object {
	var out []vmi.Object
	for _, d := range docs {
		if d.list() {
			out = append(out, sizesIn(d.items())...)
			continue
		}
		o := sizeOf(schema.FromAPIVersionAndKind(d.apiVersion, d.kind))
		if o == nil {
			continue
		}
		raw, err := yaml.YAMLToJSON(d.data)
		if err == nil && decoder.Into(raw, o) == nil {
			out = append(out, o)
		}
	}
	return out
}

// sizeOf is a new object of the kind. Nil: VMs name none of this kind.
func sizeOf(k schema.GroupVersionKind) vmi.Object {
	if k == corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim") {
		return &corev1.PersistentVolumeClaim{}
	}
	for _, d := range instancetype.Definitions() {
		if k == d.GroupVersionKind {
			return d.New()
		}
	}
	return nil
}

// defaultNamespace is where an object is that names none.
const defaultNamespace = "default"

// lookup finds the objects. There are no revisions.
func lookup(all []vmi.Object) instancetype.Lookup {
	l := instancetype.Nothing()
	within := func(o vmi.Object, namespace string) bool {
		return cmp.Or(o.GetNamespace(), defaultNamespace) == cmp.Or(namespace, defaultNamespace)
	}
	l.Object = func(d vmi.Definition, namespace, name string) (vmi.Object, error) {
		for _, o := range all {
			if o.GetName() == name && (d.ClusterScoped || within(o, namespace)) && fmt.Sprintf("%T", o) == fmt.Sprintf("%T", d.New()) {
				return o, nil
			}
		}
		return nil, nil
	}
	l.Claim = func(namespace, name string) (*corev1.PersistentVolumeClaim, error) {
		for _, o := range all {
			if c, ok := o.(*corev1.PersistentVolumeClaim); ok && c.Name == name && within(c, namespace) {
				return c, nil
			}
		}
		return nil, nil
	}
	return l
}

// infer has the VM name what its claims do, as far as they are known.
func (o *Object) infer(v *vmi.VirtualMachine, namespace string, known instancetype.Lookup) {
	if len(validate.References(v)) > 0 {
		return
	}
	claim, unknown := known.Claim, ""
	known.Claim = func(namespace, name string) (*corev1.PersistentVolumeClaim, error) {
		c, err := claim(namespace, name)
		if c == nil {
			unknown = name
		}
		return c, err
	}
	out, faults, err := known.Infer(namespace, v)
	switch {
	case err != nil: // it finds by no request
	case unknown != "":
		o.Notes = append(o.Notes, fmt.Sprintf("judged without what the labels of PersistentVolumeClaim %s name, which is in none of the files", unknown))
	default:
		o.Faults = append(o.Faults, listed(faults)...)
		*v = *out
	}
}

// name gives the cluster what the object names if it is a VM or makes VMs, and notes what is not
// known. What a VM that the object makes names is judged here: k judges only what it has itself.
func (o *Object) name(v vmi.Object, k kinds.Kind, namespace string, known instancetype.Lookup, c *kinds.Cluster) {
	m, isVM := v.(*vmi.VirtualMachine)
	at := field.NewPath("spec")
	switch {
	case isVM:
		o.infer(m, namespace, known)
	case k.VM != nil:
		m, at = k.VM(v), at.Child("virtualMachineTemplate", "spec")
	}
	if m == nil {
		return
	}
	found, err := known.Find(namespace, instancetype.References(m))
	if err != nil {
		return // it finds by no request
	}
	c.Instancetype, c.Preference = instancetype.SpecsOf(found)
	for _, f := range found {
		if f.Object == nil && f.Name != "" {
			o.Notes = append(o.Notes, fmt.Sprintf("judged without what %s names, which is in none of the files", at.Child(string(f.Part))))
		}
	}
	if isVM {
		return
	}
	_, conflicts := instancetype.Check(m, c.Instancetype, c.Preference, c.Defaults)
	for _, f := range listed(conflicts) {
		f.Field = at.String() + strings.TrimPrefix(f.Field, "spec")
		o.Faults = append(o.Faults, f)
	}
}

// expanded is the complete object, in which a VM has what it names. It is as it was if something
// of that is not known, or contradicts its template.
func expanded(done vmi.Object, k kinds.Kind, c kinds.Cluster) vmi.Object {
	v, ok := done.(*vmi.VirtualMachine)
	if !ok && k.VM != nil {
		v = k.VM(done)
	}
	if v == nil || (v.Spec.Instancetype != nil) != (c.Instancetype != nil) || (v.Spec.Preference != nil) != (c.Preference != nil) {
		return done
	}
	out, conflicts := instancetype.Expand(v, c.Instancetype, c.Preference, c.Defaults)
	if len(conflicts) > 0 {
		return done
	}
	if p, ok := done.(*vmpool.VirtualMachinePool); ok {
		p.Spec.VirtualMachineTemplate.Spec = out.Spec
		return p
	}
	return out
}
