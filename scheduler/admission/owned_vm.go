package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	decoder "github.com/podvisor/podvisor/vmi/decode"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

const vmNotAskedFor = "virt-controller may create and change VirtualMachines only that one VirtualMachinePool controls"

// vmRefusal says why virt-controller must not create the VM, or change it so, or nothing: the
// pool that controls it must ask for its spec. When a VM runs, its users decide once it is
// there. The error is that this is not known.
func (o Owned) vmRefusal(ctx context.Context, req *admissionv1.AdmissionRequest) (string, error) {
	made := &vmi.VirtualMachine{}
	if err := decoder.Into(req.Object.Raw, made); err != nil {
		return fmt.Sprintf("decode the VirtualMachine: %v", err), nil
	}
	ref := metav1.GetControllerOfNoCopy(made)
	if ref == nil || len(made.OwnerReferences) != 1 || ref.APIVersion != vmpool.GroupVersion.String() || ref.Kind != vmpool.VirtualMachinePools.Kind {
		return vmNotAskedFor, nil
	}
	object := fmt.Sprintf("%s %s/%s", ref.Kind, req.Namespace, ref.Name)
	owner, err := client.Of(o.Owners, vmpool.VirtualMachinePools, req.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return object + " does not exist, so virt-controller writes no VirtualMachine for it", nil
	case err != nil:
		return "", fmt.Errorf("read %s, which controls the VirtualMachine: %w", object, err)
	case owner.UID != ref.UID:
		return object + " is another one than the one that is to control the VirtualMachine", nil
	case owner.DeletionTimestamp != nil:
		return object + " is being deleted, so virt-controller writes no VirtualMachine for it", nil
	}
	n := pool.Ordinal(owner, made.Name)
	if n < 0 || owner.Spec.VirtualMachineTemplate == nil {
		return object + " has no template, or asks for a VirtualMachine of another name", nil
	}
	asked, err := pool.VM(owner, n)
	if err != nil {
		return fmt.Sprintf("%s: %v", object, err), nil
	}
	if req.Operation == admissionv1.Update {
		asked.Spec.RunStrategy, asked.Spec.Running = made.Spec.RunStrategy, made.Spec.Running
	}
	other, err := o.vmDifferences(ctx, asked, made)
	if err != nil {
		return "", err
	}
	if len(other) > 0 {
		return fmt.Sprintf("%s asks for a VirtualMachine with another %s", object, strings.Join(other, ", ")), nil
	}
	return "", nil
}

// vmDifferences are the fields in which the VM that was made differs from the one that was
// asked for, as differences has them of VMIs. Both are completed first, also by the preference
// that they name.
func (o Owned) vmDifferences(ctx context.Context, asked, made *vmi.VirtualMachine) ([]string, error) {
	found, err := lookup(ctx, o.Lookup).Find(made.Namespace, instancetype.References(asked))
	if err != nil {
		return nil, err
	}
	_, preference := instancetype.SpecsOf(found)
	profile := inForce(o.Settings).Defaults
	complete := func(v *vmi.VirtualMachine) *vmi.VirtualMachine {
		return defaults.VirtualMachine(instancetype.Complete(v, preference), profile)
	}
	a, b := complete(asked), complete(made)
	if a.Spec.Template == nil || b.Spec.Template == nil {
		return []string{"spec.template"}, nil
	}
	was, is := a.Spec.Template, b.Spec.Template
	out := differentNotes("metadata.labels", was.ObjectMeta.Labels, is.ObjectMeta.Labels)
	out = append(out, differentNotes("metadata.annotations", was.ObjectMeta.Annotations, is.ObjectMeta.Annotations)...)
	out = slices.DeleteFunc(out, pod.Admitted{Fields: o.Launchers.Fields}.Sets)
	slices.Sort(out)
	for i := range out {
		out[i] = "spec.template." + out[i]
	}
	for _, t := range []*vmi.VirtualMachineInstanceTemplateSpec{was, is} {
		free(&t.Spec)
		t.ObjectMeta = metav1.ObjectMeta{}
	}
	from, err := treeOf(a.Spec)
	to, err2 := treeOf(b.Spec)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	for _, f := range changes(field.NewPath("spec"), from, to, []any{from, to}) {
		out = append(out, f.String())
	}
	return out[:min(len(out), maxChanges)], nil
}
