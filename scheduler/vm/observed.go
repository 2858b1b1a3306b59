package vm

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/revision"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// Observed is everything that a decision depends on.
type Observed struct {
	// VM is the VirtualMachine as it is stored.
	VM *vmi.VirtualMachine
	// VMI is the VMI of the VM's name, whoever controls it. Nil: there is none.
	VMI *vmi.VirtualMachineInstance
	// Revisions are the ControllerRevisions that VMIs of the VM were started from, also
	// those that the deletion of the VM has left without an owner. Only the one that
	// Compared returns needs its Data.
	Revisions []*appsv1.ControllerRevision
	// Sizes are the ControllerRevisions that hold instance types and preferences, of the VM
	// and of others. They need no Data.
	Sizes []*appsv1.ControllerRevision
	// Found is what the references lead to that Sought returns.
	Found []instancetype.Found
	// Renamed is what the references lead to that SoughtRenamed returns.
	Renamed []instancetype.Found
	// Claims are the claims that the volumes of the template name, by their names. A
	// nil value: the claim does not exist. They are needed while a VMI is started
	// only.
	Claims map[string]*corev1.PersistentVolumeClaim
	// DataVolumes are those that the dataVolumeTemplates name. They are needed while
	// there is no VMI only.
	DataVolumes DataVolumes
	// Profile is what the cluster makes of what a template leaves open.
	Profile defaults.Profile
	// Bindings are how interfaces may be bound to the networks of their pod, as in the
	// handlers' configuration. Nil: [network.Bindings].
	Bindings []network.Binding
	// LiveUpdate says that changes of processors, memory and placement that a running
	// VMI can take need no restart: vmRolloutStrategy is LiveUpdate.
	LiveUpdate bool
	// Refusal is why the API server did not accept the VMI of the last plan. Nil: it
	// was not asked, or accepted it.
	Refusal *vmi.Finding
	// Unguarded says that Podvisor may be deleted at any moment, also under VMs.
	Unguarded bool
	// Jitter, from 0 to 1, spreads the starts of VMs that failed at the same time.
	Jitter float64
	// Now is the present time.
	Now time.Time
}

// own is the VMI that the VM controls, or nil.
func (o Observed) own() *vmi.VirtualMachineInstance {
	if o.VMI != nil && metav1.IsControlledBy(o.VMI, o.VM) {
		return o.VMI
	}
	return nil
}

// state is what the VM's own VMI is, as far as run strategies care.
type state int

const (
	absent    state = iota // there is none
	alive                  // it has not ended
	succeeded              // its guest powered itself off, or its user stopped it
	failed                 // it ended otherwise, also with its pod
)

func (o Observed) state() state {
	switch v := o.own(); {
	case v == nil:
		return absent
	case v.Status.Phase == vmi.PhaseSucceeded && !v.Status.Disrupted():
		return succeeded
	case v.Status.Phase.Final():
		return failed
	}
	return alive
}

// RevisionApp is the AppLabel of every start revision.
const RevisionApp = revision.App
