package admission

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/revision"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// revisionKind is the kind of what holds the instance type and the preference of a VM.
const revisionKind = "ControllerRevision"

const revisionNotAskedFor = "virt-controller may create ControllerRevisions of instance types and preferences only that one VirtualMachine controls"

// revisionRefusal says why virt-controller must not create the ControllerRevision that is to
// hold an instance type or a preference, or nothing: it must hold what the VM that controls it
// names, as that is stored. A guest gets its annotations from there, and so its networks. The
// error is that this is not known.
func (o Owned) revisionRefusal(ctx context.Context, req *admissionv1.AdmissionRequest) (string, error) {
	made := &appsv1.ControllerRevision{}
	if err := json.Unmarshal(req.Object.Raw, made); err != nil {
		return fmt.Sprintf("decode the ControllerRevision: %v", err), nil
	}
	ref := metav1.GetControllerOfNoCopy(made)
	if ref == nil || len(made.OwnerReferences) != 1 || ref.APIVersion != vmi.GroupVersion.String() || ref.Kind != vmi.VirtualMachines.Kind {
		return revisionNotAskedFor, nil
	}
	object := fmt.Sprintf("%s %s/%s", ref.Kind, req.Namespace, ref.Name)
	owner, err := o.Owners.VirtualMachines(req.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return object + " does not exist, so virt-controller creates no ControllerRevision for it", nil
	case err != nil:
		return "", fmt.Errorf("read %s, which controls the ControllerRevision: %w", object, err)
	case owner.UID != ref.UID:
		return object + " is another one than the one that is to control the ControllerRevision", nil
	}
	// One that a version before this one has made is copied, since the object may be gone.
	var named []instancetype.Reference
	for _, r := range instancetype.References(owner) {
		stored := r
		stored.Status, stored.RevisionName = nil, ""
		named = append(named, r, stored)
	}
	found, err := lookup(ctx, o.Lookup).Find(req.Namespace, named)
	if err != nil {
		return "", fmt.Errorf("read what %s names: %w", object, err)
	}
	for _, f := range found {
		if f.Object == nil || f.Revision != "" && !f.Former {
			continue
		}
		asked, err := revision.Holding(owner, f.Object)
		if err != nil {
			return "", err
		}
		if revision.Same(asked, made) {
			return "", nil
		}
	}
	return object + " names no instance type and no preference, as they are stored now, that the ControllerRevision holds", nil
}
