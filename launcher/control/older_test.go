package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// older is a file of testdata/older: what a client or a server of the release
// before sent, as it was on the socket.
func older(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/older", name))
	require.NoError(t, err)
	return b
}

// olderResponse is a recorded response and its body.
func olderResponse(t *testing.T, name string) (parsedResponse, []byte) {
	return parsed(t, older(t, name+".response"))
}

// parsedResponse is the head of a response.
type parsedResponse struct {
	StatusCode int
	Header     http.Header
}

// parsed is a response and its body.
func parsed(t *testing.T, b []byte) (parsedResponse, []byte) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return parsedResponse{resp.StatusCode, resp.Header}, body
}

// olderOwn is the VMI of the recorded requests.
func olderOwn() ServerConfig {
	return ServerConfig{Namespace: "default", Name: "hello", UID: "6f1c2a3e-9a43-4f0e-8d2b-0c54a7b1e9d2"}
}

// answerTo is what a server answers to a recorded request.
func answerTo(t *testing.T, s *Server, name string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	h := &http.Server{Handler: s.handler(t.Context())}
	go func() { _ = h.Serve(l) }()
	defer h.Close()
	conn, err := dialTo(path)(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(older(t, name+".request"))
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	return answer
}

// The states that were published when the responses were recorded.
var (
	olderStarting = protocol.State{Phase: protocol.Starting, Finding: &vmi.Finding{Reason: "StartFailed", Message: "busy"}}
	olderRunning  = protocol.State{Phase: protocol.Running, Emulated: true, Machine: "pc-q35-7.2",
		Disks: []protocol.Disk{{Name: "root", Target: "vda", SizeBytes: 1 << 20}}, Agent: &protocol.Agent{Version: "7.2.0"}}
)

func TestAServerAnswersAHandlerOfTheReleaseBefore(t *testing.T) {
	for name, tt := range map[string]struct {
		state protocol.State
		put   error
	}{
		"put":             {},
		"put-stop":        {},
		"put-invalid":     {put: fmt.Errorf("disk root: %w", vmi.ErrInvalid)},
		"put-unavailable": {put: errors.New("busy")},
		"put-other":       {},
		"state-starting":  {state: olderStarting},
		"state-running":   {state: olderRunning},
	} {
		t.Run(name, func(t *testing.T) {
			var got *protocol.Desired
			c := olderOwn()
			c.Put = func(d protocol.Desired) error { got = &d; return tt.put }
			s := NewServer(c)
			s.Publish(tt.state)
			want, wantBody := olderResponse(t, name)
			resp, body := parsed(t, answerTo(t, s, name))
			require.Equal(t, want.StatusCode, resp.StatusCode)
			require.Equal(t, want.Header.Get("Content-Type"), resp.Header.Get("Content-Type"))
			require.Equal(t, string(wantBody), string(body))
			if name == "put-stop" {
				require.Zero(t, got.Generation)
				require.Equal(t, "root", got.Instance.Spec.Domain.Devices.Disks[0].Name)
				require.Equal(t, "tap0", got.Interfaces[0].Tap)
				require.True(t, got.Settings.Verbosity.Debug())
				require.Equal(t, &protocol.Stop{GracePeriodSeconds: 30}, got.Stop)
			}
		})
	}
}

func TestAHandlerOfTheReleaseBeforeMayPutAfterANewerOne(t *testing.T) {
	c := olderOwn()
	c.Put = accept
	s := NewServer(c)
	s.generation = 9
	resp, _ := parsed(t, answerTo(t, s, "put"))
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
}

func TestAHandlerOfTheReleaseBeforeReadsAState(t *testing.T) {
	s := NewServer(olderOwn())
	state := olderRunning
	state.Generation, state.Phase = 7, protocol.Paused
	state.Pause = &protocol.Pause{Cause: protocol.PausedByIOError, Volume: "root", Message: "no space"}
	s.Publish(state)
	_, body := parsed(t, answerTo(t, s, "state-running"))
	var fields map[string]any
	require.NoError(t, json.Unmarshal(body, &fields))
	delete(fields, "generation")
	delete(fields, "pause")
	require.Equal(t, "Paused", fields["phase"])
	fields["phase"] = "Running"
	_, want := olderResponse(t, "state-running")
	rest, err := json.Marshal(fields)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(rest), "what that release reads is where it was")
}

func TestAServerAnswersAWatchOfTheReleaseBefore(t *testing.T) {
	s := NewServer(olderOwn())
	ended := olderRunning
	ended.Phase, ended.End = protocol.Ended, &protocol.End{Reason: protocol.CannotStart, Message: "it cannot"}
	s.Publish(ended)
	_, body := parsed(t, answerTo(t, s, "watch"))
	_, want := olderResponse(t, "watch")
	lines := bytes.SplitAfter(bytes.TrimSuffix(want, []byte("\n")), []byte("\n"))
	require.JSONEq(t, string(lines[len(lines)-1]), string(body))
}

