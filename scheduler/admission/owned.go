package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/internal/vmi/bounds"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config"
	decoder "github.com/podvisor/podvisor/vmi/decode"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// Owned answers admission reviews at [OwnedPath]: it refuses a VMI that
// virt-controller creates, unless the VirtualMachine or the replica set that controls
// it exists and asks for it. So the token of virt-controller gives no guest of one's
// own besides the Secrets and disks of others. The same holds for DataVolumes: what
// fills one sends the Secrets that it names to its source. A pod that it creates must be
// what scheduler/pod renders for the stored VMI that controls it, a VM that it creates or
// changes what scheduler/pool makes of the pool that controls it, a ControllerRevision of an
// instance type what its VM names, and a pod that it names
// in the status of a VMI one that was made for that VMI: see [Launchers].
//
// What decides what a guest is and reads is compared with the template: disks, volumes,
// networks, credentials, devices, firmware. Where it runs, how large it is, and labels
// and annotations of others are not: admission of others may set them, and they give a
// VMI nothing. A difference that only lasts until all replicas have the same
// configuration of the cluster, or the same version of the owner, ends with the next
// try.
type Owned struct {
	// Owners reads the owners of VMIs, and VMIs, which own pods. Required.
	Owners *client.Client
	// Launchers is what pods are compared with. Required.
	Launchers Launchers
	// Settings returns the configuration of the cluster that is in force. Nil: the
	// default configuration.
	Settings func() config.Config
	// Bindings are how interfaces may be bound to the networks of their pod, as in the
	// configuration of virt-controller: the MAC addresses of a VM's guest depend on them.
	// Nil: [network.Bindings].
	Bindings []network.Binding
	// Lookup reads the instance types and the preferences that VMs name. Nil: those of
	// VMs that name one are refused.
	Lookup func(context.Context) instancetype.Lookup
	// Logger logs each VMI that is refused. Nil: nothing is logged.
	Logger *slog.Logger
}

// ServeHTTP answers one review.
func (o Owned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer(w, r, o.Logger, func(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		resource := schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}
		why, err := o.refusal(ctx, req)
		switch {
		case errors.Is(err, errOtherBuild):
			// The API server keeps its connections to replicas: the next may lead to another.
			w.Header().Set("Connection", "close")
			later := apierrors.NewServiceUnavailable(err.Error())
			later.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
			return refused(later)
		case err != nil:
			return refused(apierrors.NewServiceUnavailable(err.Error()))
		case why != "":
			return refused(apierrors.NewForbidden(resource, nameOf(req), errors.New(why)))
		}
		return allowed()
	})
}

// refusal says why virt-controller must not create the VMI, or nothing. The error is
// that this is not known.
func (o Owned) refusal(ctx context.Context, req *admissionv1.AdmissionRequest) (string, error) {
	if fault := bounds.Fault(req.Kind.Kind, req.Object.Raw); fault != nil {
		return fault.Error(), nil
	}
	switch {
	case req.Kind.Kind == dataVolume:
		return o.volumeRefusal(ctx, req)
	case req.Kind.Kind == revisionKind:
		return o.revisionRefusal(ctx, req)
	case req.Kind.Kind == podKind:
		return o.podRefusal(ctx, req)
	case req.Kind.Kind == vmi.VirtualMachines.Kind:
		return o.vmRefusal(ctx, req)
	case req.SubResource == "status":
		return o.statusRefusal(ctx, req)
	}
	made := &vmi.VirtualMachineInstance{}
	if err := decoder.Into(req.Object.Raw, made); err != nil {
		return fmt.Sprintf("decode the VirtualMachineInstance: %v", err), nil
	}
	made.Namespace = req.Namespace
	ref := metav1.GetControllerOfNoCopy(made)
	if ref == nil || len(made.OwnerReferences) != 1 {
		return notAskedFor, nil
	}
	m, ok := makerOf(*ref)
	if !ok {
		return notAskedFor, nil
	}
	profile := inForce(o.Settings).Defaults
	owner, asked, err := m.asked(ctx, o.Owners, ref.Name, made, decided{profile, o.Bindings, lookup(ctx, o.Lookup)})
	object := fmt.Sprintf("%s %s/%s", ref.Kind, made.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return object + " does not exist, so virt-controller creates no VMI for it", nil
	case err != nil:
		return "", fmt.Errorf("read %s, which controls the VMI: %w", object, err)
	case owner.GetUID() != ref.UID:
		return object + " is another one than the one that is to control the VMI", nil
	case owner.GetDeletionTimestamp() != nil:
		return object + " is being deleted, so virt-controller creates no VMI for it", nil
	case asked == nil:
		return object + " has no template, or asks for a VMI of another name", nil
	}
	if other := differences(asked, made, profile, o.Launchers.Fields); len(other) > 0 {
		return fmt.Sprintf("%s asks for a VMI with another %s", object, strings.Join(other, ", ")), nil
	}
	return "", nil
}

// lookup reads until ctx ends. Nil: it finds nothing.
func lookup(ctx context.Context, by func(context.Context) instancetype.Lookup) instancetype.Lookup {
	if by == nil {
		return instancetype.Nothing()
	}
	return by(ctx)
}

const notAskedFor = "virt-controller may create VMIs only that one VirtualMachine or VirtualMachineInstanceReplicaSet controls"
