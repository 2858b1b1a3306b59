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
	for name, tt := range map[string]struct {
		note    string
		arrived bool
	}{
		"nothing is known":              {},
		"it receives":                   {note: `{"uid":"m","stage":"Receives"}`},
		"it has discarded the guest":    {note: `{"uid":"m","stage":"Discarded"}`},
		"the guest was asked to run":    {note: `{"uid":"m","stage":"Finishing"}`, arrived: true},
		"the guest runs":                {note: `{"uid":"m","stage":"Arrived"}`, arrived: true},
		"the guest has moved on since":  {note: `{"uid":"n","stage":"Moved"}`, arrived: true},
		"the guest has stayed meantime": {note: `{"uid":"n","stage":"Stays"}`, arrived: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := notePath(t.TempDir(), "u")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			if tt.note != "" {
				require.NoError(t, os.WriteFile(path, []byte(tt.note), 0o600))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			err := arrives(ctx, path)
			if tt.arrived {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "no guest has arrived in this pod: context deadline exceeded")
			answer := make(chan error, 1)
			go func() { answer <- arrives(t.Context(), path) }()
			require.NoError(t, os.WriteFile(path+".new", []byte(`{"uid":"m","stage":"Arrived"}`), 0o600))
			require.NoError(t, os.Rename(path+".new", path))
			require.NoError(t, <-answer)
		})
	}
	path := notePath(t.TempDir(), "u")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	require.ErrorContains(t, arrives(t.Context(), path), "unexpected end of JSON input")
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
