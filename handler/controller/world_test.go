package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const (
	nodeName = "n1"
	podUID   = "0e3f8a52-9c1b-4b5e-8f6d-2a7c4d9e1f00"
	key      = "default/testvmi"
)

// api is an API server that knows machines and nothing else.
type api struct {
	t *testing.T

	mu       sync.Mutex
	version  int
	machine  *vmi.VirtualMachineInstance
	watchers []chan metav1.WatchEvent
	patches  int
	// conflicts is how many writes meet a machine that somebody else wrote.
	conflicts int
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status"):
		a.patch(w, r)
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		a.watch(w, r)
	case r.Method == http.MethodGet:
		a.list(w, r)
	default:
		a.t.Errorf("unexpected %s %s", r.Method, r.URL)
	}
}

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	if got := r.URL.Query().Get("fieldSelector"); got != "status.nodeName="+nodeName {
		a.t.Errorf("a handler must ask for its own machines only, not %q", got)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := vmi.VirtualMachineInstanceList{TypeMeta: metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.Kind.Kind + "List"}}
	l.ResourceVersion = strconv.Itoa(a.version)
	if a.machine != nil {
		l.Items = append(l.Items, *a.machine)
	}
	_ = json.NewEncoder(w).Encode(l)
}

func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan metav1.WatchEvent, 100)
	a.mu.Lock()
	a.watchers = append(a.watchers, events)
	if a.machine != nil && r.URL.Query().Get("sendInitialEvents") == "true" {
		events <- event("ADDED", a.machine)
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		end := &vmi.VirtualMachineInstance{TypeMeta: metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.Kind.Kind}}
		end.ResourceVersion = strconv.Itoa(a.version)
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		events <- event("BOOKMARK", end)
	}
	a.mu.Unlock()
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case e := <-events:
			_ = json.NewEncoder(w).Encode(e)
		case <-r.Context().Done():
			return
		}
	}
}

func event(kind string, v *vmi.VirtualMachineInstance) metav1.WatchEvent {
	raw, _ := json.Marshal(v)
	e := metav1.WatchEvent{Type: kind}
	e.Object.Raw = raw
	return e
}

func (a *api) patch(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.patches++
	var head struct {
		Metadata struct{ ResourceVersion string } `json:"metadata"`
	}
	_ = json.Unmarshal(body, &head)
	if a.conflicts > 0 {
		a.conflicts--
		a.change("MODIFIED", func(v *vmi.VirtualMachineInstance) {
			v.Labels = map[string]string{"changed": strconv.Itoa(a.conflicts)}
		})
	}
	switch {
	case a.machine == nil:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case head.Metadata.ResourceVersion != a.machine.ResourceVersion:
		fail(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	old, _ := json.Marshal(a.machine)
	patched, err := jsonpatch.MergePatch(old, body)
	if err != nil {
		a.t.Errorf("patch: %v", err)
	}
	a.change("MODIFIED", func(v *vmi.VirtualMachineInstance) {
		*v = vmi.VirtualMachineInstance{}
		_ = json.Unmarshal(patched, v)
	})
	_ = json.NewEncoder(w).Encode(a.machine)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(code), Reason: reason,
	})
}

// change changes the machine and tells those who watch. The lock is held.
func (a *api) change(kind string, f func(*vmi.VirtualMachineInstance)) {
	v := a.machine.DeepCopy()
	f(v)
	a.version++
	v.ResourceVersion = strconv.Itoa(a.version)
	a.machine = v
	for _, w := range a.watchers {
		w <- event(kind, v)
	}
	if kind == "DELETED" {
		a.machine = nil
	}
}

// world is an API server, a launcher's socket and a node.
type world struct {
	t      *testing.T
	api    *api
	config Config
	events *fake.Clientset

	socket string

	mu       sync.Mutex
	desired  []control.Desired
	plumbed  int
	plumbing error
}

