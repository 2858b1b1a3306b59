package kinds

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/validate"
)

// Kind is a row of the table.
type Kind struct {
	vmi.Definition
	// Complete returns a copy of the object in which everything that it leaves open
	// is decided.
	Complete func(o vmi.Object, c Cluster) vmi.Object
	// Faults returns everything that is wrong with the object. It expects a complete
	// one.
	Faults func(o vmi.Object, c Cluster) field.ErrorList
	// Create returns why an object must not be created: its faults, unless the kind
	// has another rule. It expects a complete object.
	Create func(o vmi.Object, c Cluster) field.ErrorList
	// Update returns why old must not become o. Both are complete.
	Update func(old, o vmi.Object, c Cluster) field.ErrorList
	// Keep returns a copy of o, an update of old, with the defaults that old got when
	// it was created where o leaves them open.
	Keep func(old, o vmi.Object) vmi.Object
	// FixedSpec says that the spec cannot be changed once the object exists.
	FixedSpec bool
	// Open says that objects may leave something open, which Complete decides.
	Open bool
	// Template returns the template of the VMIs that the object makes, or nil if it has
	// none. Nil: objects of the kind make no VMIs.
	Template func(o vmi.Object) *vmi.VirtualMachineInstanceTemplateSpec
	// VM returns a VM that the object makes, but for its name, or nil if it has no template.
	// Nil: objects of the kind make no VMs.
	VM func(o vmi.Object) *vmi.VirtualMachine
	// Grants are what the roles of an installation may do with the objects.
	Grants []Grant
	// StatusBy are the components that alone write the status. Nil: whoever may.
	StatusBy []Component
	// EventsBy are the components that write events of the objects. Nil: none.
	EventsBy []Component

	unserved served.Fields
}

// Cluster is what the defaults and the validation of an object depend on besides
// the object. The zero value is the default configuration.
type Cluster struct {
	// Defaults complete the objects.
	Defaults defaults.Profile
	// Limits are what the cluster allows.
	Limits validate.Limits
	// By is the user that creates or changes the object.
	By validate.User
	// KubeVirts are all KubeVirts of the cluster, or none while they are not known.
	KubeVirts []*vmi.KubeVirt
	// Instancetype and Preference are those that the VM names which is judged. Nil: it
	// names none, or it is not known.
	Instancetype *instancetype.VirtualMachineInstancetypeSpec
	Preference   *instancetype.VirtualMachinePreferenceSpec
}

// Configured is a cluster with this configuration.
func Configured(c *vmi.KubeVirtConfiguration) Cluster {
	return Cluster{Defaults: defaults.Configured(c), Limits: validate.Configured(c)}
}

// Definitions are the definitions of all kinds of the table.
func Definitions() []vmi.Definition {
	var out []vmi.Definition
	for _, k := range All() {
		out = append(out, k.Definition)
	}
	return out
}

// Find returns the row of the kind. It is false if there is none.
func Find(gk schema.GroupKind) (Kind, bool) {
	for _, k := range table() {
		if k.GroupKind() == gk {
			return k, true
		}
	}
	return Kind{}, false
}

// Unserved are the fields of the kind that are not served. All share them: they are not to
// be changed.
func (k Kind) Unserved() served.Fields { return k.unserved }

// Served says that the API server has the kind.
func (k Kind) Served() bool {
	for _, f := range k.Unserved() {
		if f.Path == "" {
			return false
		}
	}
	return true
}

// RunsGuests says that the objects run guests, or make others that do.
func (k Kind) RunsGuests() bool {
	return k.Template != nil || k.VM != nil || k.GroupVersionKind == vmi.VirtualMachineInstances.GroupVersionKind
}

// SameSpec says that the specs of two objects mean the same once both are
// complete.
func (k Kind) SameSpec(a, b vmi.Object, c Cluster) bool {
	return k.CompletesTo(a, k.Complete(b, c), c)
}

// CompletesTo says that the spec of the object means the same as that of done, which is
// complete.
func (k Kind) CompletesTo(o, done vmi.Object, c Cluster) bool {
	is, want := spec(k.Complete(o, c)), spec(done)
	// Most that mean the same are the same, which is cheaper to find out.
	return reflect.DeepEqual(is, want) || equality.Semantic.DeepEqual(is, want)
}

// spec is the spec of the object, or nil if it has none.
func spec(o vmi.Object) any {
	if s := reflect.Indirect(reflect.ValueOf(o)).FieldByName("Spec"); s.IsValid() {
		return s.Interface()
	}
	return nil
}

// rules are the functions of a kind with the objects T.
type rules[T vmi.Object] struct {
	// complete is nil if nothing is left open.
	complete func(T, defaults.Profile) T
	// keep is nil if defaults need not be kept.
	keep   func(old, o T) T
	faults func(T, validate.User, validate.Limits) field.ErrorList
	// create is nil if an object without faults may be created.
	create func(T, Cluster) field.ErrorList
	// update is nil if a change is judged as a creation.
	update    func(old, o T, by validate.User, lim validate.Limits) field.ErrorList
	fixedSpec bool
	// template is nil if the objects make no VMIs.
	template func(T) *vmi.VirtualMachineInstanceTemplateSpec
	// vm is nil if the objects make no VMs.
	vm func(T) *vmi.VirtualMachine
	// What follows is as in [Kind].
	grants             []Grant
	statusBy, eventsBy []Component
}

// of makes the row of a kind.
func of[T vmi.Object, L runtime.Object](d vmi.DefinitionOf[T, L], r rules[T]) Kind {
	k := Kind{
		Definition: d.Definition,
		FixedSpec:  r.fixedSpec,
		Open:       r.complete != nil,
		Grants:     r.grants,
		StatusBy:   r.statusBy,
		EventsBy:   r.eventsBy,
		unserved:   served.Unserved(d.Kind),
		Complete: func(o vmi.Object, c Cluster) vmi.Object {
			if r.complete == nil {
				return o.DeepCopyObject().(vmi.Object)
			}
			return r.complete(o.(T), c.Defaults)
		},
		Keep: func(old, o vmi.Object) vmi.Object {
			if r.keep == nil {
				return o.DeepCopyObject().(vmi.Object)
			}
			return r.keep(old.(T), o.(T))
		},
		Faults: func(o vmi.Object, c Cluster) field.ErrorList { return r.faults(o.(T), c.By, c.Limits) },
		Update: func(old, o vmi.Object, c Cluster) field.ErrorList {
			if r.update == nil {
				return r.faults(o.(T), c.By, c.Limits)
			}
			return r.update(old.(T), o.(T), c.By, c.Limits)
		},
	}
	k.Create = k.Faults
	if r.create != nil {
		k.Create = func(o vmi.Object, c Cluster) field.ErrorList { return r.create(o.(T), c) }
	}
	if r.template != nil {
		k.Template = func(o vmi.Object) *vmi.VirtualMachineInstanceTemplateSpec { return r.template(o.(T)) }
	}
	if r.vm != nil {
		k.VM = func(o vmi.Object) *vmi.VirtualMachine { return r.vm(o.(T)) }
	}
	return k
}
