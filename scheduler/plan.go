package scheduler

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
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
// is the one that the plan is for. The actions are the types of this package, whose fields
// a reader of the plan may use in a type switch; its String is one line for people. All are
// carried out by Execute of scheduler/controller, so no other package can add one.
type Action interface {
	fmt.Stringer
	action()
}

// AddFinalizer adds the finalizer to the object.
type AddFinalizer struct{ Finalizer string }

// RemoveFinalizer removes the finalizer from the object.
type RemoveFinalizer struct{ Finalizer string }

// SetLabel makes the label of the object this value.
type SetLabel struct{ Key, Value string }

// RemoveLabel removes the label of the object.
type RemoveLabel struct{ Key string }

// ChangeLabels makes labels of the object these values, and removes others, in one write.
// The same write removes annotations.
type ChangeLabels struct {
	Labels      map[string]string
	Removed     []string
	Annotations []string
}

// DeleteObject deletes the object, if it still has its UID.
type DeleteObject struct{}

// CreatePod creates a pod that the object controls, or that its VMI does. A pod of that name
// that was made for the same is as good.
type CreatePod struct{ Pod *corev1.Pod }

// CreateClaim creates a PersistentVolumeClaim for the object. One of that name is as
// good: the next plan decides about it.
type CreateClaim struct{ Claim *corev1.PersistentVolumeClaim }

// ChangeClaim makes labels of the PersistentVolumeClaim with this name in the object's namespace
// these values, and removes others, in one write, if it still has the UID.
type ChangeClaim struct {
	Name    string
	UID     types.UID
	Labels  map[string]string
	Removed []string
}

// DeleteClaim deletes the PersistentVolumeClaim with this name in the object's namespace, if it
// still has the UID.
type DeleteClaim struct {
	Name string
	UID  types.UID
}

// DeletePod deletes the pod with this name in the object's namespace, if it still
// has the UID.
type DeletePod struct {
	Name string
	UID  types.UID
}

// SetPodCondition makes the condition of the pod with this name in the object's
// namespace what it says, if the pod still has the UID.
type SetPodCondition struct {
	Name      string
	UID       types.UID
	Condition corev1.PodCondition
}

// AnnotatePod makes the annotation of the pod with this name in the object's namespace what
// it says, or removes it if Value is empty, if the pod still has the UID.
type AnnotatePod struct {
	Name       string
	UID        types.UID
	Key, Value string
}

// CreateInstance creates a VMI that the object controls. A VMI of that name that the
// object controls already is as good.
type CreateInstance struct{ Instance *vmi.VirtualMachineInstance }

// DeleteInstance deletes the VMI, if it is still the same: one that has changed
// since may have been orphaned, and must stay.
type DeleteInstance struct{ Instance *vmi.VirtualMachineInstance }

// AdoptInstance makes the object the controller of the VMI, which has none.
type AdoptInstance struct{ Instance *vmi.VirtualMachineInstance }

// ReleaseInstance makes the object no longer the controller of the VMI.
type ReleaseInstance struct{ Instance *vmi.VirtualMachineInstance }

// ChangeInstance sets annotations of the VMI, and the link states of its interfaces by
// their names, in one write.
type ChangeInstance struct {
	Instance    *vmi.VirtualMachineInstance
	Annotations map[string]string
	Links       map[string]vmi.InterfaceState
}

// CreateVM creates a VM that the object controls. A VM of that name that the object controls
// already is as good.
type CreateVM struct{ VM *vmi.VirtualMachine }

// DeleteVM deletes the VM, if it is still the same: one that has changed since may have been
// taken out of the pool, and must stay.
type DeleteVM struct{ VM *vmi.VirtualMachine }

// ChangeVM makes the spec of the VM From that of To, and adds the labels and annotations of
// To, if From has not changed. Failed starts of From count no more, and do not delay the next.
type ChangeVM struct{ From, To *vmi.VirtualMachine }

// RestartVM asks for a restart of the VM, whose VMI is Instance, as the verb restart does. A
// VM for which that is refused is left as it is.
type RestartVM struct {
	VM       *vmi.VirtualMachine
	Instance *vmi.VirtualMachineInstance
}

