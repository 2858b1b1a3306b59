package vm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// DataVolumeKind is the kind of the objects that dataVolumeTemplates become, and
// DataVolumeResource its resource. The Containerized Data Importer serves it.
var (
	DataVolumeKind     = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}
	DataVolumeResource = DataVolumeKind.GroupVersion().WithResource("datavolumes")
)

// KeptAnnotation is on the dataVolumeTemplate of a VM of a pool whose DataVolume outlives the
// VM, with the value true. The pool controls it.
const KeptAnnotation = "podvisor.io/kept-by-pool"

// servedAgain is when it is checked again whether DataVolumes are served.
const servedAgain = 15 * time.Second

// DataVolumes are those that the templates of a VM name, by their names. Nil: the API
// server does not serve the kind. A nil value: the DataVolume does not exist.
type DataVolumes map[string]*unstructured.Unstructured

// DataVolumeNames are the names of the VM's dataVolumeTemplates.
func DataVolumeNames(v *vmi.VirtualMachine) []string {
	var names []string
	for i := range v.Spec.DataVolumeTemplates {
		names = append(names, v.Spec.DataVolumeTemplates[i].ObjectMeta.Name)
	}
	return names
}

// provision makes the DataVolumes of the VM. It returns false when all of them are
// filled, or wait for the VMI to be filled.
func provision(o Observed, n next) (scheduler.Plan, bool) {
	if len(o.VM.Spec.DataVolumeTemplates) == 0 {
		return scheduler.Plan{}, false
	}
	if n.obstacle = unprovided(o); n.obstacle != nil {
		p := write(o, n)
		if n.obstacle.Reason == DataVolumesNotServed {
			p.Recheck = servedAgain
		}
		return p, true
	}
	var p scheduler.Plan
	for i := range o.VM.Spec.DataVolumeTemplates {
		t := &o.VM.Spec.DataVolumeTemplates[i]
		if o.DataVolumes[t.ObjectMeta.Name] != nil || o.Claims[t.ObjectMeta.Name] != nil {
			continue
		}
		made, err := dataVolume(o.VM, t)
		if err != nil {
			n.obstacle = &vmi.Finding{Reason: InvalidSpec, Message: vmi.FaultText(err)}
			return write(o, n), true
		}
		p.Actions = append(p.Actions, scheduler.CreateDataVolume{DataVolume: made}, scheduler.Emit{Finding: vmi.Finding{
			Reason: "SuccessfulDataVolumeCreate", Message: "Created DataVolume " + t.ObjectMeta.Name,
		}})
	}
	if !provisions(o) {
		return scheduler.Plan{}, false
	}
	p.Actions = append(p.Actions, write(o, n).Actions...)
	return p, true
}

// unprovided is why the DataVolumes cannot be made or filled. Nil: they can.
func unprovided(o Observed) *vmi.Finding {
	if o.DataVolumes == nil {
		return &vmi.Finding{Reason: DataVolumesNotServed, Message: fmt.Sprintf(
			"the API server does not serve %s.%s, which spec.dataVolumeTemplates need: install the Containerized Data Importer (CDI), or create the claims and leave the templates out",
			DataVolumeResource.Resource, DataVolumeResource.Group)}
	}
	for i := range o.VM.Spec.DataVolumeTemplates {
		t := &o.VM.Spec.DataVolumeTemplates[i]
		name := t.ObjectMeta.Name
		if from := foreign(o.VM.Namespace, &t.Spec); from != "" {
			return &vmi.Finding{Reason: InvalidSpec, Message: fmt.Sprintf(
				"spec.dataVolumeTemplates[%d]: the source is in namespace %s: a DataVolume of a VM is filled from its own namespace only, "+
					"since nothing checks whether who made the VM may read the other; create the DataVolume yourself and name it in a volume", i, from)}
		}
		d := o.DataVolumes[name]
		switch {
		case d == nil:
		case metav1.GetControllerOfNoCopy(d) != nil && !metav1.IsControlledBy(d, o.VM) && !ofPool(d, o.VM, t):
			return &vmi.Finding{Reason: DataVolumeNameTaken, Message: fmt.Sprintf(
				"DataVolume %s belongs to %s %s and not to this VirtualMachine: give spec.dataVolumeTemplates[%d] another name, or delete the DataVolume",
				name, metav1.GetControllerOfNoCopy(d).Kind, metav1.GetControllerOfNoCopy(d).Name, i)}
		case isFailed(d):
			return &vmi.Finding{Reason: FailedDataVolumeImport, Message: fmt.Sprintf(
				"DataVolume %s cannot be filled, as its conditions say: correct its source in spec.dataVolumeTemplates[%d] and delete the DataVolume, which is then made again", name, i)}
		}
	}
	return o.Refusal
}

