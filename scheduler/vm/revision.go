package vm

import (
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/internal/scheduler/revision"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// started is what a start revision holds.
type started struct {
	Spec vmi.VirtualMachineSpec `json:"spec"`
}

// startRevision is the VM's spec as a ControllerRevision, with the revisions of what it names.
func startRevision(v *vmi.VirtualMachine, spec vmi.VirtualMachineSpec) (*appsv1.ControllerRevision, error) {
	raw, err := revision.Sorted(started{Spec: spec})
	if err != nil {
		return nil, fmt.Errorf("store the spec of VirtualMachine %s/%s: %w", v.Namespace, v.Name, err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: vmi.StartRevision(v.UID, v.Generation), Labels: map[string]string{vmi.AppLabel: RevisionApp},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: v.Generation,
	}, nil
}

// AsStored is the revision r of a VM with the spec as the API server has it, to the
// notation of its quantities: programs compare the two. Without a spec it is r.
func AsStored(r *appsv1.ControllerRevision, spec map[string]any) (*appsv1.ControllerRevision, error) {
	if spec == nil {
		return r, nil
	}
	spec, err := pinned(spec, r)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(map[string]any{"spec": spec}) // with sorted keys
	if err != nil {
		return nil, fmt.Errorf("store the spec in ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	out := r.DeepCopy()
	out.Data.Raw = raw
	return out, nil
}

// pinned is the tree of a spec with the revisions of what it names that r has.
func pinned(spec map[string]any, r *appsv1.ControllerRevision) (map[string]any, error) {
	var made map[string]any
	if err := json.Unmarshal(r.Data.Raw, &made); err != nil {
		return nil, fmt.Errorf("decode ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	spec = runtime.DeepCopyJSON(spec)
	for _, part := range []instancetype.Part{instancetype.Instancetype, instancetype.Preference} {
		name, _, _ := unstructured.NestedString(made, "spec", string(part), "revisionName")
		if name == "" {
			continue
		}
		if err := unstructured.SetNestedField(spec, name, string(part), "revisionName"); err != nil {
			return nil, fmt.Errorf("store the spec in ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
		}
	}
	return spec, nil
}

// running is the revision that the VMI was started from, or nil if it is not there.
func running(o Observed, v *vmi.VirtualMachineInstance) *appsv1.ControllerRevision {
	name := v.Status.VirtualMachineRevisionName
	if name == "" {
		name = vmi.StartRevision(o.VM.UID, v.RevisionGeneration())
	}
	for _, r := range o.Revisions {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// startedFrom is the spec in the revision. It is false if there is none that can be
// read.
func startedFrom(r *appsv1.ControllerRevision) (vmi.VirtualMachineSpec, bool) {
	var s started
	if r == nil || json.Unmarshal(r.Data.Raw, &s) != nil || s.Spec.Template == nil {
		return vmi.VirtualMachineSpec{}, false
	}
	return s.Spec, true
}

// sameTemplate says that the VMI has the template that the VM has now, or will have as
// soon as its links follow.
func sameTemplate(o Observed, v *vmi.VirtualMachineInstance) bool {
	if isCurrent(o, v, running(o, v)) {
		return true
	}
	was, is, ok := templates(o, v)
	return ok && len(renamed(o, v)) == 0 && equality.Semantic.DeepEqual(withoutLinks(was), withoutLinks(is))
}

// renamed are the fields of the VM that name another instance type or preference, or another
// revision of it, than those that the VMI was started with, unless it is equal.
func renamed(o Observed, v *vmi.VirtualMachineInstance) []string {
	was, ok := o.startedWith(v)
	if !ok {
		return nil
	}
	is := size(o).spec
	var out []string
	if a, b := was.Instancetype, is.Instancetype; (a == nil) != (b == nil) || a != nil && a.RevisionName != b.RevisionName && !o.equal(instancetype.Instancetype) {
		out = append(out, "spec.instancetype")
	}
	if a, b := was.Preference, is.Preference; (a == nil) != (b == nil) || a != nil && a.RevisionName != b.RevisionName && !o.equal(instancetype.Preference) {
		out = append(out, "spec.preference")
	}
	return out
}

// isCurrent says that the revision that the VMI was started from, or the VMI, is of the VM's
// generation, and so has its template.
func isCurrent(o Observed, v *vmi.VirtualMachineInstance, r *appsv1.ControllerRevision) bool {
	return r != nil && (r.Revision == o.VM.Generation || vmi.StartGeneration(v) == o.VM.Generation) && o.VM.Spec.Template != nil
}

// Compared is the revision whose content the decision compares with the VM's spec, if the VM
// has another generation now: that which the VMI was started from, or without a VMI that
// which the next may be started from again. Nil: none, and the Revisions may be without
// their Data.
func (o Observed) Compared() *appsv1.ControllerRevision {
	v := o.own()
	if v == nil {
		if r := newest(o); r != nil && r.Revision != o.VM.Generation && want(o, pending(o)) == start {
			return r
		}
		return nil
	}
	r := running(o, v)
	if r == nil || isCurrent(o, v, r) {
		return nil
	}
	return r
}

// newest is the VM's revision of the highest generation. Nil: it has none.
func newest(o Observed) *appsv1.ControllerRevision {
	var last *appsv1.ControllerRevision
	for _, r := range o.Revisions {
		if r.DeletionTimestamp == nil && metav1.IsControlledBy(r, o.VM) && (last == nil || r.Revision > last.Revision) {
			last = r
		}
	}
	return last
}

// kept is the revision that holds this spec of the VM already: as of a VM that was stopped and
// started again without another change. Nil: there is none.
func kept(o Observed, spec vmi.VirtualMachineSpec) *appsv1.ControllerRevision {
	r := newest(o)
	if r == nil || r.Revision == o.VM.Generation {
		return r
	}
	if s, ok := startedFrom(r); ok && equality.Semantic.DeepEqual(s, spec) {
		return r
	}
	return nil
}

// templates are the template that the VMI was started from and the one that the VM has
// now, each with what a start makes of it. It is false if the first is not known.
func templates(o Observed, v *vmi.VirtualMachineInstance) (was, is *vmi.VirtualMachineInstanceTemplateSpec, ok bool) {
	s, ok := o.startedWith(v)
	if !ok || o.VM.Spec.Template == nil {
		return nil, nil, false
	}
	return whole(o.VM, &s, o.Profile, o.Bindings), whole(o.VM, &o.VM.Spec, o.Profile, o.Bindings), true
}

// follow gives a VMI the link states of the template, notes on one whose template is
// still that of the VM that it has the VM's generation, and deletes the revisions that
// nothing runs from.
func follow(o Observed, v *vmi.VirtualMachineInstance) []scheduler.Action {
	var out []scheduler.Action
	if v.DeletionTimestamp == nil && !v.Status.Phase.Final() && vmi.StartGeneration(v) != o.VM.Generation {
		change := scheduler.ChangeInstance{Instance: v, Links: links(o, v)}
		if sameTemplate(o, v) {
			change.Annotations = map[string]string{vmi.VMGenerationAnnotation: strconv.FormatInt(o.VM.Generation, 10)}
		}
		if len(change.Annotations)+len(change.Links) > 0 {
			out = append(out, change)
		}
	}
	in := running(o, v)
	if in == nil {
		return out // which one is in use is not known
	}
	for _, r := range o.Revisions {
		if r.Name != in.Name && r.DeletionTimestamp == nil && r.Revision < in.Revision {
			out = append(out, scheduler.DeleteRevision{Name: r.Name, UID: r.UID})
		}
	}
	return out
}

// forget deletes the revisions that the garbage collector does not, because the VM was
// deleted so that it leaves what it owned.
func forget(o Observed) []scheduler.Action {
	var out []scheduler.Action
	for _, r := range o.Revisions {
		if r.DeletionTimestamp == nil && !metav1.IsControlledBy(r, o.VM) {
			out = append(out, scheduler.DeleteRevision{Name: r.Name, UID: r.UID})
		}
	}
	return out
}
