package scheduler

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// Plan is what is to be done for one object of any kind. The zero value is:
// nothing.
type Plan struct {
	// Actions are done in order, until one does not succeed.
	Actions []Action
	// Recheck is the time after which the object is to be decided on again even if
	// nothing changes. 0: never.
	Recheck time.Duration
}

// Action is one thing to do: a plain value that says what, not how. "The object"
// is the one that the plan is for.
type Action interface{ action() }

// AddFinalizer adds [vmi.Finalizer] to the object.
type AddFinalizer struct{}

// RemoveFinalizer removes [vmi.Finalizer] from the object.
type RemoveFinalizer struct{}

// CreatePod creates a pod that the object controls. A pod of that name that the
// object controls already is as good.
type CreatePod struct{ Pod *corev1.Pod }

// DeletePod deletes the pod with this name in the object's namespace, if it still
// has the UID.
type DeletePod struct {
	Name string
	UID  types.UID
}

// WriteStatus makes the status of the object that of Object, which has the type T
// of the kind. Nothing else of Object is written.
type WriteStatus[T any] struct{ Object T }

// Emit writes an event about the object.
type Emit struct {
	// Warning says that something is wrong.
	Warning bool
	vmi.Finding
}

func (AddFinalizer) action()    {}
func (RemoveFinalizer) action() {}
func (CreatePod) action()       {}
func (DeletePod) action()       {}
func (WriteStatus[T]) action()  {}
func (Emit) action()            {}
