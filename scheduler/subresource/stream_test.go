package subresource_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/subresource"
	"github.com/podvisor/podvisor/vmi"
)

// runs is a VMI that runs.
func runs(namespace, name string) *vmi.VirtualMachineInstance {
	v := running()
	v.Namespace, v.Name = namespace, name
	return v
}

// aggregator opens streams as the aggregator does.
type aggregator struct {
	websocket.Dialer
	url string
}

func (w *world) aggregator() *aggregator {
	c := config(w.front.issue(w.t, "aggregator"))
	c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	return &aggregator{
		websocket.Dialer{TLSClientConfig: c, Subprotocols: []string{"fantasy.protocol", vmi.StreamProtocol}},
		"wss" + strings.TrimPrefix(w.url, "https") + api,
	}
}

// console opens the console of a VMI, "namespace/name". It is nil if that is refused.
func (a *aggregator) console(t *testing.T, of string) (*websocket.Conn, metav1.Status) {
	t.Helper()
	return a.stream(t, of, "console")
}

// stream opens a stream of a VMI.
func (a *aggregator) stream(t *testing.T, of, path string) (*websocket.Conn, metav1.Status) {
	t.Helper()
	namespace, name, _ := strings.Cut(of, "/")
	c, answer, err := a.DialContext(t.Context(), a.url+"/namespaces/"+namespace+"/virtualmachineinstances/"+name+"/"+path, alice()) //nolint:bodyclose // a websocket has none, and of a refusal gorilla has read it
	var s metav1.Status
	if err != nil {
		require.ErrorIs(t, err, websocket.ErrBadHandshake)
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&s))
		require.EqualValues(t, answer.StatusCode, s.Code)
		return nil, s
	}
	require.Equal(t, vmi.StreamProtocol, answer.Header.Get("Sec-Websocket-Protocol"))
	t.Cleanup(func() { _ = c.Close() })
	return c, s
}

// echoes is that the stream works.
func echoes(t *testing.T, c *websocket.Conn) {
	t.Helper()
	require.NoError(t, c.WriteMessage(websocket.BinaryMessage, []byte("hello")))
	_, b, err := c.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, "hello", string(b))
}

func TestAConsoleIsAWebsocket(t *testing.T) {
	w := newWorld(t, running())
	c, s := w.aggregator().console(t, "a/x")
	require.NotNil(t, c, s.Message)
	require.NoError(t, c.WriteMessage(websocket.TextMessage, []byte("it is skipped")))
	echoes(t, c)
}

func TestAttackMoreStreamsThanAreAllowedAreRefused(t *testing.T) {
	w := newWorldWith(t, subresource.Config{Streams: 4, StreamsPerVMI: 1}, runs("a", "x"), runs("a", "y"), runs("a", "z"), runs("b", "x"), runs("c", "x"), runs("d", "x"))
	a := w.aggregator()
	open := map[string]*websocket.Conn{}
	for _, tt := range []struct{ of, refused string }{
		{"a/x", ""},
		{"a/x", "VMI a/x has"},
		{"a/y", ""},
		{"a/z", "namespace a have"},
		{"b/x", ""},
		{"c/x", ""},
		{"d/x", "virt-controller has"},
	} {
		c, s := a.console(t, tt.of)
		if tt.refused == "" {
			require.NotNil(t, c, s.Message)
			open[tt.of] = c
			continue
		}
		require.Nil(t, c)
		require.Equal(t, metav1.StatusReasonTooManyRequests, s.Reason)
		require.Contains(t, s.Message, tt.refused)
	}
	echoes(t, open["c/x"])
	require.NoError(t, open["b/x"].Close())
	require.Eventually(t, func() bool { c, _ := a.console(t, "d/x"); return c != nil }, time.Minute, 10*time.Millisecond)
}

func TestTheEndOfTheServerClosesStreams(t *testing.T) {
	w := newWorld(t, running())
	a := w.aggregator()
	c, s := a.console(t, "a/x")
	require.NotNil(t, c, s.Message)
	echoes(t, c)
	go w.end()
	_, _, err := c.ReadMessage()
	require.True(t, websocket.IsCloseError(err, websocket.CloseGoingAway), "%v", err)
	w.end()
	c, s = a.console(t, "a/x")
	require.Nil(t, c)
	require.Equal(t, metav1.StatusReasonServiceUnavailable, s.Reason)
}

