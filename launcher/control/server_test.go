package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// serve runs a server of the VMI of [own] until the test ends and returns it with
// a client.
func serve(t testing.TB, c ServerConfig) (*Server, *Client) {
	t.Helper()
	c.Namespace, c.Name, c.UID = "ns", "vm", "u1"
	s := NewServer(c)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return s, NewClient(dialTo(path))
}

func dialTo(path string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
}

func own() *vmi.VirtualMachineInstance {
	return &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "vm", UID: "u1"}}
}

// accept is a Put that takes everything.
func accept(protocol.Desired) error { return nil }

func TestAServerReturnsTheLastStateThatWasPublished(t *testing.T) {
	s, c := serve(t, ServerConfig{})
	got, err := c.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, protocol.State{Phase: protocol.Waiting}, got)

	want := protocol.State{Phase: protocol.Running, Machine: "pc-q35-7.2", Disks: []protocol.Disk{{Name: "root", Target: "vda", SizeBytes: 4096}}}
	s.Publish(want)
	got, err = c.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestAWatchReturnsThePresentStateFirstAndEndsAfterTheEndedState(t *testing.T) {
	s, c := serve(t, ServerConfig{})
	s.Publish(protocol.State{Phase: protocol.Starting})
	var phases []protocol.Phase
	for state, err := range c.Watch(t.Context()) {
		require.NoError(t, err)
		phases = append(phases, state.Phase)
		switch state.Phase {
		case protocol.Starting:
			s.Publish(protocol.State{Phase: protocol.Running})
		case protocol.Running:
			s.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown}})
		}
	}
	require.Equal(t, []protocol.Phase{protocol.Starting, protocol.Running, protocol.Ended}, phases)
	<-s.Drained()
}

func TestAServerIsDrainedWhenEveryWatcherWasSentTheEndedState(t *testing.T) {
	s, c := serve(t, ServerConfig{})
	s.Publish(protocol.State{Phase: protocol.Ended})
	select {
	case <-s.Drained():
		t.Fatal("no client was sent the Ended state")
	default:
	}
	_, err := c.State(t.Context())
	require.NoError(t, err)
	<-s.Drained()
}

func TestAServerPutsTheDesiredOfItsOwnInstance(t *testing.T) {
	var got []protocol.Desired
	_, c := serve(t, ServerConfig{Put: func(d protocol.Desired) error { got = append(got, d); return nil }})
	want := protocol.Desired{Generation: 3, Instance: own(), Stop: &protocol.Stop{GracePeriodSeconds: 7}}
	require.NoError(t, c.Put(t.Context(), want))
	target := protocol.Desired{Generation: 4, Instance: own(), Role: vmi.RoleTarget}
	require.NoError(t, c.Put(t.Context(), target))
	require.Equal(t, []protocol.Desired{want, target}, got)
}

func TestAServerIgnoresFieldsThatItDoesNotKnow(t *testing.T) {
	var got protocol.Desired
	_, c := serve(t, ServerConfig{Put: func(d protocol.Desired) error { got = d; return nil }})
	body := `{"instance":{"metadata":{"namespace":"ns","name":"vm","uid":"u1"},"spec":{"fromTheFuture":1}},"andThis":{}}`
	resp, err := c.peer.Do(t.Context(), http.MethodPut, desiredPath, []byte(body))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, protocol.Desired{Instance: own()}, got)
}

func TestAServerRefusesADesiredThatIsOlderThanTheOneInForce(t *testing.T) {
	var got []int64
	full := errors.New("busy")
	var fails error
	_, c := serve(t, ServerConfig{Put: func(d protocol.Desired) error { got = append(got, d.Generation); return fails }})
	put := func(generation int64) error {
		return c.Put(t.Context(), protocol.Desired{Generation: generation, Instance: own()})
	}
	require.NoError(t, put(4))
	require.NoError(t, put(4), "the same again changes nothing")
	require.NoError(t, put(6))

	err := put(5)
	var refusal *Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, 409, refusal.Status)
	require.Equal(t, vmi.Finding{Reason: protocol.ReasonStale, Message: "generation 5 is older than generation 6, which is in force"}, refusal.Finding)
	require.NotErrorIs(t, err, vmi.ErrInvalid, "it is in order with another generation")

	fails = full
	require.Error(t, put(9))
	fails = nil
	require.NoError(t, put(7), "what was refused is not in force")
	require.NoError(t, put(0), "a handler that does not count is never refused for age")
	require.NoError(t, put(1))
	require.Equal(t, []int64{4, 4, 6, 9, 7, 0, 1}, got)
}

