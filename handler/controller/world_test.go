package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const (
	nodeName = "n1"
	podUID   = "0e3f8a52-9c1b-4b5e-8f6d-2a7c4d9e1f00"
	// otherNode is that of otherPod.
	otherNode = "n2"
	otherPod  = "7b1d2c34-58aa-4d0c-b7a9-64f0e2c8d911"
	// foreignPod is one that no status names.
	foreignPod = "c5f0b9de-1f3a-4c7e-9d55-3e1a8b7f6a02"
	key        = "default/testvmi"
)

// world is an API server, a launcher's socket and a node.
type world struct {
	t      *testing.T
	api    *api
	config Config
	events *fake.Clientset

	socket string
	// heartbeat is the period of a session, and answer the timeout beside it. 0: the real ones.
	heartbeat, answer time.Duration
	// elapsed is how far the handler's clock is ahead.
	elapsed atomic.Int64
	// frozen is true while the launcher hangs.
	frozen atomic.Bool
	dials  atomic.Int64
	// away says that a handler does not reach the API server, as far as it asks whether it
	// does.
	away atomic.Bool

	// calls are those that the launcher knows.
	calls     map[protocol.Call]func(context.Context) error
	questions map[protocol.Call]func(context.Context, []byte) (any, error)
	streams   map[protocol.Stream]func(context.Context) (net.Conn, error)
	stats     func(context.Context) (protocol.Stats, error)
	// wire translates what handlers say to each other. Nil: nothing is.
	wire func(protocol.Call, json.RawMessage) (json.RawMessage, error)

	mu      sync.Mutex
	desired []protocol.Desired
	binding error // of a network that cannot be bound
}

func newWorld(t *testing.T, options ...vmitest.Option) *world {
	v := vmitest.New(append([]vmitest.Option{vmitest.WithMasquerade("default"), vmitest.WithGracePeriod(7), vmitest.WithEmptyDisk("root", "1Gi")}, options...)...)
	v.ResourceVersion = "1"
	v.Status = vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseScheduled, NodeName: nodeName, ActivePods: map[types.UID]string{podUID: nodeName}}
	w := &world{t: t, api: &api{t: t, version: 1, instance: v}, events: fake.NewClientset()}
	s := httptest.NewServer(w.api)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	c, err := client.New(&rest.Config{Host: s.URL, QPS: -1})
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "hc")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.socket = filepath.Join(dir, "s")
	w.config = Config{Node: nodeName, Client: c, Events: w.events.CoreV1(), Dial: w.dial, Bind: w.bind}
	return w
}

func (w *world) dial(ctx context.Context, uid string) (net.Conn, error) {
	if uid != podUID && uid != otherPod && uid != foreignPod {
		return nil, fmt.Errorf("no pod %s: %w", uid, os.ErrNotExist)
	}
	w.dials.Add(1)
	return (&net.Dialer{}).DialContext(ctx, "unix", w.socketOf(uid))
}

// socketOf is the socket of the launcher in a pod.
func (w *world) socketOf(pod string) string {
	return w.socket + map[string]string{otherPod: "2", foreignPod: "3"}[pod]
}

// hangs makes the launcher one that hangs while frozen is true.
func (w *world) hangs() {
	w.config.Dial = func(ctx context.Context, uid string) (net.Conn, error) {
		if w.frozen.Load() {
			ours, theirs := net.Pipe()
			// Closed after the test: an end of its own would be the error at times.
			w.t.Cleanup(func() { _ = theirs.Close() })
			return ours, nil
		}
		c, err := w.dial(ctx, uid)
		return &freezer{Conn: c, frozen: &w.frozen, closed: make(chan struct{})}, err
	}
}

