package vm_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// setLink edits the template of the VM.
func (w *world) setLink(state vmi.InterfaceState) {
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Template.Spec.Domain.Devices.Interfaces[0].State = state })
}

func (w *world) link() vmi.InterfaceState {
	return w.vmi.Spec.Domain.Devices.Interfaces[0].State
}

func TestTheLinksOfAVMIFollowTheTemplateByOneWrite(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settle()
	w.run()
	w.settle()
	for _, state := range []vmi.InterfaceState{vmi.InterfaceDown, vmi.InterfaceUp} {
		w.writes = nil
		w.setLink(state)
		w.settle()
		require.Equal(t, state, w.link())
		require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
		require.Equal(t, w.vm.Generation, w.vm.Status.ObservedGeneration)
		require.Equal(t, w.vm.Generation, vmi.StartGeneration(w.vmi))
		require.Equal(t, []string{"status Running", "change vmi"}, w.writes)
	}
	w.writes = nil
	w.setLink("") // which stands for up
	w.settle()
	require.Equal(t, vmi.InterfaceUp, w.link())
	require.Equal(t, []string{"status Running", "change vmi"}, w.writes, "the generation alone")
}

func TestALinkFollowsBesideAChangeThatNeedsARestart(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settle()
	w.run()
	w.settle()
	w.writes = nil
	w.edit(func(s *vmi.VirtualMachineSpec) {
		s.Template.Spec.Hostname, s.Template.Spec.Domain.Devices.Interfaces[0].State = "edited", vmi.InterfaceDown
	})
	w.settle()
	require.Equal(t, vmi.InterfaceDown, w.link())
	require.Empty(t, w.vmi.Spec.Hostname)
	require.NotNil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	require.Equal(t, int64(1), vmi.StartGeneration(w.vmi))
	require.Equal(t, 1, len(slices.DeleteFunc(slices.Clone(w.writes), func(s string) bool { return s != "change vmi" })))
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Template.Spec.Hostname = "" })
	w.settle()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	require.Equal(t, w.vm.Generation, vmi.StartGeneration(w.vmi))
}

func TestAnInterfaceIsRemovedOrAddedByARestartOnly(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settle()
	w.run()
	w.settle()
	w.setLink(vmi.InterfaceAbsent)
	w.settle()
	require.Empty(t, w.link())
	require.NotNil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
}
