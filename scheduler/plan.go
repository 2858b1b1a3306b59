package scheduler

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// Plan is what is to be done for one object. The zero value is: nothing.
type Plan struct {
	// Actions are done in order, until one does not succeed.
	Actions []Action
	// Recheck is the time after which the object is to be looked at again even
	// if nothing changes. 0: never.
	Recheck time.Duration
}

// Action is one thing to do: a plain value that says what, not how.
type Action interface{ action() }

// AddFinalizer adds [vmi.Finalizer] to the machine.
type AddFinalizer struct{}

// RemoveFinalizer removes [vmi.Finalizer] from the machine.
type RemoveFinalizer struct{}

// CreatePod creates the machine's pod. That it exists already is as good, if it
// is the machine's.
type CreatePod struct{ Pod *corev1.Pod }

// DeletePod deletes the pod with this name in the machine's namespace, if it
// still has the UID.
type DeletePod struct {
	Name string
	UID  types.UID
}

// WriteStatus makes the machine's status this one.
type WriteStatus struct {
	Status vmi.VirtualMachineInstanceStatus
}

// Emit tells people of something that happened to the machine.
type Emit struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type    string
	Reason  string
	Message string
}

func (AddFinalizer) action()    {}
func (RemoveFinalizer) action() {}
func (CreatePod) action()       {}
func (DeletePod) action()       {}
func (WriteStatus) action()     {}
func (Emit) action()            {}

// Finding is a fact that stands in the way: a reason in one word, for programs,
// and a message, for people. It becomes a condition and the text of an event.
type Finding struct {
	Reason  string
	Message string
}
