package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/internal/handler/socket"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// short is a heartbeat for tests.
	short = 200 * time.Millisecond
	// brief is the timeout beside it for launchers that do not answer, and ample that for those
	// that do, also on a slow host.
	brief, ample = time.Second, 30 * time.Second
)

// listen accepts connections in the launcher's place until the test ends.
func (w *world) listen(serve func(net.Conn)) {
	w.t.Helper()
	l, err := net.Listen("unix", w.socket)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
}

// serve answers requests in the launcher's place until the test ends.
func (w *world) serve(h http.Handler) {
	w.t.Helper()
	l, err := net.Listen("unix", w.socket)
	require.NoError(w.t, err)
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	w.t.Cleanup(func() { _ = s.Close() })
}

func (w *world) condition(t vmi.ConditionType) vmi.Condition {
	if c := w.instance().Status.Condition(t); c != nil {
		return *c
	}
	return vmi.Condition{}
}

func accept(*control.Server, protocol.Desired) error { return nil }

// noAnswer is what is said of a launcher that does not answer within the brief timeout.
var noAnswer = fmt.Sprintf("the launcher does not answer within %s", brief)

// launchers are launchers that do not start their guest, each in its way.
var launchers = map[string]struct {
	launch  func(*world)
	reason  string
	message string
	stopped bool // the launcher takes a Stop in the end
}{
	"there is no socket": {launch: func(*world) {}, reason: "LauncherUnresponsive", message: "no such file or directory"},
	"nothing listens on the socket": {launch: func(w *world) {
		l, err := net.Listen("unix", w.socket)
		require.NoError(w.t, err)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		require.NoError(w.t, l.Close())
	}, reason: "LauncherUnresponsive", message: "connection refused"},
	"it is not a launcher's socket": {launch: func(w *world) {
		w.config.Dial = func(context.Context, string) (net.Conn, error) {
			return nil, fmt.Errorf("%w: it is a FIFO", socket.ErrUnsafe)
		}
	}, reason: "LauncherUnsafe", message: "it is a FIFO"},
	"it accepts connections and answers nothing": {
		launch: func(w *world) {
			w.answer = brief
			w.listen(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		},
		reason: "LauncherUnresponsive", message: noAnswer,
	},
	"it closes connections": {
		launch: func(w *world) { w.listen(func(c net.Conn) { _ = c.Close() }) },
		reason: "LauncherUnresponsive", message: "launcher",
	},
	"it answers what is not HTTP": {launch: func(w *world) {
		w.listen(func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte("220 mail.example.com ESMTP\r\n"))
			_ = c.Close()
		})
	}, reason: "LauncherUnresponsive", message: "malformed HTTP"},
	"it answers what is not a state": {launch: func(w *world) {
		w.serve(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("[1]\n")) }))
	}, reason: "LauncherUnresponsive", message: "cannot unmarshal"},
	"it fails each request": {launch: func(w *world) {
		w.serve(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusInternalServerError) }))
	}, reason: "LauncherUnresponsive", message: "500"},
	"it refuses the VMI whatever is put": {launch: func(w *world) {
		w.launch(protocol.State{Phase: protocol.Waiting}, func(*control.Server, protocol.Desired) error {
			return fmt.Errorf("%w: the disk has no bus", vmi.ErrInvalid)
		})
	}, reason: "LauncherRefuses", message: "the disk has no bus", stopped: true},
	"it refuses the VMI for now": {launch: func(w *world) {
		w.launch(protocol.State{Phase: protocol.Waiting}, func(*control.Server, protocol.Desired) error { return errors.New("busy") })
	}, reason: "LauncherRefuses", message: "busy", stopped: true},
	"it refuses the namespace": {launch: func(w *world) {
		w.binding = errors.New("the launcher sent no descriptor")
		w.launch(protocol.State{Phase: protocol.Waiting}, accept)
	}, reason: "NetworkFailed", message: "the launcher sent no descriptor", stopped: true},
	"its start fails again and again": {launch: func(w *world) {
		w.launch(protocol.State{Phase: protocol.Starting, Finding: &vmi.Finding{Reason: "NoDisk", Message: "the image is missing"}}, accept)
	}, reason: "NoDisk", message: "the image is missing", stopped: true},
}

