package bench

import (
	"fmt"
	"io"
	"time"
)

// owner is whose time a step takes.
type owner string

const (
	byUs         owner = "Podvisor"
	byKubernetes owner = "Kubernetes"
	byQEMU       owner = "libvirt, QEMU"
)

// The steps of a start, and of an end.
const (
	stepCreated      = "created"
	stepAdmitted     = "admitted, stored"
	stepPod          = "pod created"
	stepBound        = "bound to a node"
	stepVolumes      = "volumes mounted"
	stepSandbox      = "sandbox ready"
	stepContainer    = "container created"
	stepStarted      = "container started"
	stepSocket       = "launcher's socket there"
	stepDaemon       = "libvirt daemon up"
	stepReported     = "kubelet's status stored"
	stepHandedOver   = "handed over"
	stepConnected    = "handler connected"
	stepBoundNetwork = "network bound"
	stepPut          = "VMI put"
	stepDisks        = "disks made"
	stepDomain       = "domain built"
	stepQEMU         = "QEMU started"
	stepRuns         = "QEMU runs"
	stepWritten      = "status written"
	stepSeen         = "seen by a watcher"

	stepOff       = "guest's last line"
	stepEnded     = "domain ended"
	stepFinalizer = "finalizer removed"
	stepGone      = "gone, for a watcher"
)

// step is a step of a road.
type step struct {
	name string
	// after is the step that it begins with. Steps with the same one are done at the same time.
	after string
	owner owner
}

// startRoad are the steps from the creation of a VMI to Running. A pod has those of Kubernetes.
var startRoad = []step{
	{stepAdmitted, stepCreated, byUs},
	{stepPod, stepAdmitted, byUs},
	{stepBound, stepPod, byKubernetes},
	{stepVolumes, stepBound, byKubernetes},
	{stepSandbox, stepVolumes, byKubernetes},
	{stepContainer, stepSandbox, byKubernetes},
	{stepStarted, stepContainer, byKubernetes},
	{stepSocket, stepContainer, byUs},
	{stepDaemon, stepSocket, byQEMU},
	{stepReported, stepStarted, byKubernetes},
	{stepHandedOver, stepReported, byUs},
	{stepConnected, stepHandedOver, byUs},
	{stepBoundNetwork, stepConnected, byUs},
	{stepPut, stepBoundNetwork, byUs},
	{stepDisks, stepPut, byUs},
	{stepDomain, stepDisks, byUs},
	{stepQEMU, stepDomain, byQEMU},
	{stepRuns, stepQEMU, byQEMU},
	{stepWritten, stepRuns, byUs},
	{stepSeen, stepWritten, byKubernetes},
}

// podRoad are the steps of a pod.
var podRoad = []step{
	{stepPod, stepCreated, byKubernetes},
	{stepBound, stepPod, byKubernetes},
	{stepVolumes, stepBound, byKubernetes},
	{stepSandbox, stepVolumes, byKubernetes},
	{stepContainer, stepSandbox, byKubernetes},
	{stepStarted, stepContainer, byKubernetes},
	{stepReported, stepStarted, byKubernetes},
	{stepSeen, stepReported, byKubernetes},
}

// endRoad are the steps from the guest's last line to the end of the VMI.
var endRoad = []step{
	{stepEnded, stepOff, byQEMU},
	{stepWritten, stepEnded, byUs},
	{stepFinalizer, stepWritten, byUs},
	{stepGone, stepFinalizer, byKubernetes},
}

// took are the durations of a step and of what was before it, in milliseconds: since the
// beginning of the road, and since the step before it. ok is false if a run did not have it.
func took(all []moments, s step, first string) (at, own float64, ok bool) {
	for _, m := range all {
		if m[s.name].IsZero() || m[s.after].IsZero() {
			return 0, 0, false
		}
	}
	between := func(from string) float64 {
		return median(all, func(m moments) float64 { return milliseconds(m[s.name].Sub(m[from])) })
	}
	return between(first), between(s.after), true
}

// column is one of a table of roads.
type column struct {
	name  string
	runs  []moments
	steps []step
}

// printRoad prints a table of the steps: for each column when a step was done and what it took,
// medians in milliseconds.
func printRoad(out io.Writer, title, first string, steps []step, columns ...column) {
	_, _ = fmt.Fprintf(out, "\n%s, medians in ms: since %s, and since the step before\n  %-24s %-14s", title, first, "", "")
	for _, c := range columns {
		_, _ = fmt.Fprintf(out, " %15s", c.name)
	}
	_, _ = fmt.Fprintln(out)
	for _, s := range steps {
		_, _ = fmt.Fprintf(out, "  %-24s %-14s", s.name, s.owner)
		for _, c := range columns {
			at, own, ok := 0.0, 0.0, false
			for _, its := range c.steps {
				if its.name == s.name {
					at, own, ok = took(c.runs, its, first)
				}
			}
			if !ok {
				_, _ = fmt.Fprintf(out, " %7s %7s", "", "")
				continue
			}
			_, _ = fmt.Fprintf(out, " %7.0f %+7.0f", at, own)
		}
		_, _ = fmt.Fprintln(out)
	}
	for _, c := range columns {
		sums := map[owner]float64{}
		for _, s := range onTheWay(c.steps) {
			if _, own, ok := took(c.runs, s, first); ok {
				sums[s.owner] += own
			}
		}
		_, _ = fmt.Fprintf(out, "  %s: %s %.0f, %s %.0f, %s %.0f\n", c.name, byUs, sums[byUs], byKubernetes, sums[byKubernetes], byQEMU, sums[byQEMU])
	}
}

// onTheWay are the steps that the last one waits for, and itself.
func onTheWay(steps []step) []step {
	var way []step
	next := ""
	for i := len(steps) - 1; i >= 0; i-- {
		if next == "" || steps[i].name == next {
			way, next = append(way, steps[i]), steps[i].after
		}
	}
	return way
}

// between is the time between two moments. 0: one is missing.
func (m moments) between(from, to string) time.Duration {
	if m[from].IsZero() || m[to].IsZero() {
		return 0
	}
	return m[to].Sub(m[from])
}