// freezer is a connection to a launcher that hangs while frozen is true: it stays
// open and brings nothing.
type freezer struct {
	net.Conn
	frozen *atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (f *freezer) Read(b []byte) (int, error) {
	for {
		n, err := f.Conn.Read(b)
		switch {
		case !f.frozen.Load():
			return n, err
		case errors.Is(err, io.EOF): // who hangs closes nothing
			for f.frozen.Load() {
				select {
				case <-f.closed:
					return n, err
				case <-time.After(10 * time.Millisecond):
				}
			}
			return n, err
		case err != nil:
			return n, err
		}
	}
}

func (f *freezer) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

func (w *world) bind(context.Context, *control.Client, *vmi.VirtualMachineInstance) (network.Config, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return network.Config{
		Attachments: []network.Attachment{{Name: "default", Tap: "tap0", MAC: "02:00:00:00:00:01"}},
		Interfaces:  []vmi.InterfaceStatus{{Name: "default", IP: "10.244.1.7", IPs: []string{"10.244.1.7"}, MAC: "02:00:00:00:00:01"}},
	}, w.binding
}

// launch starts a launcher in the pod, which does what put does. It runs until the
// returned function is called.
func (w *world) launch(state protocol.State, put func(*control.Server, protocol.Desired) error) (server *control.Server, stop func()) {
	w.t.Helper()
	return w.launchIn(podUID, state, func(s *control.Server, d protocol.Desired) error {
		w.mu.Lock()
		w.desired = append(w.desired, d)
		w.mu.Unlock()
		return put(s, d)
	})
}

// launchIn starts a launcher in one of the two pods.
func (w *world) launchIn(pod string, state protocol.State, put func(*control.Server, protocol.Desired) error) (server *control.Server, stop func()) {
	w.t.Helper()
	l, err := net.Listen("unix", w.socketOf(pod))
	require.NoError(w.t, err)
	server = control.NewServer(control.ServerConfig{
		Namespace: "default", Name: "testvmi", UID: vmitest.UID, Calls: w.calls, Questions: w.questions, Streams: w.streams, Stats: w.stats,
		Put: func(d protocol.Desired) error { return put(server, d) },
	})
	server.Publish(state)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	w.t.Cleanup(stop)
	return server, stop
}

// handle starts a handler. It runs until the returned function is called.
func (w *world) handle() (c *Controller, stop func()) {
	w.t.Helper()
	return w.handleOn(nodeName)
}

// handleOn starts the handler of one of the two nodes.
func (w *world) handleOn(node string) (c *Controller, stop func()) {
	w.t.Helper()
	config := w.config
	config.Node = node
	c, err := New(config)
	require.NoError(w.t, err)
	c.timing.now = w.now
	c.guard.reach, c.guard.period = w.reach, 50*time.Millisecond
	if w.heartbeat != 0 {
		c.timing.heartbeat, c.timing.answer = w.heartbeat, cmp.Or(w.answer, ample)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	w.t.Cleanup(stop)
	return c, stop
}

// reach says whether the handler reaches the API server.
func (w *world) reach(context.Context) error {
	if w.away.Load() {
		return errors.New("no route to host")
	}
	return nil
}

// now is the handler's time.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.elapsed.Load())) }

// elapse makes d pass for the handler, and has it decide again.
func (w *world) elapse(d time.Duration) {
	w.elapsed.Add(int64(d))
	w.change(func(v *vmi.VirtualMachineInstance) {
		v.Labels = map[string]string{"elapsed": w.now().Format("150405.000")}
	})
}

func (w *world) change(f func(*vmi.VirtualMachineInstance)) {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	w.api.change("MODIFIED", f)
}

func (w *world) instance() *vmi.VirtualMachineInstance {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	return w.api.instance
}

// patches is how many writes were tried, but for those that only say whether the launcher answers.
func (w *world) patches() int {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	return w.api.patches - w.api.silences
}

func (w *world) written() int {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	return w.api.written
}

func (w *world) puts() []protocol.Desired {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]protocol.Desired(nil), w.desired...)
}

// changes is how many of the patches changed the VMI. Two handlers may meet each other's writes.
func (w *world) changes() int {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	return w.api.written - w.api.silences
}

// reasons are those of the events so far, in order, but for that of a launcher that does not answer.
func (w *world) reasons() []string {
	l, err := w.events.CoreV1().Events("default").List(context.Background(), metav1.ListOptions{})
	require.NoError(w.t, err)
	var all []string
	for _, e := range l.Items {
		if !strings.HasPrefix(e.Message, vmi.ReasonLauncherUnresponsive) {
			all = append(all, string(e.Type[0])+" "+e.Reason)
		}
	}
	return all
}

func (w *world) eventually(what string, f func() bool) {
	w.t.Helper()
	require.Eventually(w.t, f, time.Minute, 2*time.Millisecond, what)
}

func (w *world) phase(p vmi.Phase) {
	w.t.Helper()
	w.eventually("phase "+string(p), func() bool { return w.instance().Status.Phase == p })
}

var running = protocol.State{Phase: protocol.Running, Movable: true, Machine: "pc-q35-7.2", Disks: []protocol.Disk{{Name: "root", Target: "vda", SizeBytes: 5}}}

// obey is a launcher that starts its guest, and stops it if that is desired.
func obey(s *control.Server, d protocol.Desired) error {
	if d.Stop != nil {
		s.Publish(protocol.State{Phase: protocol.Stopping})
		s.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown, Message: "the guest powered off"}})
		return nil
	}
	runs := running
	runs.Generation = d.Generation
	s.Publish(runs)
	return nil
}

func ready(v *vmi.VirtualMachineInstance) corev1.ConditionStatus {
	if c := v.Status.Condition(vmi.ConditionReady); c != nil {
		return c.Status
	}
	return ""
}
