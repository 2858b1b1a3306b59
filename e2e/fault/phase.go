package fault

import (
	"errors"
	"fmt"
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// legal are the phases that may follow each phase of a VMI. One whose pod runs before its
// phase was written is Scheduled at once, and a pod that its node refuses is made again.
var legal = map[vmi.Phase][]vmi.Phase{
	vmi.PhaseUnset:      {vmi.PhasePending, vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseFailed},
	vmi.PhasePending:    {vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseFailed},
	vmi.PhaseScheduling: {vmi.PhaseScheduled, vmi.PhasePending, vmi.PhaseFailed},
	vmi.PhaseScheduled:  {vmi.PhaseRunning, vmi.PhaseSucceeded, vmi.PhaseFailed},
	vmi.PhaseRunning:    {vmi.PhaseSucceeded, vmi.PhaseFailed},
	vmi.PhaseSucceeded:  {},
	vmi.PhaseFailed:     {},
}

// Phases says which phases of the history of one VMI must not follow each other.
func Phases(history []vmi.Phase) error {
	var errs []error
	for i := 1; i < len(history); i++ {
		if !slices.Contains(legal[history[i-1]], history[i]) {
			errs = append(errs, fmt.Errorf("phase %q follows %q", history[i], history[i-1]))
		}
	}
	return errors.Join(errs...)
}
