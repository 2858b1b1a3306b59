package vm

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/scheduler/revision"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/validate"
)

// Named are the references of the VM to its instance type and its preference. What a start
// has used before its status says so counts as used.
func (o Observed) Named() []instancetype.Reference {
	all := instancetype.References(o.VM)
	for i := range all {
		r := &all[i]
		if r.Status != nil && !o.another(*r) {
			continue
		}
		r.Status = nil
		if c := o.holding(*r); c != nil {
			r.Status = r.Use(c.Name)
		}
	}
	return all
}

// another says that the ControllerRevision in the status holds another object than the VM
// names now, as one that the user named before does.
func (o Observed) another(r instancetype.Reference) bool {
	return slices.ContainsFunc(o.Sizes, func(c *appsv1.ControllerRevision) bool { return c.Name == r.Revision() && !r.Holds(c) })
}

// holding is the ControllerRevision of the VM that was made last of the object that the
// reference names. Nil: none was.
func (o Observed) holding(r instancetype.Reference) *appsv1.ControllerRevision {
	d, _ := r.Definition()
	var last *appsv1.ControllerRevision
	for _, c := range o.Sizes {
		fits := r.Name != "" && r.Holds(c) && c.Labels[instancetype.ObjectKindLabel] == d.Kind && metav1.IsControlledBy(c, o.VM)
		if fits && (last == nil || last.CreationTimestamp.Before(&c.CreationTimestamp)) {
			last = c
		}
	}
	return last
}

// Sought are the references that the decision needs the objects of: all where a VMI may be
// made, and otherwise those that the status does not have yet. Of a VM that names nothing they
// are those of its VMI, which may have been started before the VM was expanded.
func (o Observed) Sought() []instancetype.Reference {
	if len(instancetype.References(o.VM)) == 0 {
		s, _ := startedFrom(o.Compared())
		return instancetype.References(&vmi.VirtualMachine{Spec: s})
	}
	var out []instancetype.Reference
	starts := o.VM.DeletionTimestamp == nil && want(o, pending(o)) == start
	for _, r := range o.Named() {
		if starts || !r.Settled() {
			out = append(out, r)
		}
	}
	return out
}

// SoughtRenamed are, for each part of which the VM names another revision than its VMI was
// started with, the reference to that one and that of the VM: the decision compares what they
// lead to. It needs Found.
func (o Observed) SoughtRenamed() []instancetype.Reference {
	was, ok := startedFrom(o.Compared())
	if !ok {
		return nil
	}
	started := instancetype.References(&vmi.VirtualMachine{Spec: was})
	var out []instancetype.Reference
	for _, is := range instancetype.References(&vmi.VirtualMachine{Spec: size(o).spec}) {
		for _, r := range started {
			if r.Part == is.Part && r.RevisionName != "" && r.RevisionName != is.RevisionName {
				out = append(out, r, is)
			}
		}
	}
	return out
}

// equal says that the VMI was started with the same content of the part as the VM names now.
func (o Observed) equal(p instancetype.Part) bool {
	of := func(all []instancetype.Found) []instancetype.Found {
		return slices.DeleteFunc(slices.Clone(all), func(f instancetype.Found) bool { return f.Part != p || f.Object == nil })
	}
	// A revision that is made by the same plan is not there yet.
	all := append(of(o.Renamed), of(o.Found)...)
	if len(all) < 2 {
		return false
	}
	t, q := instancetype.SpecsOf(all[:1])
	t2, q2 := instancetype.SpecsOf(all[1:2])
	return equality.Semantic.DeepEqual(t, t2) && equality.Semantic.DeepEqual(q, q2)
}

// sized is what becomes of a VM by what it names.
type sized struct {
	// vm is the VM without references, as its template says what they stand for. Where
	// no VMI may be made it is as it was.
	vm *vmi.VirtualMachine
	// spec is that of the VM with the revisions that hold what it names.
	spec vmi.VirtualMachineSpec
	// instancetype and preference are the references as the status has them.
	instancetype, preference *vmi.InstancetypeStatusRef
	// made are the revisions that are to be made.
	made []scheduler.Action
	// fault is why the VM cannot use what it names. Nil: it can.
	fault *vmi.Finding
}