func newWorld(t *testing.T, options ...vmitest.Option) *world {
	v := vmitest.New(append([]vmitest.Option{vmitest.WithMasquerade("default"), vmitest.WithGracePeriod(7)}, options...)...)
	v.ResourceVersion = "1"
	v.Status = vmi.VirtualMachineInstanceStatus{Phase: vmi.Scheduled, NodeName: nodeName, ActivePods: map[types.UID]string{podUID: nodeName}}
	w := &world{t: t, api: &api{t: t, version: 1, machine: v}, events: fake.NewClientset()}
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
	w.config = Config{Node: nodeName, Client: c, Events: w.events.CoreV1(), Dial: w.dial, Plumb: w.plumb}
	return w
}

func (w *world) dial(ctx context.Context, uid string) (net.Conn, error) {
	if uid != podUID {
		return nil, fmt.Errorf("no pod %s: %w", uid, os.ErrNotExist)
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
}

func (w *world) plumb(context.Context, *control.Client, *vmi.VirtualMachineInstance) (network.Config, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plumbed++
	return network.Config{
		Attachments: []network.Attachment{{Name: "default", Tap: "tap0", MAC: "02:00:00:00:00:01"}},
		Interfaces:  []vmi.InterfaceStatus{{Name: "default", IP: "10.244.1.7", IPs: []string{"10.244.1.7"}, MAC: "02:00:00:00:00:01"}},
	}, w.plumbing
}

// launch starts a launcher in the pod, which does as put says. It runs until the
// returned function is called.
func (w *world) launch(state control.State, put func(*control.Server, control.Desired) error) (server *control.Server, stop func()) {
	w.t.Helper()
	l, err := net.Listen("unix", w.socket)
	require.NoError(w.t, err)
	server = control.NewServer(control.ServerConfig{
		Namespace: "default", Name: "testvmi", UID: vmitest.UID,
		Put: func(d control.Desired) error {
			w.mu.Lock()
			w.desired = append(w.desired, d)
			w.mu.Unlock()
			return put(server, d)
		},
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

// handle starts a handler. It works until the returned function is called.
func (w *world) handle() (c *Controller, stop func()) {
	w.t.Helper()
	c, err := New(w.config)
	require.NoError(w.t, err)
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

func (w *world) change(f func(*vmi.VirtualMachineInstance)) {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	w.api.change("MODIFIED", f)
}

func (w *world) machine() *vmi.VirtualMachineInstance {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	return w.api.machine
}

func (w *world) patches() int {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	return w.api.patches
}

func (w *world) puts() []control.Desired {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]control.Desired(nil), w.desired...)
}

// reasons are those of the events so far, in order.
func (w *world) reasons() []string {
	l, err := w.events.CoreV1().Events("default").List(context.Background(), metav1.ListOptions{})
	require.NoError(w.t, err)
	var all []string
	for _, e := range l.Items {
		all = append(all, string(e.Type[0])+" "+e.Reason)
	}
	return all
}

func (w *world) eventually(what string, f func() bool) {
	w.t.Helper()
	require.Eventually(w.t, f, 15*time.Second, 2*time.Millisecond, what)
}

func (w *world) phase(p vmi.Phase) {
	w.t.Helper()
	w.eventually("phase "+string(p), func() bool { return w.machine().Status.Phase == p })
}

var running = control.State{Phase: control.Running, Machine: "pc-q35-7.2", Disks: []control.Disk{{Name: "root", Target: "vda", SizeBytes: 5}}}

// obey is a launcher that starts when it is told to and ends when it is told to.
func obey(s *control.Server, d control.Desired) error {
	if d.Stop != nil {
		s.Publish(control.State{Phase: control.Stopping})
		s.Publish(control.State{Phase: control.Ended, End: &control.End{Reason: control.Shutdown, Message: "the guest powered off"}})
		return nil
	}
	s.Publish(running)
	return nil
}

func ready(v *vmi.VirtualMachineInstance) corev1.ConditionStatus {
	if c := v.Status.Condition(vmi.ConditionReady); c != nil {
		return c.Status
	}
	return ""
}
