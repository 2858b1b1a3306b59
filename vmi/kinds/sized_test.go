package kinds_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAVMIsJudgedAsWhatItBecomes(t *testing.T) {
	t.Parallel()
	k, _ := kinds.Find(vmi.VirtualMachines.GroupKind())
	known := kinds.Cluster{Instancetype: &instancetype.VirtualMachineInstancetypeSpec{
		CPU: instancetype.CPUInstancetype{Guest: 2}, Memory: instancetype.MemoryInstancetype{Guest: resource.MustParse("1Gi")},
	}}
	v := vmitest.NewVM(vmi.RunAlways)
	v.Spec.Template.Spec.Domain.Memory = nil
	require.NotEmpty(t, k.Create(k.Complete(v, known), known), "it says nothing of its memory")
	v.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "small"}
	for _, c := range []kinds.Cluster{known, {}} {
		require.Empty(t, k.Create(k.Complete(v, c), c))
		require.Empty(t, k.Update(v, v, c))
	}
	with := func(change func(*vmi.VirtualMachine)) *vmi.VirtualMachine {
		out := v.DeepCopy()
		change(out)
		return out
	}
	conflict := with(func(v *vmi.VirtualMachine) {
		v.Spec.Template.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("2Gi"))}
	})
	require.Equal(t, "spec.template.spec.domain.memory.guest", k.Create(conflict, known)[0].Field)
	require.Empty(t, k.Create(conflict, kinds.Cluster{}), "what is not known is not judged")
	require.NotEmpty(t, k.Update(v, conflict, known))
	stopped := conflict.DeepCopy()
	stopped.Spec.RunStrategy = new(vmi.RunHalted)
	require.Empty(t, k.Update(conflict, stopped, known), "it can be stopped")
	conflict.DeletionTimestamp = &metav1.Time{}
	require.Empty(t, k.Update(v, conflict, known), "and deleted")

	unnamed := with(func(v *vmi.VirtualMachine) { v.Spec.Instancetype.Name = "" })
	require.Equal(t, "spec.instancetype", k.Create(unnamed, known)[0].Field)
	pinned := with(func(v *vmi.VirtualMachine) { v.Spec.Instancetype.RevisionName = "r" })
	renamed := with(func(v *vmi.VirtualMachine) { v.Spec.Instancetype.Name, v.Spec.Instancetype.RevisionName = "large", "r" })
	require.Empty(t, k.Update(v, pinned, known))
	require.Empty(t, k.Update(v, renamed, known))
	require.Equal(t, "spec.instancetype.revisionName", k.Update(pinned, renamed, known)[0].Field)
	renamed.Spec.Instancetype.RevisionName = ""
	require.Empty(t, k.Update(pinned, renamed, known))
}

func TestAPreferenceIsWrittenIntoAVMWhereItStays(t *testing.T) {
	t.Parallel()
	k, _ := kinds.Find(vmi.VirtualMachines.GroupKind())
	v := vmitest.NewVM(vmi.RunAlways)
	v.Spec.Preference = &vmi.PreferenceMatcher{Name: "linux"}
	c := kinds.Cluster{Preference: &instancetype.VirtualMachinePreferenceSpec{
		MachineType:  &instancetype.MachineTypePreferences{PreferredMachineType: "pc-q35-9.2"},
		Requirements: &instancetype.PreferenceRequirements{CPU: &instancetype.CPURequirement{Guest: 16}},
	}}
	done := k.Complete(v, c).(*vmi.VirtualMachine)
	require.Equal(t, "pc-q35-9.2", done.Spec.Template.Spec.Domain.Machine.Type)
	require.Equal(t, "spec.template.spec.domain.cpu.sockets", k.Faults(done, c)[0].Field)
}