// size resolves what the VM names.
func size(o Observed) sized {
	s := sized{vm: o.VM, spec: *o.VM.Spec.DeepCopy(), instancetype: o.VM.Status.InstancetypeRef, preference: o.VM.Status.PreferenceRef}
	found := map[instancetype.Part]instancetype.Found{}
	for _, f := range o.Found {
		found[f.Part] = f
	}
	named := o.Named()
	for _, r := range named {
		f, ok := found[r.Part]
		switch {
		case !ok:
			s.use(r, r.Revision())
		case f.Object == nil:
			s.fault = missing(f)
			return s
		case f.Revision != "" && !f.Former:
			s.use(r, f.Revision)
		default:
			c, err := revision.Holding(o.VM, f.Object)
			if err != nil {
				s.fault = &vmi.Finding{Reason: FailedCreate, Message: err.Error()}
				return s
			}
			if c.Name != f.Revision {
				s.made = append(s.made, scheduler.CreateRevision{Revision: c})
			}
			s.use(r, c.Name)
		}
	}
	if len(found) == 0 || len(named) == 0 {
		return s
	}
	expanded, conflicts := Expanded(o.VM, o.Found, o.Profile)
	if len(conflicts) > 0 {
		return sized{
			vm: o.VM, spec: o.VM.Spec, instancetype: o.VM.Status.InstancetypeRef, preference: o.VM.Status.PreferenceRef,
			fault: &vmi.Finding{Reason: FailedCreate, Message: vmi.FaultText(validate.Error(conflicts))},
		}
	}
	s.vm = expanded
	return s
}

// Expanded is the VM as instancetype.Expand makes it of what was found. The annotations of its
// template, which VMIs get, say what the VM names.
func Expanded(v *vmi.VirtualMachine, found []instancetype.Found, by defaults.Profile) (*vmi.VirtualMachine, field.ErrorList) {
	t, p := instancetype.SpecsOf(found)
	out, conflicts := instancetype.Expand(v, t, p, by)
	if len(conflicts) > 0 || out.Spec.Template == nil {
		return out, conflicts
	}
	m := &out.Spec.Template.ObjectMeta
	for _, r := range instancetype.References(v) {
		metav1.SetMetaDataAnnotation(m, r.Annotation(), r.Name)
	}
	return out, nil
}

// use has a revision hold what the reference names, unless there is none.
func (s *sized) use(r instancetype.Reference, revision string) {
	if revision == "" {
		return
	}
	switch r.Part {
	case instancetype.Instancetype:
		s.instancetype, s.spec.Instancetype.RevisionName = r.Use(revision), revision
	case instancetype.Preference:
		s.preference, s.spec.Preference.RevisionName = r.Use(revision), revision
	}
}

// startedWith is the spec that the VMI was started from. It says itself what it named if the VM
// does so by now.
func (o Observed) startedWith(v *vmi.VirtualMachineInstance) (vmi.VirtualMachineSpec, bool) {
	s, ok := startedFrom(running(o, v))
	lost := slices.ContainsFunc(o.Found, func(f instancetype.Found) bool { return f.Object == nil })
	if !ok || lost || len(instancetype.References(o.VM)) > 0 {
		return s, ok
	}
	t, p := instancetype.SpecsOf(o.Found)
	if out, conflicts := instancetype.Expand(&vmi.VirtualMachine{Spec: s}, t, p, o.Profile); len(o.Found) > 0 && len(conflicts) == 0 {
		return out.Spec, true
	}
	return s, true
}

// Pinned is the VM with the revisions of what it names that a start revision has. Nil: there is
// no start revision, and the VM is as it was.
func Pinned(v *vmi.VirtualMachine, r *appsv1.ControllerRevision) *vmi.VirtualMachine {
	s, ok := startedFrom(r)
	if !ok {
		return v
	}
	v = v.DeepCopy()
	if from, to := s.Instancetype, v.Spec.Instancetype; from != nil && to != nil {
		to.RevisionName = from.RevisionName
	}
	if from, to := s.Preference, v.Spec.Preference; from != nil && to != nil {
		to.RevisionName = from.RevisionName
	}
	return v
}

// missing is why there is nothing of what the VM names.
func missing(f instancetype.Found) *vmi.Finding {
	reason := FailedFindInstancetype
	if f.Part == instancetype.Preference {
		reason = FailedFindPreference
	}
	return &vmi.Finding{Reason: reason, Message: f.Missing}
}

// first puts the revisions that are made in front of a plan that does something.
func (s sized) first(p scheduler.Plan) scheduler.Plan {
	if len(p.Actions) > 0 {
		p.Actions = append(s.made[:len(s.made):len(s.made)], p.Actions...)
	}
	return p
}
