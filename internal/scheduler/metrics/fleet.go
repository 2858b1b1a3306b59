package metrics

import (
	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/vmi"
)

// Fleet is what is counted of all objects.
type Fleet struct {
	// Migrations are all.
	Migrations []*vmi.VirtualMachineInstanceMigration
	// Emulation says that guests run without hardware virtualization.
	Emulation bool
	// Outdated is how many VMIs have a launcher of another version. Negative: they were not
	// counted yet.
	Outdated int64
}

// Series are the series of all objects.
func (f Fleet) Series() []series.Series { return series.Of(fleet, f, nil) }

var fleet = []series.Metric[Fleet]{
	gauge("kubevirt_vmi_number_of_outdated", "VMIs with a launcher of another version.", func(f Fleet, add adder) {
		if f.Outdated >= 0 {
			add(float64(f.Outdated))
		}
	}),
	gauge("kubevirt_configuration_emulation_enabled", "1 if guests run without hardware virtualization, as virt-controller is configured; else 0.", func(f Fleet, add adder) {
		if f.Emulation {
			add(1)
		} else {
			add(0)
		}
	}),
	inPhases("unset", vmi.MigrationPhaseUnset),
	inPhases("pending", vmi.MigrationPhasePending),
	inPhases("scheduling", vmi.MigrationPhaseScheduling),
	inPhases("running", vmi.MigrationPhaseScheduled, vmi.MigrationPhasePreparingTarget, vmi.MigrationPhaseTargetReady, vmi.MigrationPhaseRunning),
	ended("succeeded", vmi.MigrationPhaseSucceeded),
	ended("failed", vmi.MigrationPhaseFailed),
}

// inPhases counts the migrations in the phases.
func inPhases(word string, phases ...vmi.MigrationPhase) series.Metric[Fleet] {
	return gauge("kubevirt_vmi_migrations_in_"+word+"_phase", "Migrations in the phases that dashboards call "+word+".", func(f Fleet, add adder) {
		n := 0
		for _, m := range f.Migrations {
			for _, p := range phases {
				if m.Status.Phase == p {
					n++
				}
			}
		}
		add(float64(n))
	})
}

// ended is 1 for each migration that ended so.
func ended(word string, phase vmi.MigrationPhase) series.Metric[Fleet] {
	return gauge("kubevirt_vmi_migration_"+word, "1 for each migration that has "+word+".", func(f Fleet, add adder) {
		for _, m := range f.Migrations {
			if m.Status.Phase == phase {
				add(1, m.Spec.VMIName, m.Name, m.Namespace)
			}
		}
	}, "vmi", "vmim", "namespace")
}