func TestAServerSendsTheNetworkNamespaceToAHandlerOfTheReleaseBefore(t *testing.T) {
	_, c := serve(t, ServerConfig{})
	conn, err := c.dial(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(older(t, "namespace.request"))
	require.NoError(t, err)
	head, oob := make([]byte, 4096), make([]byte, 64)
	n, oobn, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(head, oob)
	require.NoError(t, err)
	require.Equal(t, string(older(t, "namespace.response")), string(head[:n]))
	files, err := rights(oob[:oobn])
	require.NoError(t, err)
	require.Len(t, files, 1)
	file := os.NewFile(uintptr(files[0]), "network namespace")
	defer file.Close()
	requireOwn(t, file)
}

// olderServer is a launcher of the release before, which answers requests as answers
// says and 404 to everything else, as that release did.
func olderServer(t *testing.T, answers map[string]string) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	notFound := older(t, "stream.response")
	recorded := map[string][]byte{}
	for request, name := range answers {
		recorded[request] = older(t, name+".response")
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				answer, ok := recorded[r.Method+" "+r.URL.Path]
				var oob []byte
				if !ok {
					answer = notFound
				} else if r.Header.Get("Upgrade") == olderNamespaceToken {
					f, _ := os.Open("/proc/self/ns/net")
					oob = unix.UnixRights(int(f.Fd()))
					defer f.Close()
				}
				_, _, _ = conn.(*net.UnixConn).WriteMsgUnix(answer, oob, nil)
			}
			_ = conn.Close()
		}
	}()
	return NewClient(dialTo(path))
}

func TestAClientReadsTheStateOfALauncherOfTheReleaseBefore(t *testing.T) {
	for name, want := range map[string]protocol.State{"state-starting": olderStarting, "state-running": olderRunning} {
		got, err := olderServer(t, map[string]string{"GET /v1/state": name}).State(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got, "what that release does not know is zero")
	}
	var phases []protocol.Phase
	for state, err := range olderServer(t, map[string]string{"GET /v1/watch": "watch"}).Watch(t.Context()) {
		require.NoError(t, err)
		require.Nil(t, state.Pause)
		phases = append(phases, state.Phase)
	}
	require.Equal(t, []protocol.Phase{protocol.Running, protocol.Paused, protocol.Ended}, phases)
}

func TestAClientPutsToALauncherOfTheReleaseBefore(t *testing.T) {
	d := protocol.Desired{Generation: 3, Instance: own()}
	require.NoError(t, olderServer(t, map[string]string{"PUT /v1/desired": "put"}).Put(t.Context(), d))
	for name, want := range map[string]Error{
		"put-invalid":     {422, vmi.Finding{Reason: protocol.ReasonInvalid, Message: "disk root: invalid"}},
		"put-unavailable": {503, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: "busy"}},
	} {
		err := olderServer(t, map[string]string{"PUT /v1/desired": name}).Put(t.Context(), d)
		var refusal *Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, want, *refusal)
	}
	err := olderServer(t, map[string]string{"PUT /v1/desired": "put-other"}).Put(t.Context(), d)
	var refusal *Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, protocol.ReasonOtherInstance, refusal.Reason)
}

func TestAClientGetsTheNetworkNamespaceOfALauncherOfTheReleaseBefore(t *testing.T) {
	c := olderServer(t, map[string]string{"GET /v1/network-namespace": "namespace"})
	n, err := c.Namespace(t.Context())
	require.NoError(t, err)
	defer n.Close()
	requireOwn(t, n.File)
}

func TestALauncherOfTheReleaseBeforeKnowsNoCallsNoStreamsAndNoTarget(t *testing.T) {
	c := olderServer(t, map[string]string{"PUT /v1/desired": "put"})
	_, err := c.Stream(t.Context(), protocol.StreamConsole)
	target := c.Put(t.Context(), protocol.Desired{Generation: 3, Instance: own(), Role: vmi.RoleTarget})
	for what, err := range map[string]error{"call pause": c.Call(t.Context(), protocol.CallPause, nil, nil), "stream console": err, "role Target": target} {
		var refusal *Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, Error{404, vmi.Finding{
			Reason: protocol.ReasonUnknown, Message: "the launcher does not know the " + what + ": it is of an older release",
		}}, *refusal)
	}
}

// What this release does not know, the next one may send.
func TestAFieldOfALaterReleaseIsIgnored(t *testing.T) {
	later := func(v any) []byte {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return append([]byte(`{"ofALaterRelease":{"a":[1]},`), b[1:]...)
	}
	var got protocol.Desired
	c := ServerConfig{Namespace: own().Namespace, Name: own().Name, UID: own().UID, Put: func(d protocol.Desired) error { got = d; return nil }}
	w := httptest.NewRecorder()
	NewServer(c).handler(t.Context()).ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/v1/desired", bytes.NewReader(later(protocol.Desired{Generation: 3, Instance: own()}))))
	require.Equal(t, http.StatusNoContent, w.Code, w.Body.String())
	require.EqualValues(t, 3, got.Generation)

	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(later(olderRunning))
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	state, err := NewClient(dialTo(path)).State(t.Context())
	require.NoError(t, err)
	require.Equal(t, olderRunning, state)
}
