package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestAProbeNeedsAQuestion(t *testing.T) {
	require.EqualError(t, Probe(t.Context(), ProbeConfig{Question: "alive"}), `probe "alive" is none of ping, exec and arrived: invalid`)
	began := time.Now()
	err := Probe(t.Context(), ProbeConfig{Question: AskPing, Namespace: "default", Name: "vm", Timeout: 100 * time.Millisecond})
	require.ErrorContains(t, err, "no answer within 100ms", "a daemon that is not there is waited for")
	require.Less(t, time.Since(began), time.Minute)
}

func TestAProbeOfATargetWaitsUntilTheGuestHasArrived(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Dir(arrivedPath(root)), 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.EqualError(t, arrives(ctx, root), "no guest has arrived in this pod: context deadline exceeded")
	answer := make(chan error, 1)
	go func() { answer <- arrives(t.Context(), root) }()
	require.NoError(t, os.WriteFile(arrivedPath(root), nil, 0o600))
	require.NoError(t, <-answer)
	require.ErrorIs(t, arrives(t.Context(), arrivedPath(root)), unix.ENOTDIR)
}

func TestAGuestThatStartsPausedRunsFromItsFirstUnpause(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	v := instance()
	v.Spec.StartStrategy = new(vmi.StartPaused)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 1, Instance: v}))
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByUser}, p.paused())
	p.silent("test guest is up")
	conn, err := dial(t.Context(), p.path("kubevirt-private/libvirt/run/libvirt/libvirt-sock"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, ping(t.Context(), conn, "default_vm"), "a user may pause a VMI whose agent is probed")
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByUser}, p.paused())

	require.NoError(t, p.client.Call(t.Context(), protocol.CallUnpause, nil, nil))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
	require.Error(t, ping(t.Context(), conn, "default_vm"), "the guest has no agent")

	// Neither another handler, nor another daemon, nor a reboot pauses it again.
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 2, Instance: v}))
	p.kill(p.process("libvirtd"), unix.SIGKILL)
	p.until("there is a session with another daemon", func() bool { return strings.Contains(p.log.String(), "looked for the agent") })
	p.phase(protocol.Running)
	p.write("r")
	p.says("test guest is up", 2)
	p.phase(protocol.Running)
}