func TestALauncherThatDoesNotStartItsGuestIsAConditionAndThenTheEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range launchers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.heartbeat = short
			scheduled := metav1.Now()
			w.change(func(v *vmi.VirtualMachineInstance) {
				v.Status.PhaseTransitionTimestamps = []vmi.PhaseTransitionTimestamp{{Phase: vmi.PhaseScheduled, PhaseTransitionTimestamp: scheduled}}
			})
			tt.launch(w)
			c, _ := w.handle()
			w.eventually("session", func() bool { return c.session(key, podUID) != nil })
			w.eventually("cause", func() bool {
				o := c.session(key, podUID).observe()
				return o.Finding != nil || o.State != nil && (o.State.Finding != nil)
			})
			w.elapse(10 * time.Second)
			w.eventually("condition", func() bool { return w.condition(vmi.ConditionSynchronized).Reason == tt.reason })
			require.Contains(t, w.condition(vmi.ConditionSynchronized).Message, tt.message)
			require.Equal(t, vmi.PhaseScheduled, w.instance().Status.Phase)
			w.elapse(handler.StartDeadline)
			w.phase(vmi.PhaseFailed)
			require.Equal(t, tt.reason, w.instance().Status.Reason)
			require.Contains(t, w.condition(vmi.ConditionReady).Message, "The guest did not start within 3m0s: ")
			require.Contains(t, w.condition(vmi.ConditionReady).Message, tt.message)
			require.Equal(t, 2, w.written(), "one write for the condition, one for the end")
			w.eventually("the session is ended", func() bool { return c.session(key, podUID) == nil })
			if tt.stopped {
				w.eventually("stop", func() bool {
					puts := w.puts()
					return len(puts) > 0 && reflect.DeepEqual(&protocol.Stop{}, puts[len(puts)-1].Stop)
				})
			}
		})
	}
}

func TestALauncherThatOnlyWaitsFailsWithAReason(t *testing.T) {
	t.Parallel()
	for _, phase := range []protocol.Phase{protocol.Waiting, protocol.Starting} {
		w := newWorld(t)
		w.launch(protocol.State{Phase: phase}, accept)
		w.handle()
		w.eventually("put", func() bool { return len(w.puts()) == 1 })
		w.elapse(handler.StartDeadline)
		w.phase(vmi.PhaseFailed)
		require.Equal(t, "StartTimeout", w.instance().Status.Reason)
		w.eventually("stop", func() bool { return len(w.puts()) == 2 && w.puts()[1].Stop != nil })
		require.Equal(t, 1, w.written())
	}
}

func TestAVMIThatCouldNotBeFailedIsNotStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(protocol.State{Phase: protocol.Waiting}, func(s *control.Server, d protocol.Desired) error {
		if d.Stop != nil {
			s.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Cancelled}})
		}
		return nil
	})
	w.handle()
	w.eventually("put", func() bool { return len(w.puts()) == 1 })
	w.api.mu.Lock()
	w.api.conflicts = 3
	w.api.mu.Unlock()
	w.elapse(handler.StartDeadline)
	w.eventually("the end", func() bool { return w.instance().Status.Phase.Final() })
	require.Equal(t, vmi.PhaseFailed, w.instance().Status.Phase, "the stop that followed from the failure is not its cause")
	require.Equal(t, "StartTimeout", w.instance().Status.Reason)
}

func TestALauncherThatHangsAfterItsStartIsNotReadyUntilItAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heartbeat, w.answer = short, brief
	w.hangs()
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	froze := time.Now()
	w.frozen.Store(true)
	w.eventually("detected", func() bool { return c.session(key, podUID).observe().State == nil })
	require.True(t, ready(w.instance()) == corev1.ConditionTrue || time.Since(froze) > handler.SilenceDelay, "not in the first seconds")
	w.elapse(handler.SilenceDelay)
	w.eventually("not ready", func() bool { return ready(w.instance()) == corev1.ConditionFalse })
	require.Equal(t, "LauncherUnresponsive", w.condition(vmi.ConditionSynchronized).Reason)
	require.Equal(t, noAnswer, w.condition(vmi.ConditionSynchronized).Message)
	require.Equal(t, "LauncherUnresponsive", w.condition(vmi.ConditionReady).Reason)
	require.Equal(t, "It is not known whether the guest runs: "+noAnswer, w.condition(vmi.ConditionReady).Message)
	w.elapse(time.Hour)
	time.Sleep(short)
	require.Equal(t, vmi.PhaseRunning, w.instance().Status.Phase, "its guest may run as long as its pod does")
	require.Equal(t, 2, w.written())

	w.frozen.Store(false)
	w.eventually("ready", func() bool { return ready(w.instance()) == corev1.ConditionTrue })
	require.Empty(t, w.condition(vmi.ConditionSynchronized))
	require.Equal(t, 3, w.written())
}

// stalled is a launcher whose stream brings the first state only, until it is
// watched again.
type stalled struct {
	state   atomic.Pointer[protocol.State]
	watches atomic.Int64
}

