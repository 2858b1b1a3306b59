package admission

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// dataVolume is the kind of what a VM's dataVolumeTemplates become.
const dataVolume = "DataVolume"

const volumeNotAskedFor = "virt-controller may create DataVolumes only that one VirtualMachine controls"

// volumeRefusal says why virt-controller must not create the DataVolume, or nothing: a
// template of the VM that controls it must have its name and its spec. The error is
// that this is not known.
func (o Owned) volumeRefusal(ctx context.Context, req *admissionv1.AdmissionRequest) (string, error) {
	var made metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.Object.Raw, &made); err != nil {
		return fmt.Sprintf("decode the DataVolume: %v", err), nil
	}
	ref := metav1.GetControllerOfNoCopy(&made)
	if ref == nil || len(made.OwnerReferences) != 1 || ref.APIVersion != vmi.GroupVersion.String() || ref.Kind != vmi.VirtualMachines.Kind {
		return volumeNotAskedFor, nil
	}
	object := fmt.Sprintf("%s %s/%s", ref.Kind, req.Namespace, ref.Name)
	owner, err := o.Owners.VirtualMachines(req.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return object + " does not exist, so virt-controller creates no DataVolume for it", nil
	case err != nil:
		return "", fmt.Errorf("read %s, which controls the DataVolume: %w", object, err)
	case owner.UID != ref.UID:
		return object + " is another one than the one that is to control the DataVolume", nil
	case owner.DeletionTimestamp != nil:
		return object + " is being deleted, so virt-controller creates no DataVolume for it", nil
	}
	for i := range owner.Spec.DataVolumeTemplates {
		t := &owner.Spec.DataVolumeTemplates[i]
		if t.ObjectMeta.Name != made.Name {
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