// foreign is the other namespace that the DataVolume would be filled from, or "". The
// importer asks whether who creates a DataVolume may read its source, and that is
// virt-controller.
func foreign(namespace string, s *vmi.DataVolumeSpec) string {
	var named []string
	if f := s.Source; f != nil && f.PVC != nil {
		named = append(named, f.PVC.Namespace)
	}
	if f := s.Source; f != nil && f.Snapshot != nil {
		named = append(named, f.Snapshot.Namespace)
	}
	if s.PVC != nil && s.PVC.DataSourceRef != nil && s.PVC.DataSourceRef.Namespace != nil {
		named = append(named, *s.PVC.DataSourceRef.Namespace)
	}
	if s.Storage != nil && s.Storage.DataSourceRef != nil && s.Storage.DataSourceRef.Namespace != nil {
		named = append(named, *s.Storage.DataSourceRef.Namespace)
	}
	for _, n := range named {
		if n != "" && n != namespace {
			return n
		}
	}
	return ""
}

// provisions says that a DataVolume of the VM is not there yet or is being filled. One
// that is gone after its claim was filled is not needed any more.
func provisions(o Observed) bool {
	return slices.ContainsFunc(DataVolumeNames(o.VM), func(name string) bool {
		d := o.DataVolumes[name]
		return d == nil && o.Claims[name] == nil || d != nil && !isFilled(d)
	})
}

// isFilled says that the VMI may start: the DataVolume is filled, or is when the claim
// has its first consumer.
func isFilled(d *unstructured.Unstructured) bool {
	switch phase(d) {
	case "Succeeded", "WaitForFirstConsumer", "PendingPopulation":
		return true
	}
	return false
}

// isFailed says that the DataVolume failed, or that what fills it fails again and again.
func isFailed(d *unstructured.Unstructured) bool {
	if phase(d) == "Failed" {
		return true
	}
	conditions, _, _ := unstructured.NestedSlice(d.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == "Running" && m["status"] == "False" && m["reason"] == "Error"
	})
}

func phase(d *unstructured.Unstructured) string {
	p, _, _ := unstructured.NestedString(d.Object, "status", "phase")
	return p
}

// dataVolume is the DataVolume of a template.
func dataVolume(v *vmi.VirtualMachine, t *vmi.DataVolumeTemplate) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(t.Spec)
	if err != nil {
		return nil, fmt.Errorf("make DataVolume %s: %w", t.ObjectMeta.Name, err)
	}
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("make DataVolume %s: %w", t.ObjectMeta.Name, err)
	}
	d := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	d.SetGroupVersionKind(DataVolumeKind)
	d.SetNamespace(v.Namespace)
	d.SetName(t.ObjectMeta.Name)
	labels, annotations := maps.Clone(t.ObjectMeta.Labels), maps.Clone(t.ObjectMeta.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[vmi.CreatedByLabel] = string(v.UID)
	annotations["cdi.kubevirt.io/allowClaimAdoption"] = "true"
	d.SetLabels(labels)
	d.SetAnnotations(annotations)
	d.SetOwnerReferences([]metav1.OwnerReference{owner(v, t)})
	return d, nil
}

// owner is what controls the DataVolume of a template: the VM, or its pool if that keeps it.
func owner(v *vmi.VirtualMachine, t *vmi.DataVolumeTemplate) metav1.OwnerReference {
	if p := poolOf(v); p != nil && isKept(t) {
		return *p
	}
	return *metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)
}

func isKept(t *vmi.DataVolumeTemplate) bool {
	return t.ObjectMeta.Annotations[KeptAnnotation] == "true"
}

// poolOf is the pool that controls the object. Nil: none does.
func poolOf(o metav1.Object) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(o)
	if ref == nil || ref.Kind != vmpool.VirtualMachinePools.Kind || ref.APIVersion != vmpool.GroupVersion.String() {
		return nil
	}
	return ref
}

// ofPool says that the DataVolume is that of a VM of a pool which the pool keeps. A VM that was
// taken out of its pool still has it.
func ofPool(d *unstructured.Unstructured, v *vmi.VirtualMachine, t *vmi.DataVolumeTemplate) bool {
	is, own := poolOf(d), poolOf(v)
	switch {
	case is == nil:
		return false
	case own == nil:
		return isKept(t)
	}
	return is.UID == own.UID
}

// dataVolumeFailed says that a DataVolume of the VM that starts cannot be filled.
func dataVolumeFailed(_ Observed, n next) bool {
	return n.starts && n.obstacle != nil && n.obstacle.Reason == FailedDataVolumeImport
}

// provisioning says that the VM waits for its DataVolumes.
func provisioning(o Observed, n next) bool {
	return n.starts && !n.made && n.obstacle == nil && o.DataVolumes != nil && provisions(o)
}

// provided says that the claim is that of a template, which makes it.
func provided(o Observed, claim string) bool {
	return slices.Contains(DataVolumeNames(o.VM), claim)
}
