package replicaset

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// steadyAfter is how long a guest runs at least that does not count as failed when it
// ends.
const steadyAfter = 30 * time.Second

// failures is the number of VMIs in a row that failed up to this one, which has ended.
// It is 0 if the guest ran for some time.
func failures(v *vmi.VirtualMachineInstance) int {
	began := v.Status.PhaseSince(vmi.PhaseRunning)
	if !began.IsZero() && v.Status.PhaseSince(v.Status.Phase).Sub(began) >= steadyAfter {
		return 0
	}
	return before(v) + 1
}

// before is the number of VMIs in a row that failed before this one.
func before(v *vmi.VirtualMachineInstance) int {
	n, err := strconv.Atoi(v.Annotations[FailuresAnnotation])
	if err != nil {
		return 0
	}
	return max(0, n)
}

// backOff is how long a VMI that has ended stays before it is replaced, so that its
// status can be read. One whose guest ran, however shortly, is replaced at once the
// first time.
func backOff(v *vmi.VirtualMachineInstance) time.Duration {
	n := failures(v)
	if n > 0 && v.Status.HasRun() {
		n--
	}
	return scheduler.BackOff(n, 0)
}

// replaceable divides the VMIs that failed into those that are to be replaced now and
// those that are held, and says when the next of those is due. 0: when something
// changes.
//
// While no guest of the set runs, one VMI is tried at a time, after the back-off of
// all: a template that is broken costs as little for a hundred VMIs as for one. After
// that, as many are tried at a time as guests run.
func replaceable(o Observed, m members) (due, held []*vmi.VirtualMachineInstance, recheck time.Duration) {
	run, tried := 0, 0
	for _, v := range m.alive {
		switch {
		case v.Status.Phase == vmi.PhaseRunning:
			run++
		case before(v) > 0:
			tried++
		}
	}
	var last time.Duration
	for _, v := range m.failed {
		last = max(last, left(o, v))
	}
	for _, v := range slices.SortedFunc(slices.Values(m.failed), worse) {
		wait := left(o, v)
		if run == 0 {
			wait = last
		}
		switch {
		case wait <= 0 && tried < max(1, run):
			due = append(due, v)
			tried++
			continue
		case wait > 0 && (recheck == 0 || wait < recheck):
			recheck = wait
		}
		held = append(held, v)
	}
	return due, held, recheck
}

// left is how much of its back-off is left.
func left(o Observed, v *vmi.VirtualMachineInstance) time.Duration {
	return v.Status.PhaseSince(v.Status.Phase).Add(backOff(v)).Sub(o.Now)
}

// worse orders VMIs that failed: the one with the most failures first, then the one
// that ended last.
func worse(a, b *vmi.VirtualMachineInstance) int {
	return cmp.Or(failures(b)-failures(a), b.Status.PhaseSince(b.Status.Phase).Compare(a.Status.PhaseSince(a.Status.Phase)), cmp.Compare(a.Name, b.Name))
}
