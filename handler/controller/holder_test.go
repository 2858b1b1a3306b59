package controller

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// put says whether a VMI was put to the launcher.
func (w *world) put() bool { return len(w.puts()) > 0 }

func TestAGuestWaitsForThatOfAVMIThatIsGoneAndHasItsClaim(t *testing.T) {
	t.Parallel()
	const shared = "claim default/data"
	for name, tt := range map[string]struct {
		holds string
		// stray makes what is in the other pod, and returns what ends it.
		stray func(t *testing.T, w *world) (end func())
		waits bool
	}{
		"its guest runs": {shared, func(_ *testing.T, w *world) func() {
			s, _ := w.launchIn(otherPod, running, func(*control.Server, protocol.Desired) error { return nil })
			return func() {
				s.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown}})
			}
		}, true},
		"its launcher hangs": {shared, func(t *testing.T, w *world) func() {
			l, err := net.Listen("unix", w.socketOf(otherPod)) // nothing accepts
			require.NoError(t, err)
			w.heartbeat, w.answer = time.Second, brief
			return func() { require.NoError(t, l.Close()) }
		}, true},
		"its guest has ended": {shared, func(_ *testing.T, w *world) func() {
			w.launchIn(otherPod, protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown}}, func(*control.Server, protocol.Desired) error { return nil })
			return func() {}
		}, false},
		"its launcher is gone": {shared, func(*testing.T, *world) func() { return func() {} }, false},
		"it had another claim": {"claim default/other", func(_ *testing.T, w *world) func() {
			w.launchIn(otherPod, running, func(*control.Server, protocol.Desired) error { return nil })
			return func() {}
		}, false},
		"it is of another namespace": {"claim other/data", func(_ *testing.T, w *world) func() {
			w.launchIn(otherPod, running, func(*control.Server, protocol.Desired) error { return nil })
			return func() {}
		}, false},
		"nothing of its pod is left": {shared, func(_ *testing.T, w *world) func() {
			w.launchIn(otherPod, running, func(*control.Server, protocol.Desired) error { return nil })
			w.config.Exists = func(uid string) (bool, error) { return uid != otherPod, nil }
			return func() {}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, vmitest.WithClaim("data", "data"))
			end := tt.stray(t, w)
			c, _ := w.handle()
			c.holders.note(otherPod, []string{tt.holds}) // of a VMI that is gone by now
			w.launch(protocol.State{Phase: protocol.Waiting}, obey)
			if tt.waits {
				w.eventually("it says so", func() bool {
					f := w.instance().Status.Condition(vmi.ConditionSynchronized)
					return f != nil && f.Reason == handler.ReasonClaimInUse
				})
				require.False(t, w.put())
				w.elapse(5 * time.Minute)
				require.Never(t, w.put, 1200*time.Millisecond, 10*time.Millisecond)
				require.Equal(t, vmi.PhaseScheduled, w.instance().Status.Phase)
				end()
			}
			w.phase(vmi.PhaseRunning)
		})
	}
}

func TestWhatTheGuestOfAVMIHoldsIsKnownAfterTheVMIIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmitest.WithClaim("data", "data"))
	_, stop := w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	require.Empty(t, c.holders.others(c.known()))
	w.api.mu.Lock()
	w.api.change("DELETED", func(*vmi.VirtualMachineInstance) {})
	w.api.mu.Unlock()
	w.eventually("it is not known", func() bool { return len(c.known()) == 0 })
	require.Equal(t, []types.UID{podUID}, c.holders.others(nil))
	require.Equal(t, "claim default/data", c.holders.shared(podUID, []string{"claim default/data"}))
	next := vmitest.New(vmitest.WithName("next"), vmitest.WithClaim("disk", "data"))
	w.eventually("its session is over, and it is asked", func() bool {
		return !c.isOpen(podUID) && c.beside(t.Context(), "default/next", next, otherPod) != nil
	})
	require.Never(t, func() bool { return c.beside(t.Context(), "default/next", next, otherPod) == nil }, 100*time.Millisecond, 10*time.Millisecond)
	stop()
	w.eventually("its launcher is gone", func() bool { return c.beside(t.Context(), "default/next", next, otherPod) == nil })
	c.config.Exists = func(string) (bool, error) { return false, nil }
	require.Nil(t, c.beside(t.Context(), "default/next", next, otherPod))
	require.Empty(t, c.holders.others(nil), "nothing is kept of what is gone")
}

func TestAGuestThatHasEndedHoldsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmitest.WithClaim("data", "data"))
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	w.change(func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.Now()) })
	w.phase(vmi.PhaseSucceeded)
	w.eventually("it is dropped", func() bool { return len(c.holders.others(nil)) == 0 })
}

// What the process before knew is lost: its successor looks for guests whose VMIs are gone, and
// ends them.
func TestNoGuestWithAClaimStartsBeforeTheHandlerHasLookedForOthers(t *testing.T) {
	t.Parallel()
	for _, claims := range []bool{true, false} {
		t.Run(fmt.Sprint(claims), func(t *testing.T) {
			t.Parallel()
			var options []vmitest.Option
			if claims {
				options = append(options, vmitest.WithClaim("data", "data"))
			}
			w := newWorld(t, options...)
			var known atomic.Bool
			w.config.Launchers = func() ([]types.UID, error) {
				if !known.Load() {
					return nil, os.ErrPermission
				}
				return nil, nil
			}
			w.launch(protocol.State{Phase: protocol.Waiting}, obey)
			w.handle()
			if claims {
				require.Never(t, w.put, 500*time.Millisecond, 10*time.Millisecond)
				known.Store(true)
			}
			w.phase(vmi.PhaseRunning)
		})
	}
}

func TestWhatAGuestHolds(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithClaim("one", "data"), vmitest.WithContainerDisk("two", "example/os"))
	require.Equal(t, []string{"claim default/data"}, holds(v))
	v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)}
	require.Equal(t, []string{"claim default/data", "state default/testvmi"}, holds(v))
	require.Empty(t, holds(vmitest.New()))
}

func TestAttackALauncherOfAGoneVMIThatHangsHoldsNoWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, err := net.Listen("unix", w.socketOf(otherPod)) // nothing accepts
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	var asked atomic.Int32
	w.config.Dial = func(ctx context.Context, uid string) (net.Conn, error) {
		if uid == otherPod {
			asked.Add(1)
		}
		return w.dial(ctx, uid)
	}
	c, _ := w.handle()
	c.holders.note(otherPod, []string{"claim default/data"})
	v := vmitest.New(vmitest.WithClaim("disk", "data"))
	w.eventually("compared", c.guard.compared.Load)
	began := time.Now()
	const times = 1000
	for range times {
		require.NotNil(t, c.beside(t.Context(), key, v, podUID))
	}
	questions, took := asked.Load(), time.Since(began)
	require.Less(t, took, times/10*handler.AnswerTimeout, "the answer is not waited for")
	require.LessOrEqual(t, questions, 1+int32(took/handler.AnswerTimeout), "and one question is asked at a time")
}
