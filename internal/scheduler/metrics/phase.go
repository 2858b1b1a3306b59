package metrics

import (
	"time"

	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/vmi"
)

// Buckets are those of the histograms of phases, in seconds.
var Buckets = []float64{0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600}

// The histograms of phases, in seconds. Timestamps have a resolution of one.
var (
	FromLast         = phases("kubevirt_vmi_phase_transition_time_seconds", "Time that a VMI was in last_phase before it came into phase.", "phase", "last_phase")
	FromCreation     = phases("kubevirt_vmi_phase_transition_time_from_creation_seconds", "Age of a VMI when it came into the phase.", "phase")
	FromDeletion     = phases("kubevirt_vmi_phase_transition_time_from_deletion_seconds", "Time from the deletion of a VMI to the phase, Succeeded or Failed.", "phase")
	MoveFromCreation = phases("kubevirt_vmi_migration_phase_transition_time_from_creation_seconds", "Age of a migration when it came into the phase.", "phase")
)

func phases(name, help string, labels ...string) series.Info {
	return series.Info{Name: name, Help: help, Type: series.Histogram, Labels: labels}
}

// Value is a value of a histogram.
type Value struct {
	// Histogram is one of those above.
	Histogram *series.Info
	// Labels are in the order of the histogram's.
	Labels  []string
	Seconds float64
}

// Phases are the values of a change of a VMI. None: its phase is the same, or it does not say
// when it changed.
func Phases(was, now *vmi.VirtualMachineInstance) (out []Value) {
	phase, last := now.Status.Phase, was.Status.Phase
	at, ok := began(now, phase)
	if phase == last || !ok {
		return nil
	}
	add := func(h *series.Info, from time.Time, labels ...string) {
		out = append(out, Value{h, labels, max(0, at.Sub(from).Seconds())})
	}
	if from, ok := began(now, last); ok {
		add(&FromLast, from, string(phase), string(last))
	}
	add(&FromCreation, now.CreationTimestamp.Time, string(phase))
	if now.DeletionTimestamp != nil && phase.Final() {
		add(&FromDeletion, now.DeletionTimestamp.Time, string(phase))
	}
	return out
}

// began is when the VMI came into the phase last.
func began(v *vmi.VirtualMachineInstance, p vmi.Phase) (at time.Time, ok bool) {
	for _, t := range v.Status.PhaseTransitionTimestamps {
		if t.Phase == p {
			at, ok = t.PhaseTransitionTimestamp.Time, true
		}
	}
	return at, ok
}

// Moved are the values of a change of a migration.
func Moved(was, now *vmi.VirtualMachineInstanceMigration) []Value {
	if was.Status.Phase == now.Status.Phase {
		return nil
	}
	for _, t := range now.Status.PhaseTransitionTimestamps {
		if t.Phase == now.Status.Phase {
			age := t.PhaseTransitionTimestamp.Sub(now.CreationTimestamp.Time).Seconds()
			return []Value{{&MoveFromCreation, []string{string(now.Status.Phase)}, max(0, age)}}
		}
	}
	return nil
}

// Histograms are the histograms of phases.
func Histograms() []*series.Info {
	return []*series.Info{&FromLast, &FromCreation, &FromDeletion, &MoveFromCreation}
}

// VMs, Instances and Counts are the metrics of the tables.
func VMs() []series.Info { return series.Infos(vms) }

// Instances are those of VMIs.
func Instances() []series.Info { return series.Infos(instances) }

// Counts are those of all objects.
func Counts() []series.Info { return series.Infos(fleet) }
