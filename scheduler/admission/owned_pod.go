package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// podKind is the kind of what VMIs run in.
const podKind = "Pod"

const podNotAskedFor = "virt-controller may create pods with the token of a service account only that one VirtualMachineInstance controls"

// podRefusal says why virt-controller must not create the pod with the token of a
// service account, or nothing: the VMI that controls it must have a volume with the
// token of that account. The error is that this is not known.
func (o Owned) podRefusal(ctx context.Context, req *admissionv1.AdmissionRequest) (string, error) {
	var made corev1.Pod
	if err := json.Unmarshal(req.Object.Raw, &made); err != nil {
		return fmt.Sprintf("decode the Pod: %v", err), nil
	}
	ref := metav1.GetControllerOfNoCopy(&made)
	if ref == nil || len(made.OwnerReferences) != 1 || ref.APIVersion != vmi.GroupVersion.String() || ref.Kind != vmi.VirtualMachineInstances.Kind {
		return podNotAskedFor, nil
	}
	object := fmt.Sprintf("%s %s/%s", ref.Kind, req.Namespace, ref.Name)
	owner, err := o.Owners.VirtualMachineInstances(req.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return object + " does not exist, so virt-controller creates no pod with a token for it", nil
	case err != nil:
		return "", fmt.Errorf("read %s, which controls the pod: %w", object, err)
	case owner.UID != ref.UID:
		return object + " is another one than the one that is to control the pod", nil
	case owner.DeletionTimestamp != nil:
		return object + " is being deleted, so virt-controller creates no pod with a token for it", nil
	}
	account := made.Spec.ServiceAccountName
	if !slices.ContainsFunc(owner.Spec.Volumes, func(v vmi.Volume) bool {
		return v.ServiceAccount != nil && v.ServiceAccount.ServiceAccountName == account
	}) {
		return fmt.Sprintf("%s has no volume with the token of the service account %q", object, account), nil
	}
	return "", nil
}
