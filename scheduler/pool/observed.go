package pool

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// Observed is everything that a decision depends on.
type Observed struct {
	// Pool is the VirtualMachinePool as it is stored.
	Pool *vmpool.VirtualMachinePool
	// VMs are those that the pool controls. They need no template.
	VMs []*vmi.VirtualMachine
	// Instances are the VMIs of these VMs, by their names.
	Instances map[string]*vmi.VirtualMachineInstance
	// Taken are names that begin like those of VMs of the pool and are in use: by a VM, by a
	// VMI, or by a claim for the state of a VM.
	Taken map[string]bool
	// Disks are the DataVolumes and claims by their names that belong to something else than the
	// pool, as to a VM of it, or are being deleted. They are needed of a pool with
	// dataVolumeTemplates only.
	Disks map[string]bool
	// Revisions are the ControllerRevisions of the pool. They need no Data.
	Revisions []*appsv1.ControllerRevision
	// Refusal is why the API server did not accept a VM of the last plan. Nil: it was not
	// asked, or accepted all.
	Refusal *vmi.Finding
	// Profile is what defaults depend on.
	Profile defaults.Profile
	// Unguarded says that Podvisor may be deleted at any moment, also under VMs.
	Unguarded bool
	// StatusWritten is when this process last wrote the status. Zero: never.
	StatusWritten time.Time
	// Now is the present time.
	Now time.Time
}

// member is a VM of the pool that is not being deleted.
type member struct {
	*vmi.VirtualMachine
	// instance is its VMI. Nil: it has none.
	instance *vmi.VirtualMachineInstance
	// ordinal is that of its name, and -1 if it has none.
	ordinal int
}

// members are the VMs of the pool in the order of their ordinals. Leaving are those that are
// being deleted.
func members(o Observed) (all []member, leaving []*vmi.VirtualMachine) {
	for _, v := range o.VMs {
		if v.DeletionTimestamp != nil {
			leaving = append(leaving, v)
			continue
		}
		m := member{VirtualMachine: v, ordinal: Ordinal(o.Pool, v.Name)}
		if i := o.Instances[v.Name]; i != nil && metav1.IsControlledBy(i, v) {
			m.instance = i
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Or(a.ordinal-b.ordinal, cmp.Compare(a.Name, b.Name)) })
	return all, leaving
}

// Name is the name of the VM with the ordinal n.
func Name(p *vmpool.VirtualMachinePool, n int) string { return indexed(p.Name, n) }

// Ordinal is the ordinal in the name of a VM of the pool, and -1 if it has none.
func Ordinal(p *vmpool.VirtualMachinePool, name string) int { return ordinal(p.Name, name) }

// ordinal is the ordinal of a name that begins so, and -1 if it has none.
func ordinal(first, name string) int {
	text, ok := strings.CutPrefix(name, first+"-")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 0 || indexed(first, n) != name {
		return -1
	}
	return n
}

// indexed is the name with the ordinal.
func indexed(first string, n int) string { return first + "-" + strconv.Itoa(n) }

// lacksDisks says that a disk of the VM with the ordinal n is in use by something else.
func lacksDisks(o Observed, n int) bool {
	return slices.ContainsFunc(o.Pool.Spec.VirtualMachineTemplate.Spec.DataVolumeTemplates, func(t vmi.DataVolumeTemplate) bool {
		return o.Disks[indexed(t.ObjectMeta.Name, n)]
	})
}

// revision is the revision of the template that the VM has.
func (m member) revision() string { return m.Labels[vmi.PoolRevisionLabel] }

// runs says that the VM has a VMI that has not ended.
func (m member) runs() bool { return m.instance != nil && !m.instance.Status.Phase.Final() }

// stale says that the VM runs with another template than it has.
func (m member) stale() bool {
	return m.runs() && m.instance.Labels[vmi.PoolRevisionLabel] != m.revision()
}

