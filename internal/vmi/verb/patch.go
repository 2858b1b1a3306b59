package verb

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/jsonpatch"
	"github.com/podvisor/podvisor/vmi"
)

// Patch is a JSON patch of the VM or VMI that a request names. It tests what it depends on:
// a test that fails means that the object has changed, and is to be decided on again.
type Patch struct {
	// Of is [OfVM] or [OfVMI].
	Of  schema.GroupResource
	UID types.UID
	// Subresource is "status" or empty.
	Subresource string
	// DryRun is empty or ["All"].
	DryRun     []string
	Operations []jsonpatch.Operation
	// Undo is done if a later patch of the plan fails. Empty: nothing.
	Undo []jsonpatch.Operation
}

// JSON is the patch with the operations. It is for no other object of the name.
func (p Patch) JSON(operations []jsonpatch.Operation) ([]byte, error) {
	return json.Marshal(append([]jsonpatch.Operation{jsonpatch.Test("/metadata/uid", p.UID)}, operations...))
}

func patchVM(v *vmi.VirtualMachine, dryRun []string, operations []jsonpatch.Operation, subresource string) Patch {
	return Patch{Of: OfVM, UID: v.UID, Subresource: subresource, DryRun: dryRun, Operations: operations}
}

func patchVMI(v *vmi.VirtualMachineInstance, dryRun []string, operations []jsonpatch.Operation, subresource string) Patch {
	return Patch{Of: OfVMI, UID: v.UID, Subresource: subresource, DryRun: dryRun, Operations: operations}
}

const ofStatus = "status"

// setStrategy are the operations that change the run strategy from what it is, in whichever
// field it is written.
func setStrategy(v *vmi.VirtualMachine, to vmi.RunStrategy) []jsonpatch.Operation {
	switch s := v.Spec; {
	case s.RunStrategy != nil:
		return []jsonpatch.Operation{jsonpatch.Test("/spec/runStrategy", *s.RunStrategy), jsonpatch.Replace("/spec/runStrategy", to)}
	case s.Running != nil:
		return []jsonpatch.Operation{jsonpatch.Test("/spec/running", *s.Running), jsonpatch.Replace("/spec/running", to == vmi.RunAlways)}
	}
	return []jsonpatch.Operation{jsonpatch.Test("/metadata/resourceVersion", v.ResourceVersion), jsonpatch.Add("/spec/runStrategy", to)}
}

// enqueue are the operations on the status that queue the requests. A single stop replaces
// what is queued; with anything else, the queue must be empty. That the VM stops is said in
// the same write, so that whoever asks and then looks does not see it as ready still.
func enqueue(v *vmi.VirtualMachine, now time.Time, requests ...vmi.StateChangeRequest) ([]jsonpatch.Operation, error) {
	if reflect.ValueOf(v.Status).IsZero() {
		// The version is tested, as the whole status is written.
		return []jsonpatch.Operation{jsonpatch.Test("/metadata/resourceVersion", v.ResourceVersion),
			jsonpatch.Add("/status", map[string]any{"stateChangeRequests": requests})}, nil
	}
	const at = "/status/stateChangeRequests"
	var out []jsonpatch.Operation
	switch queued := v.Status.StateChangeRequests; {
	case len(queued) == 0:
		out = append(out, jsonpatch.Test("/metadata/resourceVersion", v.ResourceVersion), jsonpatch.Add(at, requests))
		if requests[0].Action == vmi.StopRequest {
			out = append(out, stopping(v.Status, metav1.NewTime(now))...)
		}
	case len(requests) == 1 && requests[0].Action == vmi.StopRequest:
		out = append(out, jsonpatch.Test(at, queued), jsonpatch.Replace(at, requests))
	default:
		return nil, conflict(OfVM, v.Name, "unable to complete request: stop/start already underway; try again when status.stateChangeRequests is empty")
	}
	if v.Status.StartFailure != nil {
		out = append(out, jsonpatch.Remove("/status/startFailure"))
	}
	return out, nil
}

// SetStopping makes the status that of a VM whose VMI is being deleted, or is to be: the verbs
// and the controller of VMs write the same.
func SetStopping(s *vmi.VirtualMachineStatus, now metav1.Time) {
	s.PrintableStatus, s.Ready = vmi.StatusStopping, false
	s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning, Message: "the VMI is being deleted"}, now)
}

// stopping are the operations that make the status that of a VM that stops.
func stopping(s vmi.VirtualMachineStatus, now metav1.Time) []jsonpatch.Operation {
	s.Conditions = slices.Clone(s.Conditions)
	SetStopping(&s, now)
	return []jsonpatch.Operation{
		jsonpatch.Add("/status/printableStatus", s.PrintableStatus), jsonpatch.Add("/status/ready", s.Ready), jsonpatch.Add("/status/conditions", s.Conditions),
	}
}

// setGrace are the operations that give a VMI another grace period. Nil: they restore none.
func setGrace(v *vmi.VirtualMachineInstance, from, to *int64) []jsonpatch.Operation {
	const at = "/spec/terminationGracePeriodSeconds"
	switch {
	case from == nil && to == nil:
		return nil
	case from == nil:
		return []jsonpatch.Operation{jsonpatch.Test("/metadata/resourceVersion", v.ResourceVersion), jsonpatch.Add(at, *to)}
	case to == nil:
		return []jsonpatch.Operation{jsonpatch.Test(at, *from), jsonpatch.Remove(at)}
	}
	return []jsonpatch.Operation{jsonpatch.Test(at, *from), jsonpatch.Replace(at, *to)}
}
