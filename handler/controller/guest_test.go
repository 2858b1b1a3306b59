package controller

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/control"
)

func TestALauncherSaysNoMoreThanAStatusHolds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1<<18)
	disks := make([]control.Disk, 1<<14)
	for i := range disks {
		disks[i] = control.Disk{Name: "root", Target: "vda"}
	}
	g := guest(control.State{
		Phase: control.Ended, Machine: long, Disks: append([]control.Disk{{Name: long}, {Name: "root", Target: long}}, disks...),
		Finding: &control.Problem{Reason: "No Word", Message: long},
		Agent:   &control.Agent{Version: long},
		End:     &control.End{Reason: control.EndReason(long), Message: long},
	})
	require.Empty(t, g.Machine)
	require.Equal(t, &handler.Agent{}, g.Agent)
	require.Len(t, g.Disks, maxDisks)
	require.Equal(t, "root", g.Disks[0].Name)
	require.Equal(t, "vda", g.Disks[0].Target)
	require.Equal(t, unknownReason, g.Problem.Reason)
	require.Equal(t, unknownReason, g.End.Reason)
	for _, m := range []string{g.Problem.Message, g.End.Message} {
		require.LessOrEqual(t, len(m), maxMessage)
		require.True(t, strings.HasPrefix(m, "ää") && strings.HasSuffix(m, "ä…"), m)
	}

	g = guest(control.State{Phase: control.Ended, End: &control.End{Reason: control.Shutdown, Message: "the guest powered off"}})
	require.Equal(t, &handler.End{Finding: handler.Finding{Reason: "Shutdown", Message: "the guest powered off"}, Succeeded: true}, g.End)
}

func TestAnAgentsVersionIsTakenIfItIsOne(t *testing.T) {
	t.Parallel()
	require.Nil(t, guest(control.State{Phase: control.Running}).Agent)
	for said, want := range map[string]string{"": "", "7.2.22": "7.2.22", "107.0.1": "107.0.1", "7 2": "", "7.2\n": "", strings.Repeat("7", 64): ""} {
		require.Equal(t, &handler.Agent{Version: want}, guest(control.State{Phase: control.Running, Agent: &control.Agent{Version: said}}).Agent, "%q", said)
	}
}