func TestAStreamWhoseGuestHasMovedSaysWhereItIs(t *testing.T) {
	for name, tt := range map[string]struct {
		path   string
		change func(*vmi.VirtualMachineInstance)
		code   int
		why    string
	}{
		"a console":                    {"console", moves, websocket.CloseGoingAway, "moved to node n2"},
		"a screen":                     {"vnc", moves, websocket.CloseGoingAway, "moved to node n2"},
		"a port":                       {"portforward/22/tcp", moves, websocket.CloseGoingAway, "moved to node n2"},
		"a console of one that ends":   {"console", func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseSucceeded }, websocket.CloseAbnormalClosure, "unexpected EOF"},
		"a port that the guest closes": {"portforward/22/tcp", func(*vmi.VirtualMachineInstance) {}, websocket.CloseNormalClosure, ""},
		"one of the same name": {"console", func(v *vmi.VirtualMachineInstance) {
			moves(v)
			v.UID = "another"
		}, websocket.CloseAbnormalClosure, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			v := running()
			v.Status.Interfaces = []vmi.InterfaceStatus{{Name: "default"}}
			w := newWorld(t, v)
			c, s := w.aggregator().stream(t, "a/x", tt.path)
			require.NotNil(t, c, s.Message)
			echoes(t, c)
			v, err := w.vmis.VirtualMachineInstances("a").Get(t.Context(), "x", metav1.GetOptions{}) // with its UID
			require.NoError(t, err)
			require.NoError(t, w.vmis.VirtualMachineInstances("a").Delete(t.Context(), "x", metav1.DeleteOptions{}))
			tt.change(v)
			w.store.Add(v)
			w.unanswered.Store(1)
			w.endGuest()
			_, _, err = c.ReadMessage()
			var closed *websocket.CloseError
			require.ErrorAs(t, err, &closed)
			require.Equal(t, tt.code, closed.Code)
			require.Equal(t, tt.why, closed.Text)
		})
	}
}

// moves makes the VMI one that runs on another node.
func moves(v *vmi.VirtualMachineInstance) { v.Status.NodeName = "n2" }

func TestAttackAFrameTakesNoMemoryByItsLength(t *testing.T) {
	w := newWorld(t, running())
	a := w.aggregator()
	var open [20]*websocket.Conn
	for i := range open {
		var s metav1.Status
		open[i], s = a.console(t, "a/x")
		require.NotNil(t, open[i], s.Message)
		echoes(t, open[i])
		require.NoError(t, open[i].SetReadDeadline(time.Now().Add(time.Minute)))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, c := range open {
		if i%2 == 0 { // 1 MiB, of which the first byte is there: it is passed on
			_, err := c.NetConn().Write([]byte("\x82\xff\x00\x00\x00\x00\x00\x10\x00\x00key!x"))
			require.NoError(t, err)
			_, b, err := c.ReadMessage()
			require.NoError(t, err)
			require.Equal(t, []byte{'k' ^ 'x'}, b)
			continue
		}
		_, err := c.NetConn().Write([]byte("\x82\xff\x00\x00\x00\x10\x00\x00\x00\x00key!x")) // 64 GiB
		require.NoError(t, err)
		_, _, err = c.ReadMessage()
		require.Error(t, err)
		var late net.Error
		require.False(t, errors.As(err, &late) && late.Timeout(), "a frame of 64 GiB is not refused")
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/uint64(len(open)), uint64(64<<10), "bytes for a stream, on both sides")
}

func TestAttackHalfOpenWebsocketsKeepNoClientOut(t *testing.T) {
	t.Parallel()
	const each = 500
	w := newWorldWith(t, subresource.Config{Streams: 2 * each, StreamsPerVMI: each, Ping: time.Second, Idle: 10 * time.Second}, running())
	a := w.aggregator()
	const console = "/namespaces/a/virtualmachineinstances/x/console"
	var all, four sync.WaitGroup
	next := make(chan bool)
	held := make(chan net.Conn, 2*each)
	for range 4 {
		four.Go(func() {
			for silent := range next {
				// On a busy host some are late and ended before they are open.
				if silent {
					if c, _, err := a.DialContext(t.Context(), a.url+console, alice()); err == nil { //nolint:bodyclose // a websocket has none
						held <- c.NetConn()
					}
					continue
				}
				d := tls.Dialer{Config: a.TLSClientConfig}
				c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "https://"))
				if err == nil {
					_, _ = io.WriteString(c, "GET "+api+console+" HTTP/1.1\r\nConnection: Upgrade\r\n")
					held <- c
				}
			}
		})
	}
	for i := range 2 * each {
		next <- i%2 == 0
	}
	close(next)
	four.Wait()
	close(held)
	require.Greater(t, len(held), each)
	for silent := range held {
		all.Go(func() {
			defer silent.Close()
			_ = silent.SetReadDeadline(time.Now().Add(3 * time.Minute))
			_, err := io.Copy(io.Discard, silent)
			var late net.Error
			if errors.As(err, &late) && late.Timeout() {
				t.Error("a websocket that is silent is kept open")
			}
		})
	}
	all.Wait()
	var late *websocket.Conn
	require.Eventually(t, func() bool { late, _ = a.console(t, "a/x"); return late != nil }, time.Minute, 10*time.Millisecond)
	echoes(t, late)
}

// Package websocket keeps a stream whose client answers pings.
func TestAStreamIsPinged(t *testing.T) {
	w := newWorldWith(t, subresource.Config{Ping: 10 * time.Millisecond, Idle: 10 * time.Minute}, running())
	c, s := w.aggregator().console(t, "a/x")
	require.NotNil(t, c, s.Message)
	pinged := make(chan struct{}, 1000)
	answer := c.PingHandler()
	c.SetPingHandler(func(ping string) error { pinged <- struct{}{}; return answer(ping) })
	go func() { _, _, _ = c.ReadMessage() }()
	for range 3 {
		select {
		case <-pinged:
		case <-time.After(time.Minute):
			require.Fail(t, "there is no ping")
		}
	}
}
