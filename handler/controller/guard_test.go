package controller

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// withStray is a world in which the launcher of otherPod is on the node too. It has the state,
// and ends when it is called.
func withStray(t *testing.T, state protocol.State, obeys bool) (w *world, asked *atomic.Int32) {
	var stray *control.Server
	w, asked = newWorld(t), &atomic.Int32{}
	w.calls = map[protocol.Call]func(context.Context) error{protocol.CallDestroy: func(context.Context) error {
		asked.Add(1)
		if obeys {
			stray.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Killed}})
		}
		return nil
	}}
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	stray, _ = w.launchIn(otherPod, state, func(*control.Server, protocol.Desired) error { return nil })
	w.config.Launchers = func() ([]types.UID, error) { return []types.UID{podUID, otherPod}, nil }
	return w, asked
}

func TestAHandlerIsNotReadyBeforeTheGuestsThatAreNotItsOwnHaveEnded(t *testing.T) {
	t.Parallel()
	w, asked := withStray(t, running, true)
	c, err := New(w.config)
	require.NoError(t, err)
	require.Error(t, c.guard.ready(), "it has not looked yet")
	c, _ = w.handle()
	w.eventually("ready", func() bool { return c.Ready() == nil })
	require.Equal(t, int32(1), asked.Load())
	require.Equal(t, protocol.Ended, stateOf(t, w, otherPod).Phase)
	w.phase(vmi.PhaseRunning)
	require.Equal(t, protocol.Running, stateOf(t, w, podUID).Phase, "the guest of the VMI runs on")
}

// stateOf asks the launcher in the pod.
func stateOf(t *testing.T, w *world, pod string) protocol.State {
	t.Helper()
	s, err := control.NewClient(func(ctx context.Context) (net.Conn, error) { return w.dial(ctx, pod) }).State(t.Context())
	require.NoError(t, err)
	return s
}

func TestALauncherThatWasNotHandedOverIsNoStray(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]protocol.State{
		"it waits":     {Phase: protocol.Waiting},
		"it has ended": {Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, asked := withStray(t, state, true)
			c, _ := w.handle()
			w.eventually("ready", func() bool { return c.Ready() == nil })
			require.Zero(t, asked.Load())
		})
	}
}

func TestAStrayThatDoesNotEndKeepsTheHandlerForAWhile(t *testing.T) {
	t.Parallel()
	w, asked := withStray(t, running, false)
	c, _ := w.handle()
	w.eventually("asked", func() bool { return asked.Load() > 0 })
	require.Never(t, func() bool { return c.guard.ready() == nil }, 200*time.Millisecond, 10*time.Millisecond)
	w.eventually("said", func() bool {
		err := c.guard.ready()
		return err != nil && strings.Contains(err.Error(), "1 guests run whose VMIs do not run in their pods")
	})
	w.elapse(strayLimit + time.Second)
	before := asked.Load()
	w.eventually("ready", func() bool { return c.Ready() == nil })
	w.eventually("asked again", func() bool { return asked.Load() > before+1 })
}

func TestANodeThatWasFencedEndsItsGuestsBeforeItsHandlerIsReady(t *testing.T) {
	t.Parallel()
	w, asked := withStray(t, protocol.State{Phase: protocol.Waiting}, false)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	w.eventually("ready", func() bool { return c.Ready() == nil })
	w.away.Store(true)
	require.Eventually(t, func() bool { return c.guard.ready() != nil }, time.Minute, 10*time.Millisecond)
	require.ErrorContains(t, c.guard.ready(), "the API server does not answer: no route to host")
	// The API server has the VMI on another node by now, and the handler's cache does not.
	w.api.mu.Lock()
	w.api.instance.Status.NodeName, w.api.instance.Status.ActivePods = otherNode, map[types.UID]string{otherPod: otherNode}
	w.api.mu.Unlock()
	w.away.Store(false)
	w.eventually("asked", func() bool { return asked.Load() > 0 })
	require.Error(t, c.guard.ready(), "its guest has not ended")
}

// virt-controller ends a VMI whose node is fenced, and its VM deletes it at once.
func TestAGuestWhoseVMIWasEndedElsewhereIsSwitchedOff(t *testing.T) {
	t.Parallel()
	for name, vanish := range map[string]bool{"it stays": false, "it is gone at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var tries atomic.Int32
			var server *control.Server
			w.calls = map[protocol.Call]func(context.Context) error{protocol.CallDestroy: func(context.Context) error {
				if tries.Add(1) == 1 {
					return errors.New("libvirt does not answer")
				}
				server.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Killed}})
				return nil
			}}
			server, _ = w.launch(protocol.State{Phase: protocol.Waiting}, obey)
			w.handle()
			w.phase(vmi.PhaseRunning)
			w.api.mu.Lock()
			w.api.change("MODIFIED", func(v *vmi.VirtualMachineInstance) {
				v.Status.End(vmi.PhaseFailed, vmi.ReasonNodeUnresponsive, vmi.Finding{Reason: vmi.ReasonGuestNotRunning}, metav1.Now())
			})
			if vanish {
				w.api.change("DELETED", func(*vmi.VirtualMachineInstance) {})
			}
			w.api.mu.Unlock()
			w.eventually("the guest is off", func() bool { return stateOf(t, w, podUID).Phase == protocol.Ended })
			require.Equal(t, int32(2), tries.Load(), "until it has ended")
		})
	}
}

