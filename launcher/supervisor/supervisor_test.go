package supervisor

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestTheLogLevelFollowsTheClustersSettings(t *testing.T) {
	s := &Supervisor{config: Config{LogLevel: &slog.LevelVar{}}, facts: newFacts()}
	for _, tt := range []struct {
		verbosity config.Verbosity
		want      slog.Level
	}{{0, slog.LevelInfo}, {4, slog.LevelDebug}, {2, slog.LevelInfo}} {
		require.NoError(t, s.Put(protocol.Desired{Settings: config.Launcher{Verbosity: tt.verbosity}}))
		require.Equal(t, tt.want, s.config.LogLevel.Level(), tt.verbosity)
	}
}

func TestWhatWasATargetOnceIsOneToItsEnd(t *testing.T) {
	f := newFacts()
	for _, role := range []vmi.Role{vmi.RoleTarget, vmi.RoleActive} {
		f.put(protocol.Desired{Instance: &vmi.VirtualMachineInstance{}, Role: role}, time.Now())
		d, _ := f.observe(time.Now())
		require.True(t, d.Target, "role %q", role)
	}
}

func TestARootThatLeavesNoRoomForSocketsIsRefused(t *testing.T) {
	_, err := New(Config{Namespace: "default", Name: "vm", UID: "1", Root: "/" + strings.Repeat("r", maxRoot)})
	require.ErrorContains(t, err, "has 33 bytes, and at most 32 leave room for the names of sockets")
}

func TestALauncherFailsAtOnceWhereItsVMIAsksForThat(t *testing.T) {
	_, err := New(Config{Namespace: "default", Name: "vm", UID: "1", FailFast: true})
	require.ErrorContains(t, err, "the VMI has the annotation kubevirt.io/func-test-virt-launcher-fail-fast")
}
