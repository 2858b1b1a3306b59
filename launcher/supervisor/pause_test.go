package supervisor

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// paused waits until the guest is paused and returns why.
func (p *pod) paused() protocol.Pause {
	p.Helper()
	p.phase(protocol.Paused)
	state, err := p.client.State(p.Context())
	require.NoError(p, err)
	require.NotNil(p, state.Pause)
	return *state.Pause
}

// silent requires that the guest does not write words for a while.
func (p *pod) silent(words string) {
	p.Helper()
	time.Sleep(500 * time.Millisecond)
	require.NotContains(p, p.console.String(), words)
}

func TestACallPausesAGuestUntilAnotherUnpausesIt(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	require.NoError(t, p.client.Call(t.Context(), protocol.CallPause, nil, nil))
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByUser}, p.paused())
	require.NoError(t, p.client.Call(t.Context(), protocol.CallPause, nil, nil), "a guest that is paused already")
	p.write("d")
	p.silent("power button ignored")

	daemon := p.process("libvirtd")
	p.kill(daemon, unix.SIGKILL)
	p.until("there is a session with another daemon", func() bool { return strings.Contains(p.log.String(), "looked for the agent") })
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByUser}, p.paused())
	p.silent("power button ignored")

	require.NoError(t, p.client.Call(t.Context(), protocol.CallUnpause, nil, nil))
	p.phase(protocol.Running)
	p.says("power button ignored", 1)
	require.NoError(t, p.client.Call(t.Context(), protocol.CallUnpause, nil, nil), "a guest that runs already")
}

func TestACallNeedsAGuest(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	for _, call := range []protocol.Call{protocol.CallPause, protocol.CallUnpause} {
		err := p.client.Call(t.Context(), call, nil, nil)
		var refusal *control.Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: "the guest does not run"}, refusal.Finding)
		require.NotErrorIs(t, err, vmi.ErrInvalid)
	}
}

func TestAPausedGuestIsSwitchedOffAtOnce(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	require.NoError(t, p.client.Call(t.Context(), protocol.CallPause, nil, nil))
	began := time.Now()
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{GracePeriodSeconds: 600}}))
	p.ends(protocol.Shutdown, "the guest was paused and was switched off")
	require.Less(t, time.Since(began), 5*time.Minute, "the grace period is not waited for")
	require.NotContains(t, p.console.String(), "power button pressed")
}

// withoutSeed is the VMI of the tests with its empty disk as the second. The BIOS
// knows the disks with a boot order alone.
func withoutSeed() *vmi.VirtualMachineInstance {
	v := instance()
	v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks[:1], v.Spec.Domain.Devices.Disks[2])
	v.Spec.Volumes = append(v.Spec.Volumes[:1], v.Spec.Volumes[2])
	for i := range v.Spec.Domain.Devices.Disks {
		v.Spec.Domain.Devices.Disks[i].BootOrder = new(uint(i + 1))
	}
	return v
}

func TestAnIOErrorPausesAGuestUntilItsCauseIsGone(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable(), "SPACE=24m")
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 3, Instance: withoutSeed()}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
	filler := p.path("kubevirt-ephemeral-disks/filler")
	fill(t, filler, 2<<20)

	ran := time.Now()
	p.write("w")
	p.until("the guest is paused", func() bool {
		asked := time.Now()
		state, err := p.client.State(t.Context())
		require.NoError(t, err)
		if state.Phase == protocol.Running {
			ran = asked
		}
		return state.Phase == protocol.Paused
	})
	full := protocol.Pause{Cause: protocol.PausedByIOError, Volume: "empty", Message: "volume empty: no space left"}
	require.Equal(t, full, p.paused())
	p.kill(p.process("libvirtd"), unix.SIGKILL)
	p.until("there is a session with another daemon", func() bool { return strings.Contains(p.log.String(), "looked for the agent") })
	require.Equal(t, full, p.paused(), "the cause is read again")
	p.until("the guest is resumed, and paused again", func() bool { return strings.Count(p.log.String(), "resume the guest") > 0 })
	time.Sleep(2 * launcher.Trial)
	require.Equal(t, full, p.paused(), "there is still no space")

	before := strings.Count(p.log.String(), "resume the guest")
	require.NoError(t, p.client.Call(t.Context(), protocol.CallUnpause, nil, nil))
	p.until("it is paused again", func() bool {
		state, err := p.client.State(t.Context())
		return err == nil && state.Phase == protocol.Paused
	})
	time.Sleep(time.Second)
	resumed := strings.Count(p.log.String(), "resume the guest")
	require.Greater(t, resumed, before)
	require.LessOrEqual(t, resumed, 1+int(time.Since(ran)/launcher.ResumeFirst), "an unpause resumes once")

	phases := map[protocol.Phase]bool{}
	for state, err := range p.client.Watch(t.Context()) {
		require.NoError(t, err)
		require.EqualValues(t, 3, state.Generation)
		if len(phases) == 0 {
			require.NoError(t, os.Remove(filler))
		}
		phases[state.Phase] = true
		if state.Phase == protocol.Running {
			require.Nil(t, state.Pause)
			break
		}
	}
	p.says("disk written", 1)
	require.NotContains(t, p.console.String(), "disk failed", "the guest saw no error")
	require.Len(t, phases, 2, "attempts in between are not published")
}

