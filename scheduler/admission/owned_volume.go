package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// dataVolume is the kind of what a VM's dataVolumeTemplates become.
const dataVolume = "DataVolume"

const volumeNotAskedFor = "virt-controller may create DataVolumes only that one VirtualMachine or its VirtualMachinePool controls"

// isControlledBy says that the object that the reference names controls the other one.
func isControlledBy(o metav1.Object, ref *metav1.OwnerReference) bool {
	is := metav1.GetControllerOfNoCopy(o)
	return is != nil && is.UID == ref.UID && is.Kind == ref.Kind && is.Name == ref.Name
}

// volumeRefusal says why virt-controller must not create the DataVolume, or nothing: a
// template of the VM that controls it must have its name and its spec. One that a pool controls
// must be that of the VM with the same ordinal. The error is that this is not known.
func (o Owned) volumeRefusal(ctx context.Context, req *admissionv1.AdmissionRequest) (string, error) {
	var made metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.Object.Raw, &made); err != nil {
		return fmt.Sprintf("decode the DataVolume: %v", err), nil
	}
	ref := metav1.GetControllerOfNoCopy(&made)
	if ref == nil || len(made.OwnerReferences) != 1 {
		return volumeNotAskedFor, nil
	}
	name, ofPool := ref.Name, false
	switch {
	case ref.APIVersion == vmi.GroupVersion.String() && ref.Kind == vmi.VirtualMachines.Kind:
	case ref.APIVersion == vmpool.GroupVersion.String() && ref.Kind == vmpool.VirtualMachinePools.Kind:
		name, ofPool = ref.Name+made.Name[max(0, strings.LastIndex(made.Name, "-")):], true
	default:
		return volumeNotAskedFor, nil
	}
	object := fmt.Sprintf("%s %s/%s", vmi.VirtualMachines.Kind, req.Namespace, name)
	owner, err := o.Owners.VirtualMachines(req.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return object + " does not exist, so virt-controller creates no DataVolume for it", nil
	case err != nil:
		return "", fmt.Errorf("read %s, which controls the DataVolume: %w", object, err)
	case ofPool && !isControlledBy(owner, ref):
		return object + " does not belong to the VirtualMachinePool that is to control the DataVolume", nil
	case !ofPool && owner.UID != ref.UID:
		return object + " is another one than the one that is to control the DataVolume", nil
	case owner.DeletionTimestamp != nil:
		return object + " is being deleted, so virt-controller creates no DataVolume for it", nil
	}
	for i := range owner.Spec.DataVolumeTemplates {
		t := &owner.Spec.DataVolumeTemplates[i]
		if t.ObjectMeta.Name != made.Name || ofPool && t.ObjectMeta.Annotations[vm.KeptAnnotation] != "true" {
			continue
		}
		asked, err := treeOf(t.Spec)
		if err != nil {
			return "", err
		}
		whole, err := tree(req.Object.Raw)
		if err != nil {
			return fmt.Sprintf("decode the DataVolume: %v", err), nil
		}
		if other := changes(field.NewPath("spec"), any(asked), whole["spec"], []any{asked, whole["spec"]}); len(other) > 0 {
			return fmt.Sprintf("%s asks for a DataVolume with another %s", object, other[0]), nil
		}
		return "", nil
	}
	return object + " has no dataVolumeTemplate with this name", nil
}
