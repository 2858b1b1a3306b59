package instance_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

func TestAVMIOfAnOldLauncherIsLabelled(t *testing.T) {
	t.Parallel()
	in := func(image string, labelled bool) *vmi.VirtualMachineInstance {
		v := stored(vmi.PhaseRunning, ready)
		v.Status.LauncherContainerImageVersion = image
		if labelled {
			v.Labels[vmi.OutdatedLauncherLabel] = ""
		}
		return v
	}
	set, remove := scheduler.SetLabel{Key: vmi.OutdatedLauncherLabel}, scheduler.RemoveLabel{Key: vmi.OutdatedLauncherLabel}
	for name, tt := range map[string]struct {
		vmi  *vmi.VirtualMachineInstance
		want scheduler.Action
	}{
		"an old launcher":                       {in("example/virt-launcher:0", false), set},
		"an old launcher, labelled":             {in("example/virt-launcher:0", true), nil},
		"the launcher of a start now":           {in(config.Image, false), nil},
		"the launcher of a start now, labelled": {in(config.Image, true), remove},
		"a launcher that is not known":          {in("", false), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observe(tt.vmi, launcher(running))
			got := slices.DeleteFunc(instance.Decide(o).Actions, func(a scheduler.Action) bool {
				switch a.(type) {
				case scheduler.SetLabel, scheduler.RemoveLabel:
					return false
				}
				return true
			})
			if tt.want == nil {
				require.Empty(t, got)
				return
			}
			require.Equal(t, []scheduler.Action{tt.want}, got)
		})
	}
}
