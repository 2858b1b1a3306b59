package controller

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// What replaces a status would lose what the cache has not of it.
func TestAStatusThatIsTakenForWholeIsWholeInTheCache(t *testing.T) {
	t.Parallel()
	w := newFilled(1)
	replaced := map[vmi.Phase]bool{vmi.PhaseUnset: true, vmi.PhasePending: true, vmi.PhaseScheduling: true}
	for _, phase := range []vmi.Phase{vmi.PhaseUnset, vmi.PhasePending, vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseSucceeded, vmi.PhaseFailed, vmi.PhaseUnknown} {
		v := w.instance()
		v.Status.Phase = phase
		require.NotEmpty(t, v.Status.Interfaces)
		kept := reduced(v, (&keeper{}).instance)
		require.Equal(t, replaced[phase], wholeInstance(kept), phase)
		if wholeInstance(kept) {
			require.Equal(t, v.Status, kept.Status, phase)
		}
	}
	m := w.vms().VM
	require.True(t, vms.wholeStatus(m))
	require.Equal(t, m.Status, reduced(m, keepVM).Status)
}
