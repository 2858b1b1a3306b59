package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/validate"
)

// checker checks files one after the other.
type checker struct {
	in                 io.Reader
	out, faults, notes io.Writer
	// print says that objects are printed with defaults applied.
	print   bool
	printed bool

	profile defaults.Profile
	limits  validate.Limits
	// count is how many faults were found.
	count int
}

func (c *checker) read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(c.in)
	}
	return os.ReadFile(name)
}

// file checks all documents of a file. The error says that it cannot be read.
func (c *checker) file(name string) error {
	data, err := c.read(name)
	if err != nil {
		return err
	}
	docs, err := documents(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, d := range docs {
		if err := c.document(name, d); err != nil {
			return err
		}
	}
	return nil
}

// document checks one object, or all objects of a list.
func (c *checker) document(file string, d document) error {
	switch {
	case d.fault != "":
		c.report(file, d, []fault{{Type: field.ErrorTypeInvalid, Message: d.fault}})
	case d.list():
		for _, item := range d.items() {
			if err := c.document(file, item); err != nil {
				return err
			}
		}
	case !d.ours():
		fmt.Fprintf(c.notes, "%s: %s: not of Podvisor's kinds, passed over\n", file, d)
	default:
		return c.object(file, d)
	}
	return nil
}

func (c *checker) object(file string, d document) error {
	if v := vmi.GroupVersion.String(); d.APIVersion != v {
		c.report(file, d, []fault{{"apiVersion", field.ErrorTypeNotSupported, d.APIVersion + " is not served: write " + v}})
		return nil
	}
	c.unserved(file, d)
	object := kinds[d.Kind]()
	lost, ok := decode(d.data, object)
	c.report(file, d, append(named(d), lost...))
	if !ok {
		return nil
	}
	object, faults := c.check(object, d)
	c.report(file, d, faults)
	if !c.print || len(lost) > 0 {
		return nil
	}
	return c.write(object)
}

// unserved notes what the document itself sets and the API server does not know
// yet. What will never be served is a fault.
func (c *checker) unserved(file string, d document) {
	for _, f := range served.Unserved(d.Kind).In(d.fields) {
		if !f.Refused {
			fmt.Fprintf(c.notes, "%s: %s: %s\n", file, d, f)
		}
	}
}

// kinds are empty objects of all kinds that are checked.
var kinds = map[string]func() runtime.Object{
	vmi.Kind.Kind:                              func() runtime.Object { return &vmi.VirtualMachineInstance{} },
	vmi.VirtualMachines.Kind:                   func() runtime.Object { return &vmi.VirtualMachine{} },
	vmi.VirtualMachineInstanceReplicaSets.Kind: func() runtime.Object { return &vmi.VirtualMachineInstanceReplicaSet{} },
	vmi.VirtualMachineInstanceMigrations.Kind:  func() runtime.Object { return &vmi.VirtualMachineInstanceMigration{} },
	vmi.KubeVirts.Kind:                         func() runtime.Object { return &vmi.KubeVirt{} },
}

// check returns the object with defaults and what is wrong with it.
func (c *checker) check(object runtime.Object, d document) (runtime.Object, []fault) {
	p := c.profile
	p.UUID = defaults.UUID(types.UID(d.Namespace + "/" + d.Name))
	p.Serial = string(defaults.UUID("serial of " + types.UID(d.Namespace+"/"+d.Name)))
	var l field.ErrorList
	switch o := object.(type) {
	case *vmi.VirtualMachineInstance:
		o = defaults.Apply(o, p)
		object, l = o, validate.Instance(o, validate.User{}, c.limits)
	case *vmi.VirtualMachine:
		o = defaults.VirtualMachine(o, p)
		object, l = o, validate.VirtualMachine(o, validate.User{}, c.limits)
	case *vmi.VirtualMachineInstanceReplicaSet:
		o = defaults.ReplicaSet(o, p)
		object, l = o, validate.ReplicaSet(o, validate.User{}, c.limits)
	case *vmi.VirtualMachineInstanceMigration:
		o = defaults.Migration(o)
		object, l = o, validate.Migration(o, validate.User{})
	case *vmi.KubeVirt:
		l = validate.KubeVirt(o)
	}
	return object, listed(l)
}

// named checks the name, which an API server does before anything else.
func named(d document) []fault {
	at := field.NewPath("metadata", "name")
	if d.unnamed {
		return listed(field.ErrorList{field.Required(at, "name the object, or let the cluster choose a name that begins with metadata.generateName")})
	}
	if d.Name == "" {
		return nil
	}
	var l field.ErrorList
	// What follows generateName is a letter or a digit.
	for _, m := range apivalidation.NameIsDNSSubdomain(d.Name, d.generated) {
		l = append(l, field.Invalid(at, d.Name, m))
	}
	return listed(l)
}

func listed(l field.ErrorList) []fault {
	var faults []fault
	for _, e := range l {
		faults = append(faults, fault{Field: e.Field, Type: e.Type, Message: e.ErrorBody()})
	}
	return faults
}

func (c *checker) report(file string, d document, faults []fault) {
	for _, f := range faults {
		fmt.Fprintln(c.faults, f.line(file, d))
	}
	c.count += len(faults)
}

func (f fault) line(file string, d document) string {
	return fmt.Sprintf("%s: %s: %s: %s: %s", file, d, f.Field, string(f.Type), oneLine(f.Message))
}

func oneLine(s string) string { return string(bytes.Join(bytes.Fields([]byte(s)), []byte(" "))) }

func (c *checker) write(object runtime.Object) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	if c.printed {
		text = append([]byte("---\n"), text...)
	}
	c.printed = true
	_, err = c.out.Write(text)
	return err
}
