package subresource

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// operation is one of a JSON patch.
type operation struct {
	op, path string
	value    any
}

// MarshalJSON writes the value of all operations but remove: also of a test for null.
func (o operation) MarshalJSON() ([]byte, error) {
	m := map[string]any{"op": o.op, "path": o.path}
	if o.op != "remove" {
		m["value"] = o.value
	}
	return json.Marshal(m)
}

// errChanged is that the object is not as it was read: what was checked is to be checked
// again.
var errChanged = errors.New("the object has changed")

// attempts is how often a verb is tried while its object changes.
const attempts = 5

// whileItChanges does a verb again while its object changes between the check and the
// patch.
func whileItChanges(r *request, do func() error) error {
	for range attempts {
		if err := do(); !errors.Is(err, errChanged) {
			return err
		}
	}
	of := ofVM
	if r.resource == ofVMIs {
		of = ofVMI
	}
	return conflict(of, r.name, "it changes while it is read; try again")
}

// patched is the error of a patch: errChanged if a test failed. The API server answers
// that with Invalid without a cause; a refusal of the object or of a policy has causes.
func patched(err error) error {
	var s apierrors.APIStatus
	switch {
	case apierrors.IsConflict(err):
		return errChanged
	case !apierrors.IsInvalid(err) || !errors.As(err, &s):
		return err
	case s.Status().Details == nil || len(s.Status().Details.Causes) == 0:
		return errChanged
	}
	return err
}

func (s *Server) patchVM(ctx context.Context, v *vmi.VirtualMachine, dryRun []string, operations []operation, subresources ...string) error {
	b, err := json.Marshal(append([]operation{{"test", "/metadata/uid", v.UID}}, operations...))
	if err != nil {
		return err
	}
	_, err = s.Client.VirtualMachines(v.Namespace).Patch(ctx, v.Name, types.JSONPatchType, b, metav1.PatchOptions{DryRun: dryRun}, subresources...)
	return patched(written(err))
}

func (s *Server) patchVMI(ctx context.Context, v *vmi.VirtualMachineInstance, dryRun []string, operations []operation, subresources ...string) error {
	b, err := json.Marshal(append([]operation{{"test", "/metadata/uid", v.UID}}, operations...))
	if err != nil {
		return err
	}
	_, err = s.Client.VirtualMachineInstances(v.Namespace).Patch(ctx, v.Name, types.JSONPatchType, b, metav1.PatchOptions{DryRun: dryRun}, subresources...)
	return patched(written(err))
}

// written is nil for a patch that was done and whose answer cannot be decoded.
func written(err error) error {
	if errors.Is(err, vmi.ErrUnreadable) {
		return nil
	}
	return err
}

// setStrategy are the operations that change the run strategy from what it is, in whichever
// field it is written.
func setStrategy(v *vmi.VirtualMachine, to vmi.RunStrategy) []operation {
	switch s := v.Spec; {
	case s.RunStrategy != nil:
		return []operation{{"test", "/spec/runStrategy", *s.RunStrategy}, {"replace", "/spec/runStrategy", to}}
	case s.Running != nil:
		return []operation{{"test", "/spec/running", *s.Running}, {"replace", "/spec/running", to == vmi.RunAlways}}
	}
	return []operation{{"test", "/metadata/resourceVersion", v.ResourceVersion}, {"add", "/spec/runStrategy", to}}
}

// enqueue are the operations on the status that queue the requests. A single stop replaces
// what is queued; with anything else, the queue must be empty.
func enqueue(v *vmi.VirtualMachine, requests ...vmi.StateChangeRequest) ([]operation, error) {
	if reflect.ValueOf(v.Status).IsZero() {
		// The version is tested, as the whole status is written.
		return []operation{{"test", "/metadata/resourceVersion", v.ResourceVersion},
			{"add", "/status", map[string]any{"stateChangeRequests": requests}}}, nil
	}
	const at = "/status/stateChangeRequests"
	var out []operation
	switch now := v.Status.StateChangeRequests; {
	case len(now) == 0:
		out = append(out, operation{"test", "/metadata/resourceVersion", v.ResourceVersion}, operation{"add", at, requests})
	case len(requests) == 1 && requests[0].Action == vmi.StopRequest:
		out = append(out, operation{"test", at, now}, operation{"replace", at, requests})
	default:
		return nil, conflict(ofVM, v.Name, "unable to complete request: stop/start already underway; try again when status.stateChangeRequests is empty")
	}
	if v.Status.StartFailure != nil {
		out = append(out, operation{"remove", "/status/startFailure", nil})
	}
	return out, nil
}

// setGrace are the operations that give a VMI another grace period. Nil: they restore none.
func setGrace(v *vmi.VirtualMachineInstance, from, to *int64) []operation {
	const at = "/spec/terminationGracePeriodSeconds"
	switch {
	case from == nil && to == nil:
		return nil
	case from == nil:
		return []operation{{"test", "/metadata/resourceVersion", v.ResourceVersion}, {"add", at, *to}}
	case to == nil:
		return []operation{{"test", at, *from}, {"remove", at, nil}}
	}
	return []operation{{"test", at, *from}, {"replace", at, *to}}
}