// fill fills the file system of a new file, but for some bytes.
func fill(t *testing.T, path string, but int64) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	for block := bytes.Repeat([]byte("x"), 64<<10); ; {
		if _, err = f.Write(block); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	info, err := f.Stat()
	require.NoError(t, err)
	require.NoError(t, f.Truncate(info.Size()-but))
}

func TestACallIsInForceUntilTheOpposite(t *testing.T) {
	f := newFacts()
	asked := func(call protocol.Call) chan error {
		done := make(chan error, 1)
		f.change(func(f *facts) { f.ask(call, done) })
		return done
	}
	open := func(c chan error) bool {
		select {
		case err := <-c:
			c <- err
			return false
		default:
			return true
		}
	}
	require.ErrorIs(t, <-asked(protocol.CallPause), errNotRunning)

	f.domain = launcher.Running
	require.NoError(t, <-asked(protocol.CallUnpause), "it runs already")
	require.Empty(t, f.call)
	pause, again := asked(protocol.CallPause), asked(protocol.CallPause)
	require.True(t, open(pause) && open(again))
	f.change(func(f *facts) { f.turning = true })
	unpause := asked(protocol.CallUnpause)
	require.ErrorIs(t, <-pause, errReplaced)
	require.ErrorIs(t, <-again, errReplaced)
	require.True(t, open(unpause), "the guest is just being paused")
	f.change(func(f *facts) { f.pauses(protocol.Pause{Cause: protocol.PausedByUser}, time.Now()) })
	f.change(func(f *facts) { f.turning = false })
	require.True(t, open(unpause))
	f.change((*facts).runs)
	require.NoError(t, <-unpause)

	refused := asked(protocol.CallPause)
	f.change(func(f *facts) { f.turned(protocol.CallPause, errors.New("busy")) })
	require.EqualError(t, <-refused, "busy")
	require.Empty(t, f.call, "a call that failed is not in force")

	late := asked(protocol.CallPause)
	f.change(func(f *facts) { f.stop(time.Now()) })
	require.ErrorIs(t, <-late, errStopping)
	require.ErrorIs(t, <-asked(protocol.CallUnpause), errStopping)
}

func TestAGuestThatIsPausedAgainAtOnceIsNotResumedWithoutABackOff(t *testing.T) {
	f := newFacts()
	f.desired, f.domain = &protocol.Desired{Instance: instance()}, launcher.Running
	failed := protocol.Pause{Cause: protocol.PausedByIOError}
	f.pauses(failed, time.Now())
	done := make(chan error, 1)
	f.change(func(f *facts) { f.ask(protocol.CallUnpause, done) })
	require.Equal(t, []launcher.Action{launcher.Resume{}}, launcher.Decide(f.observe(time.Now())).Actions)
	f.change(func(f *facts) { f.turning = true })
	f.change((*facts).runs)
	f.change(func(f *facts) { f.pauses(failed, time.Now()) })
	f.change(func(f *facts) { f.turned(protocol.CallUnpause, nil) })
	require.NoError(t, <-done, "the guest was resumed")
	p := launcher.Decide(f.observe(time.Now()))
	require.Empty(t, p.Actions)
	require.Equal(t, protocol.Paused, p.State.Phase)
	require.InDelta(t, launcher.ResumeFirst, p.Recheck, float64(launcher.ResumeFirst)/2)
}

func TestACallEndsWithTheDomain(t *testing.T) {
	f := newFacts()
	f.domain = launcher.Running
	done := make(chan error, 1)
	f.change(func(f *facts) { f.ask(protocol.CallPause, done) })
	f.change(func(f *facts) { f.domain = launcher.Gone })
	require.ErrorIs(t, <-done, errNotRunning)
}

func TestACallThatComesAfterADecisionCounts(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing waits for a session
	for _, tt := range []struct {
		name     string
		call     protocol.Call
		action   launcher.Action
		executed bool
	}{
		{"a resume after an I/O error", "", launcher.Resume{Attempt: 2}, true},
		{"the same, but the user has paused the guest", protocol.CallPause, launcher.Resume{Attempt: 2}, false},
		{"a resume that a call asked for", protocol.CallUnpause, launcher.Resume{}, true},
		{"a suspend that a call asked for", protocol.CallPause, launcher.Suspend{}, true},
		{"the same, but it was unpaused meanwhile", "", launcher.Suspend{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := &bytes.Buffer{}
			s := &Supervisor{config: Config{Logger: slog.New(slog.NewTextHandler(log, nil))}, facts: newFacts(), session: &session{ready: make(chan struct{})}}
			s.facts.domain, s.facts.call = launcher.Paused, tt.call
			require.NoError(t, s.act(ended, launcher.Plan{Actions: []launcher.Action{tt.action}}))
			s.work.Wait()
			require.Equal(t, tt.executed, strings.Contains(log.String(), "the guest"))
			require.False(t, s.facts.turning)
		})
	}
}
