package supervisor

import (
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

func TestTheProbesOfAPodReadThePhaseOfItsGuest(t *testing.T) {
	const pauses, no = "the guest is paused", "the guest does not run"
	for phase, want := range map[protocol.Phase][2]string{
		"":                {"", no}, // no file
		protocol.Waiting:  {"", no},
		protocol.Starting: {"", no},
		protocol.Running:  {"", ""},
		protocol.Paused:   {pauses, pauses},
		protocol.Stopping: {"", ""},
		protocol.Ended:    {"", no},
	} {
		t.Run(string(phase), func(t *testing.T) {
			dir := t.TempDir()
			if phase != "" {
				require.NoError(t, writePhase(dir, "Another"))
				require.NoError(t, writePhase(dir, phase))
			}
			for i, q := range []Question{AskUnpaused, AskRunning} {
				if err := probePhase(dir, q); want[i] == "" {
					require.NoError(t, err, q)
				} else {
					require.EqualError(t, err, want[i], q)
				}
			}
		})
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, phaseFile), 0o700))
	require.Error(t, probePhase(dir, AskUnpaused), "a phase that cannot be read")
}

func TestAProbeNeedsAQuestion(t *testing.T) {
	require.EqualError(t, Probe(t.Context(), ProbeConfig{Question: "alive"}), `probe "alive" is none of started, unpaused, running, ping and exec: invalid`)
	require.NoError(t, Probe(t.Context(), ProbeConfig{Question: AskStarted}))
	began := time.Now()
	err := Probe(t.Context(), ProbeConfig{Question: AskPing, Namespace: "default", Name: "vm", Timeout: 100 * time.Millisecond})
	require.ErrorContains(t, err, "no answer within 100ms", "a daemon that is not there is waited for")
	require.Less(t, time.Since(began), 10*time.Second)
}

// phaseOf is what the launcher has written for probes.
func (p *pod) phaseOf() protocol.Phase {
	p.Helper()
	b, err := os.ReadFile(p.path("kubevirt-private/" + phaseFile))
	require.NoError(p, err)
	return protocol.Phase(b)
}

func TestAGuestThatStartsPausedRunsFromItsFirstUnpause(t *testing.T) {
	p := newPod(t, bootable())
	v := instance()
	v.Spec.StartStrategy = new(vmi.StartPaused)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 1, Instance: v}))
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByUser}, p.paused())
	p.until("the probes read it", func() bool { return p.phaseOf() == protocol.Paused })
	p.silent("test guest is up")
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByUser}, p.paused())

	require.NoError(t, p.client.Call(t.Context(), protocol.CallUnpause))
	p.phase(protocol.Running)
	p.until("the probes read it", func() bool { return p.phaseOf() == protocol.Running })
	p.says("test guest is up", 1)

	// Neither another handler, nor another daemon, nor a reboot pauses it again.
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 2, Instance: v}))
	p.kill(p.process("libvirtd"), unix.SIGKILL)
	p.until("there is a session with another daemon", func() bool { return strings.Contains(p.log.String(), "looked for the agent") })
	p.phase(protocol.Running)
	p.write("r")
	p.says("test guest is up", 2)
	p.phase(protocol.Running)
}