func TestAServerRefusesWithAReason(t *testing.T) {
	other := own()
	other.UID = "u2"
	for name, tt := range map[string]struct {
		desired  protocol.Desired
		put      error
		status   int
		reason   string
		terminal bool
	}{
		"no instance":                 {protocol.Desired{}, nil, 409, protocol.ReasonOtherInstance, true},
		"another VMI of the name":     {protocol.Desired{Instance: other}, nil, 409, protocol.ReasonOtherInstance, true},
		"a spec that is not possible": {protocol.Desired{Instance: own()}, fmt.Errorf("disk: %w", vmi.ErrInvalid), 422, protocol.ReasonInvalid, true},
		"a failure that may pass":     {protocol.Desired{Instance: own()}, errors.New("busy"), 503, protocol.ReasonUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := serve(t, ServerConfig{Put: func(protocol.Desired) error { return tt.put }})
			err := c.Put(t.Context(), tt.desired)
			var refusal *Error
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, tt.status, refusal.Status)
			require.Equal(t, tt.reason, refusal.Reason)
			require.NotEmpty(t, refusal.Message)
			require.Equal(t, tt.terminal, errors.Is(err, vmi.ErrInvalid))
		})
	}
}

func TestAServerRefusesWhatItCannotRead(t *testing.T) {
	_, c := serve(t, ServerConfig{Put: func(protocol.Desired) error { return errors.New("called") }})
	refused := func(method, path string, body []byte) *Error {
		resp, err := c.peer.Do(t.Context(), method, path, body)
		if err == nil {
			resp.Body.Close()
		}
		var refusal *Error
		require.ErrorAs(t, err, &refusal)
		return refusal
	}
	require.Equal(t, protocol.ReasonMalformed, refused(http.MethodPut, desiredPath, []byte("{")).Reason)
	require.Equal(t, protocol.ReasonTooLarge, refused(http.MethodPut, desiredPath, bytes.Repeat([]byte(" "), maxBody+1)).Reason)
	require.Equal(t, protocol.ReasonMalformed, refused(http.MethodGet, protocol.Path{Stream: protocol.StreamConsole}.String(), nil).Reason, "the upgrade is missing")
	require.Equal(t, http.StatusNotFound, refused(http.MethodGet, "/v2/state", nil).Status)
}

func TestACallIsAnsweredWhenItIsDone(t *testing.T) {
	began, done := make(chan struct{}), make(chan struct{})
	_, c := serve(t, ServerConfig{Calls: map[protocol.Call]func(context.Context) error{
		protocol.CallPause: func(context.Context) error { close(began); <-done; return nil },
	}})
	answered := make(chan error, 1)
	go func() { answered <- c.Call(t.Context(), protocol.CallPause, nil, nil) }()
	<-began
	select {
	case <-answered:
		t.Fatal("the call is not done")
	default:
	}
	close(done)
	require.NoError(t, <-answered)
}

func TestACallThatIsRefusedHasAReason(t *testing.T) {
	_, c := serve(t, ServerConfig{Calls: map[protocol.Call]func(context.Context) error{
		protocol.CallPause:   func(context.Context) error { return fmt.Errorf("no guest: %w", vmi.ErrInvalid) },
		protocol.CallUnpause: func(context.Context) error { return errors.New("busy") },
	}})
	for call, want := range map[protocol.Call]struct {
		Error
		terminal bool
	}{
		protocol.CallPause:   {Error{422, vmi.Finding{Reason: protocol.ReasonInvalid, Message: "no guest: invalid"}}, true},
		protocol.CallUnpause: {Error{503, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: "busy"}}, false},
		"../state":           {Error{404, vmi.Finding{Reason: protocol.ReasonUnknown, Message: `this launcher has no call "../state"`}}, true},
	} {
		err := c.Call(t.Context(), call, nil, nil)
		var refusal *Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, want.Error, *refusal)
		require.Equal(t, want.terminal, errors.Is(err, vmi.ErrInvalid))
	}
}

func FuzzDesired(f *testing.F) {
	good, _ := json.Marshal(protocol.Desired{Generation: 2, Instance: own(), Stop: &protocol.Stop{}})
	f.Add(good)
	f.Add([]byte(`{"instance":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := NewServer(ServerConfig{Namespace: "ns", Name: "vm", UID: "u1", Put: func(d protocol.Desired) error {
			require.Equal(t, "vm", d.Instance.Name)
			return nil
		}})
		w := &response{header: http.Header{}}
		r, err := http.NewRequest(http.MethodPut, desiredPath, bytes.NewReader(body))
		require.NoError(t, err)
		s.handler(t.Context()).ServeHTTP(w, r)
		require.NotZero(t, w.status)
	})
}

// response is a response writer without a connection.
type response struct {
	header http.Header
	status int
}

func (r *response) Header() http.Header         { return r.header }
func (r *response) Write(b []byte) (int, error) { return len(b), nil }
func (r *response) WriteHeader(status int)      { r.status = status }