// CreateMigration creates a migration of the object, a VMI. One of that name is as good.
type CreateMigration struct {
	Migration *vmi.VirtualMachineInstanceMigration
	// Why is said in the event, as a sentence without its end.
	Why string
}

// EvictPod asks for the eviction of the pod with this name in the object's namespace, if it
// still has the UID, and says in an event of the object, a VMI, what was answered.
type EvictPod struct {
	Name string
	UID  types.UID
	// Why is said in the event, as a sentence without its end.
	Why string
}

// WriteInstance makes the labels and the status of the VMI From those of To, if it has not
// changed: the labels first, each in a write of its own. Nothing else of To is written.
type WriteInstance struct{ From, To *vmi.VirtualMachineInstance }

// EmitFor writes an event about the VMI.
type EmitFor struct {
	Instance *vmi.VirtualMachineInstance
	Emit
}

// AnnounceGuest has the handler of the source announce the guest of the VMI that is the object
// in its networks: the pod that it moves to comes up on them with the same MAC addresses. It
// is begun, and not waited for.
type AnnounceGuest struct{ Instance *vmi.VirtualMachineInstance }

// AcceptMigration has the handler of the target accept the migration of the VMI that is the
// object, from the handler of the source. It is begun, and not waited for.
type AcceptMigration struct {
	Instance *vmi.VirtualMachineInstance
	// Pod is the UID of the target.
	Pod types.UID
}

// StartMigration has the handler of the source begin the migration of the VMI that is the
// object, or go on with it. It is begun, and not waited for.
type StartMigration struct {
	Instance *vmi.VirtualMachineInstance
	// Pod is the UID of the target.
	Pod      types.UID
	Settings protocol.MigrationSettings
	// Over says that the guest will never run at the target, and Held that it is not to run on
	// at the source yet.
	Over, Held bool
}

// AbortMigration has the handler of the source end the migration of the VMI that is the
// object. It is begun, and not waited for.
type AbortMigration struct{ Instance *vmi.VirtualMachineInstance }

// CreateDataVolume creates a DataVolume that the object controls. One of that name
// that the object controls already is as good.
type CreateDataVolume struct{ DataVolume *unstructured.Unstructured }

// CreateRevision creates a ControllerRevision that the object controls. One of that
// name that the object controls already is as good.
type CreateRevision struct{ Revision *appsv1.ControllerRevision }

// DeleteRevision deletes the ControllerRevision with this name, if it still has the
// UID.
type DeleteRevision struct {
	Name string
	UID  types.UID
}

// SetRunStrategy makes the run strategy of the object, a VirtualMachine, this one,
// if it is still From.
type SetRunStrategy struct{ From, To vmi.RunStrategy }

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
func (ChangeLabels) action()    {}
func (DeleteObject) action()    {}
func (RemoveFinalizer) action() {}
func (RemoveLabel) action()     {}
func (SetLabel) action()        {}
func (CreatePod) action()       {}
func (DeletePod) action()       {}
func (SetPodCondition) action() {}
func (WriteStatus[T]) action()  {}
func (Emit) action()            {}

func (CreateInstance) action()   {}
func (DeleteInstance) action()   {}
func (AdoptInstance) action()    {}
func (ReleaseInstance) action()  {}
func (ChangeInstance) action()   {}
func (CreateVM) action()         {}
func (DeleteVM) action()         {}
func (ChangeVM) action()         {}
func (RestartVM) action()        {}
func (CreateMigration) action()  {}
func (EvictPod) action()         {}
func (AnnotatePod) action()      {}
func (WriteInstance) action()    {}
func (EmitFor) action()          {}
func (AnnounceGuest) action()    {}
func (AcceptMigration) action()  {}
func (StartMigration) action()   {}
func (AbortMigration) action()   {}
func (CreateClaim) action()      {}
func (ChangeClaim) action()      {}
func (DeleteClaim) action()      {}
func (CreateDataVolume) action() {}
func (CreateRevision) action()   {}
func (DeleteRevision) action()   {}
func (SetRunStrategy) action()   {}
