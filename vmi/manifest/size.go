package manifest

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	decoder "github.com/podvisor/podvisor/vmi/decode"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// Sizes are the instance types and the preferences of a manifest, for [Check] of another one.
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
		for _, k := range instancetype.Definitions() {
			if schema.FromAPIVersionAndKind(d.apiVersion, d.kind) != k.GroupVersionKind {
				continue
			}
			raw, err := yaml.YAMLToJSON(d.data)
			if o := k.New(); err == nil && decoder.Into(raw, o) == nil {
				out = append(out, o)
			}
		}
	}
	return out
}

// defaultNamespace is where an object is that names none.
const defaultNamespace = "default"

// lookup finds the objects. There are no revisions.
func lookup(all []vmi.Object) instancetype.Lookup {
	l := instancetype.Nothing()
	l.Object = func(d vmi.Definition, namespace, name string) (vmi.Object, error) {
		for _, o := range all {
			same := d.ClusterScoped || cmp.Or(o.GetNamespace(), defaultNamespace) == cmp.Or(namespace, defaultNamespace)
			if o.GetName() == name && same && fmt.Sprintf("%T", o) == fmt.Sprintf("%T", d.New()) {
				return o, nil
			}
		}
		return nil, nil
	}
	return l
}

// name gives the cluster what the object names if it is a VM, and notes what is not known.
func (o *Object) name(v vmi.Object, namespace string, known instancetype.Lookup, c *kinds.Cluster) {
	m, ok := v.(*vmi.VirtualMachine)
	if !ok {
		return
	}
	found, err := known.Find(namespace, instancetype.References(m))
	if err != nil {
		return // it finds by no request
	}
	c.Instancetype, c.Preference = instancetype.SpecsOf(found)
	for _, f := range found {
		if f.Object == nil && f.Name != "" {
			o.Notes = append(o.Notes, fmt.Sprintf("judged without what spec.%s names, which is in none of the files", f.Part))
		}
	}
}

// expanded is the complete object, a VM with what it names. It is as it was if something of
// that is not known, or contradicts its template.
func expanded(done vmi.Object, c kinds.Cluster) vmi.Object {
	v, ok := done.(*vmi.VirtualMachine)
	if !ok || (v.Spec.Instancetype != nil) != (c.Instancetype != nil) || (v.Spec.Preference != nil) != (c.Preference != nil) {
		return done
	}
	out, conflicts := instancetype.Expand(v, c.Instancetype, c.Preference, c.Defaults)
	if len(conflicts) > 0 {
		return done
	}
	return out
}