// An API server that is cut off from the others goes on to answer what it has in its cache.
func TestAHandlerAsksForWhatIsStoredNow(t *testing.T) {
	t.Parallel()
	asked := make(chan url.Values, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"kubevirt.io/v1","kind":"KubeVirtList","metadata":{},"items":[]}`))
	}))
	t.Cleanup(s.Close)
	vmis, err := client.New(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	c := &Controller{config: Config{Client: vmis}}
	require.NoError(t, c.reachAPI(t.Context()))
	require.False(t, (<-asked).Has("resourceVersion"), "any version is good enough then")
}

// virt-controller writes after 40 s of every VMI of the node that its handler is not ready.
func TestAttackAStrayMakesNoOtherVMIOfTheNodeNotReady(t *testing.T) {
	t.Parallel()
	const handlerTime, probes = 40 * time.Second, 10 * time.Second
	require.Less(t, strayLimit+handler.AnswerTimeout+againPeriod, handlerTime-probes)
}

// Every pod can have such a socket, not only that of a VMI.
func TestAttackALauncherThatDoesNotSayWhatItHasKeepsTheHandlerForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, err := net.Listen("unix", w.socketOf(otherPod)) // nothing accepts
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	w.config.Launchers = func() ([]types.UID, error) { return []types.UID{podUID, otherPod}, nil }
	w.heartbeat, w.answer = time.Second, brief
	c, _ := w.handle()
	require.Eventually(t, func() bool {
		err := c.guard.ready()
		return err != nil && err.Error() == "1 launchers whose VMIs are not here do not answer"
	}, time.Minute, 10*time.Millisecond)
	w.elapse(strayLimit + time.Second)
	w.eventually("ready", func() bool { return c.Ready() == nil })
}

func TestAttackAStrayDoesNotMakeAHandlerReadyThatDoesNotKnowTheOthers(t *testing.T) {
	t.Parallel()
	w, asked := withStray(t, running, false)
	launchers, unknown := w.config.Launchers, atomic.Bool{}
	w.config.Launchers = func() ([]types.UID, error) {
		if unknown.Load() {
			return nil, errors.New("too many open files")
		}
		return launchers()
	}
	c, _ := w.handle()
	w.eventually("asked", func() bool { return asked.Load() > 0 })
	w.away.Store(true)
	w.eventually("away", func() bool { return c.guard.ready().Error() == "the API server does not answer: no route to host" })
	unknown.Store(true)
	w.away.Store(false)
	w.eventually("back", func() bool { return c.guard.ready().Error() == "find the launchers on the node: too many open files" })
	w.elapse(strayLimit + time.Second)
	require.Never(t, func() bool { return c.guard.ready() == nil }, 2*againPeriod+200*time.Millisecond, 10*time.Millisecond)
}

func TestTheEndOfAPodThatWasRemovedIsReportedOnceTheKubeletHasNothingOfIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var gone atomic.Bool
	w.config.Exists = func(uid string) (bool, error) {
		require.Equal(t, podUID, uid)
		return !gone.Load(), nil
	}
	_, stop := w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	w.handle()
	w.phase(vmi.PhaseRunning)
	w.change(func(v *vmi.VirtualMachineInstance) {
		c := v.Status.Condition(vmi.ConditionReady)
		c.Status, c.Reason = "Unknown", vmi.ReasonPodRemoved
	})
	stop()
	require.Never(t, func() bool { return w.instance().Status.Phase.Final() }, 300*time.Millisecond, 10*time.Millisecond)
	gone.Store(true)
	w.phase(vmi.PhaseFailed)
	require.Equal(t, "PodGone", w.instance().Status.Reason)
}

// What is asked of the launchers, and of the node about them, may hang.
func TestAHandlerNoticesThatTheAPIServerIsAwayWhileTheNodeHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	w.config.Launchers = func() ([]types.UID, error) {
		asked <- struct{}{}
		<-answer
		return nil, nil
	}
	c, _ := w.handle()
	t.Cleanup(func() { close(answer) }) // before the handler ends
	<-asked
	w.away.Store(true)
	w.eventually("away", func() bool { return c.guard.ready().Error() == "the API server does not answer: no route to host" })
	w.away.Store(false)
	w.eventually("back", func() bool { c.guard.mu.Lock(); defer c.guard.mu.Unlock(); return !c.guard.since.IsZero() })
	answer <- struct{}{} // to what was asked before: the node may have been fenced since
	<-asked
	require.Error(t, c.guard.ready(), "only what was found since then counts")
	answer <- struct{}{}
	w.eventually("ready", func() bool { return c.Ready() == nil })
}
