package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// serve runs a server until the test ends and returns it with a client.
func serve(t *testing.T, put func(Desired) error) (*Server, *Client) {
	t.Helper()
	s := NewServer(ServerConfig{Namespace: "ns", Name: "vm", UID: "u1", Put: put})
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

func TestAServerShowsTheLastStateThatWasPublished(t *testing.T) {
	s, c := serve(t, nil)
	got, err := c.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, State{Phase: Waiting}, got)

	want := State{Phase: Running, Machine: "pc-q35-7.2", Disks: []Disk{{Name: "root", Target: "vda", SizeBytes: 4096}}}
	s.Publish(want)
	got, err = c.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestAWatchShowsThePresentStateFirstAndEndsWithTheMachine(t *testing.T) {
	s, c := serve(t, nil)
	s.Publish(State{Phase: Starting})
	var phases []Phase
	for state, err := range c.Watch(t.Context()) {
		require.NoError(t, err)
		phases = append(phases, state.Phase)
		switch state.Phase {
		case Starting:
			s.Publish(State{Phase: Running})
		case Running:
			s.Publish(State{Phase: Ended, End: &End{Reason: Shutdown}})
		}
	}
	require.Equal(t, []Phase{Starting, Running, Ended}, phases)
	<-s.Drained()
}

func TestAServerIsDrainedWhenEveryWatcherHasSeenTheEnd(t *testing.T) {
	s, c := serve(t, nil)
	s.Publish(State{Phase: Ended})
	select {
	case <-s.Drained():
		t.Fatal("nobody has seen the end")
	default:
	}
	_, err := c.State(t.Context())
	require.NoError(t, err)
	<-s.Drained()
}

func TestAWatchThatBreaksSaysSo(t *testing.T) {
	_, c := serve(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.Watch(ctx) {
		cancel()
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)

	gone := NewClient(dialTo(filepath.Join(t.TempDir(), "nothing")))
	for _, err := range gone.Watch(t.Context()) {
		require.ErrorIs(t, err, syscall.ENOENT)
	}
}

func TestAServerTakesWhatIsWantedOfItsOwnMachine(t *testing.T) {
	var got []Desired
	_, c := serve(t, func(d Desired) error { got = append(got, d); return nil })
	want := Desired{Instance: own(), Stop: &Stop{GracePeriodSeconds: 7}}
	require.NoError(t, c.Put(t.Context(), want))
	require.Equal(t, []Desired{want}, got)
}

func TestAServerPassesOverFieldsThatItDoesNotKnow(t *testing.T) {
	var got Desired
	_, c := serve(t, func(d Desired) error { got = d; return nil })
	body := `{"instance":{"metadata":{"namespace":"ns","name":"vm","uid":"u1"},"spec":{"fromTheFuture":1}},"andThis":{}}`
	resp, err := c.do(t.Context(), http.MethodPut, desiredPath, []byte(body))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, Desired{Instance: own()}, got)
}

func TestAServerRefusesWithAReason(t *testing.T) {
	other := own()
	other.UID = "u2"
	for name, tt := range map[string]struct {
		desired  Desired
		put      error
		status   int
		reason   string
		terminal bool
	}{
		"no instance":           {Desired{}, nil, 409, ReasonOtherMachine, true},
		"a machine of its name": {Desired{Instance: other}, nil, 409, ReasonOtherMachine, true},
		"what is not possible":  {Desired{Instance: own()}, fmt.Errorf("disk: %w", vmi.ErrInvalid), 422, ReasonInvalid, true},
		"what fails today":      {Desired{Instance: own()}, errors.New("busy"), 503, ReasonUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := serve(t, func(Desired) error { return tt.put })
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
	_, c := serve(t, func(Desired) error { return errors.New("called") })
	refused := func(method, path string, body []byte) *Error {
		resp, err := c.do(t.Context(), method, path, body)
		if err == nil {
			resp.Body.Close()
		}
		var refusal *Error
		require.ErrorAs(t, err, &refusal)
		return refusal
	}
	require.Equal(t, ReasonMalformed, refused(http.MethodPut, desiredPath, []byte("{")).Reason)
	require.Equal(t, ReasonTooLarge, refused(http.MethodPut, desiredPath, bytes.Repeat([]byte(" "), maxBody+1)).Reason)
	require.Equal(t, http.StatusNotFound, refused(http.MethodGet, "/v2/state", nil).Status)
}

func TestAClientGetsTheNetworkNamespaceOfTheServer(t *testing.T) {
	_, c := serve(t, nil)
	n, err := c.Namespace(t.Context())
	require.NoError(t, err)
	defer n.Close()
	require.EqualValues(t, os.Getuid(), n.UID)
	require.EqualValues(t, os.Getgid(), n.GID)

	got, err := n.File.Stat()
	require.NoError(t, err)
	want, err := os.Stat("/proc/self/ns/net")
	require.NoError(t, err)
	require.True(t, os.SameFile(want, got))
}

func TestAClientRefusesADescriptorThatIsNoNetworkNamespace(t *testing.T) {
	for _, file := range []string{"/proc/self/ns/uts", "/dev/null"} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		s := NewServer(ServerConfig{NetworkNamespace: file})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, l) }()
		_, err = NewClient(dialTo(path)).Namespace(t.Context())
		require.ErrorContains(t, err, "no network namespace")
		cancel()
		require.NoError(t, <-done)
	}
}