func (s *stalled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/watch":
		s.watches.Add(1)
		_ = json.NewEncoder(w).Encode(s.state.Load())
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case "/v1/state":
		_ = json.NewEncoder(w).Encode(s.state.Load())
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestAStreamThatStopsIsOpenedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heartbeat, w.answer = short, brief
	s := &stalled{}
	s.state.Store(&running)
	w.serve(s)
	w.handle()
	w.phase(vmi.PhaseRunning)
	var before int64
	w.eventually("a stream without changes is in order", func() bool { // on a slow host an answer may be late
		before = s.watches.Load()
		time.Sleep(brief + 5*short)
		return s.watches.Load() == before
	})
	stopped := time.Now()
	s.state.Store(&protocol.State{Phase: protocol.Paused, Machine: running.Machine, Disks: running.Disks,
		Pause: &protocol.Pause{Cause: protocol.PausedByIOError, Volume: "root", Message: "No space left on device"}})
	w.eventually("paused", func() bool { return w.condition(vmi.ConditionPaused).Reason == "PausedIOError" })
	require.Equal(t, "The guest was paused by an I/O error on volume root: No space left on device", w.condition(vmi.ConditionPaused).Message)
	after := s.watches.Load()
	require.Greater(t, after, before)
	require.LessOrEqual(t, after, before+max(1, int64(time.Since(stopped)/brief)))
	w.eventually("event", func() bool { return slices.Contains(w.reasons(), "W IOerror") })
}

func TestAPutThatIsNotAnsweredIsACondition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hang := make(chan struct{})
	w.launch(protocol.State{Phase: protocol.Waiting}, func(*control.Server, protocol.Desired) error {
		<-hang
		return nil
	})
	defer close(hang)
	w.handle()
	w.eventually("condition", func() bool { return w.condition(vmi.ConditionSynchronized).Reason == "LauncherUnresponsive" })
}

func TestALauncherThatCannotBeReachedIsDialledWithBackOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := time.Now()
	w.handle()
	time.Sleep(2 * time.Second)
	dials, written := w.dials.Load(), w.written()
	// 5 ms growing by half up to a second: 14 attempts in the first 2 s.
	took := time.Since(began)
	require.Less(t, dials, 23+int64(took/lastDelay))
	require.True(t, written == 0 || took > handler.SilenceDelay, "2 s are not worth a write")
}

func TestAStaleDesiredIsPutAgainWithAHigherGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var inForce atomic.Int64
	w.serve(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/watch": // the state of before the Put of another handler
			state := protocol.State{Phase: protocol.Waiting}
			if inForce.Load() > 41 {
				state = running
			}
			_ = json.NewEncoder(rw).Encode(state)
			_ = http.NewResponseController(rw).Flush()
			for inForce.Load() <= 41 && r.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			_ = json.NewEncoder(rw).Encode(running)
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		case "/v1/state":
			_ = json.NewEncoder(rw).Encode(protocol.State{Phase: protocol.Waiting, Generation: 41})
		case "/v1/desired":
			var d protocol.Desired
			_ = json.NewDecoder(r.Body).Decode(&d)
			if d.Generation < 41 {
				rw.WriteHeader(http.StatusConflict)
				_ = json.NewEncoder(rw).Encode(vmi.Finding{Reason: protocol.ReasonStale, Message: "41 is in force"})
				return
			}
			inForce.Store(d.Generation)
			rw.WriteHeader(http.StatusNoContent)
		}
	}))
	w.handle()
	w.phase(vmi.PhaseRunning)
	require.EqualValues(t, 42, inForce.Load())
	require.Equal(t, 1, w.written())
}

func TestALauncherThatVariesItsFailuresCausesFewWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var n atomic.Int64
	w.config.Dial = func(context.Context, string) (net.Conn, error) {
		err := fmt.Errorf("failure %d: %w", n.Add(1), os.ErrNotExist)
		if n.Load()%2 == 0 {
			err = fmt.Errorf("failure %d: %w", n.Load(), socket.ErrUnsafe)
		}
		return nil, err
	}
	w.handle()
	w.eventually("attempts", func() bool { return n.Load() > 2 })
	w.elapse(handler.SilenceDelay)
	w.eventually("condition", func() bool { return w.condition(vmi.ConditionSynchronized).Reason != "" })
	before := n.Load()
	w.eventually("attempts", func() bool { return n.Load() > before+4 })
	require.Equal(t, 1, w.written())
	w.elapse(refreshPeriod)
	w.eventually("a later cause", func() bool { return w.written() == 2 })
}