// restartable says that the VM may be asked to restart.
func (m member) restartable() bool {
	s := m.Spec.Strategy()
	return m.runs() && m.instance.DeletionTimestamp == nil && s != vmi.RunHalted && s != vmi.RunOnce && s != vmi.RunWaitAsReceiver &&
		len(m.Status.StateChangeRequests) == 0 && !m.busy()
}

// failing says that the last start of the VM failed. Its status says so until its loop has seen
// that the next one ran. One that is started by hand stays as it failed, and nothing counts it.
func (m member) failing() bool {
	if m.instance != nil && m.instance.Status.HasRun() {
		return false
	}
	switch m.Spec.Strategy() {
	case vmi.RunAlways, vmi.RunRerunOnFailure, vmi.RunOnce:
		return m.failedStarts() > 0
	case vmi.RunManual:
		return m.instance != nil && m.instance.Status.Phase == vmi.PhaseFailed
	}
	return false
}

// waits are the reasons of VMIs that start once something else has ended or answers, whatever
// their template is.
var waits = []string{instance.PreviousPodExists, instance.ClaimNotProvisioned, instance.SchedulerUnresponsive}

// stuck is why the VMI of the VM does not get as far as a guest: there is no such image or claim,
// for example. That is of the VMI, as the status of the VM is that of a moment ago. Nil: nothing
// holds it, or it waits, also for room.
func (m member) stuck() *vmi.Condition {
	if !m.runs() || m.stale() || m.ends() || m.instance.Status.HasRun() {
		return nil
	}
	if c := m.instance.Status.Condition(vmi.ConditionSynchronized); c != nil && c.Status == corev1.ConditionFalse && !slices.Contains(waits, c.Reason) {
		return c
	}
	return nil
}

// failedStarts is how many starts of the VM failed in a row.
func (m member) failedStarts() int {
	if m.Status.StartFailure == nil {
		return 0
	}
	return m.Status.StartFailure.ConsecutiveFailCount
}

// stops says that a stop of the VM was asked for and has not happened.
func (m member) stops() bool {
	return slices.ContainsFunc(m.Status.StateChangeRequests, func(r vmi.StateChangeRequest) bool { return r.Action == vmi.StopRequest })
}

// ends says that the guest of the VM is asked to end, alone or for a restart.
func (m member) ends() bool {
	return m.stops() || m.instance != nil && m.instance.DeletionTimestamp != nil
}

// ready says that the guest of the VM is ready and stays so. The status of the VM is not
// enough: for a moment after a restart it says what the VMI before was.
func (m member) ready() bool {
	if !m.Status.Ready || !m.runs() || m.ends() {
		return false
	}
	c := m.instance.Status.Condition(vmi.ConditionReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// down says that the VM runs, or is about to, and is not ready.
func (m member) down() bool { return !m.ready() && (m.runs() || m.starts()) }

// starts says that the VM is about to get a VMI: by its run strategy, by a request, or by what
// its status says, which is that of a moment ago. It is not so of one that its user stopped,
// or that powered itself off and stays so.
func (m member) starts() bool {
	asked := slices.ContainsFunc(m.Status.StateChangeRequests, func(r vmi.StateChangeRequest) bool { return r.Action == vmi.StartRequest })
	is := m.Status.PrintableStatus
	switch m.Spec.Strategy() {
	case vmi.RunAlways:
		return true
	case vmi.RunRerunOnFailure, vmi.RunOnce:
		return asked || m.failing() || is != vmi.StatusStopped
	case vmi.RunManual:
		return asked || is != vmi.StatusStopped && is != ""
	}
	return false
}

// busy says that the VM moves to another node, or that its disks are being saved or restored.
func (m member) busy() bool {
	if m.Status.SnapshotInProgress != nil || m.Status.RestoreInProgress != nil {
		return true
	}
	if m.instance == nil {
		return false
	}
	s := m.instance.Status.MigrationState
	return s != nil && !s.Completed && !s.Failed
}