func TestAClientTakesNoMoreDescriptorsThanItAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		many := unix.UnixRights(0, 0, 0, 0)
		for t.Context().Err() == nil {
			if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte("H"), many, nil); err != nil {
				return
			}
		}
	}()
	_, err = NewClient(dialTo(path)).Namespace(t.Context())
	require.ErrorContains(t, err, "the launcher sent 4 descriptors, not one")
}

func TestAClientHearsAPeerThatDoesNotStopAtItsOwnPace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for line := []byte(strings.Repeat(`{"phase":"Running"}`+"\n", 1000)); r.Context().Err() == nil; {
			_, _ = w.Write(line)
		}
	})}
	go func() { _ = h.Serve(l) }()
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	heard := 0
	for _, err := range NewClient(dialTo(path)).Watch(ctx) {
		if err == nil {
			heard += len(`{"phase":"Running"}` + "\n")
		}
	}
	require.LessOrEqual(t, heard, maxState+2*statesPerSecond)
}

func TestAnErrorHoldsLittleOfWhatAPeerSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(Problem{Message: strings.Repeat("ä", 30<<10)})
			return
		}
		_, _ = w.Write([]byte(`{"disks":[{"sizeBytes":` + strings.Repeat("1", maxState/2) + "}]}\n"))
	})}
	go func() { _ = h.Serve(l) }()
	defer h.Close()
	c := NewClient(dialTo(path))
	err = c.Put(t.Context(), Desired{Instance: own()})
	require.ErrorContains(t, err, "ää")
	require.LessOrEqual(t, len(err.Error()), maxWords)
	require.True(t, utf8.ValidString(err.Error()))
	for _, err := range c.Watch(t.Context()) {
		require.ErrorContains(t, err, "read the launcher's state: json: cannot unmarshal number 111")
		require.LessOrEqual(t, len(err.Error()), maxWords+100)
	}
}

func TestAClientSurvivesAPeerThatSpeaksSomethingElse(t *testing.T) {
	for name, answer := range map[string]string{
		"silence":           "",
		"noise":             strings.Repeat("noise\r\n", 20000),
		"no descriptor":     switching,
		"a refusal":         "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 25\r\n\r\n{\"reason\":\"Unavailable\"}\r\n",
		"a state that long": "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 2*maxState),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			require.NoError(t, err)
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 4096))
					_, _ = conn.Write([]byte(answer))
					_ = conn.Close()
				}
			}()
			c := NewClient(dialTo(path))
			_, err = c.Namespace(t.Context())
			require.Error(t, err)
			_, err = c.State(t.Context())
			require.Error(t, err)
			for _, err = range c.Watch(t.Context()) {
				require.Error(t, err)
			}
		})
	}
}

func FuzzDesired(f *testing.F) {
	good, _ := json.Marshal(Desired{Instance: own(), Stop: &Stop{}})
	f.Add(good)
	f.Add([]byte(`{"instance":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := NewServer(ServerConfig{Namespace: "ns", Name: "vm", UID: "u1", Put: func(d Desired) error {
			require.Equal(t, "vm", d.Instance.Name)
			return nil
		}})
		w := &response{header: http.Header{}}
		r, err := http.NewRequest(http.MethodPut, desiredPath, bytes.NewReader(body))
		require.NoError(t, err)
		s.handler().ServeHTTP(w, r)
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
