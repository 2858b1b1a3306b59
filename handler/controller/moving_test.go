package controller

import (
	"context"
	"encoding/json"
	"errors"
	"hash/crc64"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const migration = types.UID("m1")

// node is a handler with its server of streams.
type node struct {
	*Controller
	peer stream.Peer
	cert stream.Certificate
	stop func()
}

// node starts the handler of a node. It runs until it is stopped.
func (w *world) node(name string) *node {
	w.t.Helper()
	cert, err := stream.NewCertificate(time.Now())
	require.NoError(w.t, err)
	w.config.Certificate = cert
	pod := map[string]types.UID{nodeName: podUID, otherNode: otherPod}[name]
	w.config.Launchers = func() ([]types.UID, error) { return []types.UID{pod}, nil }
	c, stopController := w.handleOn(name)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	s := stream.NewServer(stream.ServerConfig{Guests: translated{c, w.wire}, Peer: c.AdmitPeer, Certificate: cert, Admit: func(context.Context, string, string) error { return stream.ErrDenied }})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	n := &node{Controller: c, cert: cert, peer: stream.Peer{Certificate: cert.Hash, Address: l.Addr().String()}}
	n.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-done)
		stopController()
	})
	w.t.Cleanup(n.stop)
	return n
}

// translated is a handler whose callers are of another release: what they say is translated.
type translated struct {
	*Controller
	wire func(protocol.Call, json.RawMessage) (json.RawMessage, error)
}

func (t translated) Call(ctx context.Context, to protocol.Target, call protocol.Call, options json.RawMessage) (json.RawMessage, error) {
	if t.wire != nil {
		var err error
		if options, err = t.wire(call, options); err != nil {
			return nil, err
		}
	}
	return t.Controller.Call(ctx, to, call, options)
}

// guest is one that moves between two launchers, which play what libvirt and QEMU do.
type guest struct {
	t           testing.TB
	size        int64
	connections int
	// before and after are called in each call, before it does something and before it is
	// answered. An error is its answer.
	before, after func(context.Context, protocol.Call) error

	source, target *control.Server
	conns          chan net.Conn // those that the QEMU of the source makes
	taken          atomic.Int64  // bytes that arrived
	closed         atomic.Int64  // connections over which nothing more arrives
	sums, arrived  atomic.Uint64 // checksums of what was sent and what arrived

	mu                  sync.Mutex
	runsHere, runsThere bool
	stays, discarded    bool
	sent                chan struct{} // closed when the sending has ended; nil: it has not begun
	failed              error
	cancel              context.CancelFunc
	ended               protocol.EndReason
}

var table = crc64.MakeTable(crc64.ISO)

// moves is a world whose VMI runs on one node and waits on the other, and virt-controller's
// part of its migration.
type moves struct {
	*world
	*guest
	source, target *node
}

func newMoves(t *testing.T, size int64, connections int) *moves {
	t.Helper()
	return newMovesOver(t, size, connections, nil)
}

// newMovesOver is newMoves with handlers whose callers are of another release.
func newMovesOver(t *testing.T, size int64, connections int, wire func(protocol.Call, json.RawMessage) (json.RawMessage, error)) *moves {
	t.Helper()
	g := &guest{t: t, size: size, connections: connections, conns: make(chan net.Conn), runsHere: true}
	nothing := func(context.Context, protocol.Call) error { return nil }
	g.before, g.after = nothing, nothing
	m := &moves{world: newWorld(t, vmitest.WithName("testvmi")), guest: g}
	w := m.world
	w.wire = wire
	w.questions = map[protocol.Call]func(context.Context, []byte) (any, error){
		protocol.CallMigrationBegin: g.call(protocol.CallMigrationBegin, g.begin), protocol.CallMigrationPerform: g.call(protocol.CallMigrationPerform, g.perform),
		protocol.CallMigrationConfirm: g.call(protocol.CallMigrationConfirm, g.confirm), protocol.CallMigrationAbort: g.call(protocol.CallMigrationAbort, g.abort),
	}
	w.calls = map[protocol.Call]func(context.Context) error{protocol.CallDestroy: g.destroy}
	w.streams = map[protocol.Stream]func(context.Context) (net.Conn, error){protocol.StreamMigrationMemory: g.connect, protocol.StreamConsole: echo}
	g.source, _ = w.launch(protocol.State{Phase: protocol.Waiting, Movable: true}, func(s *control.Server, d protocol.Desired) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.sent == nil && !g.stays {
			g.publish(s, d.Generation, protocol.Running, "", nil)
		}
		return nil
	})
	m.source = w.node(nodeName)
	m.target = w.node(otherNode)
	w.phase(vmi.PhaseRunning)
	w.calls = nil
	w.questions = map[protocol.Call]func(context.Context, []byte) (any, error){
		protocol.CallMigrationPrepare: g.call(protocol.CallMigrationPrepare, g.prepare), protocol.CallMigrationFinish: g.call(protocol.CallMigrationFinish, g.finish),
	}
	w.streams = map[protocol.Stream]func(context.Context) (net.Conn, error){protocol.StreamMigrationMemory: g.take, protocol.StreamConsole: echo}
	g.target, _ = w.launchIn(otherPod, protocol.State{Phase: protocol.Waiting, Movable: true}, func(s *control.Server, d protocol.Desired) error {
		if d.Stop != nil {
			_, err := g.discard()
			return err
		}
		return nil
	})
	w.change(move)
	return m
}

func echo(context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(far, far) }()
	return near, nil
}

// publish publishes a state. The lock is held.
func (g *guest) publish(s *control.Server, generation int64, p protocol.Phase, stage protocol.MigrationStage, f *vmi.Finding) {
	state := protocol.State{Generation: generation, Phase: p, Movable: true, Machine: "pc-q35-7.2"}
	if stage != "" {
		state.Migration = &protocol.Migration{UID: migration, Stage: stage, Finding: f}
	}
	if p == protocol.Paused {
		state.Pause = &protocol.Pause{Cause: protocol.PausedByMigration}
	}
	if p == protocol.Ended {
		state.End = &protocol.End{Reason: g.ended}
	}
	if g.runsHere && g.runsThere {
		g.t.Error("the guest runs twice")
	}
	s.Publish(state)
}

func (g *guest) call(c protocol.Call, do func(context.Context, protocol.MigrationEnd) (any, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, options []byte) (any, error) {
		var o protocol.MigrationEnd
		if err := json.Unmarshal(options, &o); err != nil || o.UID != migration {
			return nil, transport.Refusal(protocol.ReasonMalformed, "%s", options)
		}
		if err := g.before(ctx, c); err != nil {
			return nil, err
		}
		answer, err := do(ctx, o)
		if err != nil {
			return nil, err
		}
		return answer, g.after(ctx, c)
	}
}

func (g *guest) begin(context.Context, protocol.MigrationEnd) (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stays {
		return nil, transport.Refusal(protocol.ReasonInvalid, "it has failed")
	}
	if g.sent == nil {
		g.publish(g.source, 1, protocol.Running, protocol.MigrationBegins, nil)
	}
	return protocol.MigrationBegun{XML: "<domain/>", Cookie: []byte("begin")}, nil
}

func (g *guest) prepare(_ context.Context, o protocol.MigrationEnd) (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case string(o.Cookie) != "begin":
		return nil, transport.Refusal(protocol.ReasonMalformed, "cookie %q", o.Cookie)
	case g.discarded:
		return nil, transport.Refusal(protocol.ReasonInvalid, "it was discarded")
	case !g.runsThere:
		g.publish(g.target, 1, protocol.Waiting, protocol.MigrationReceives, nil)
	}
	return protocol.MigrationStep{UID: migration, Cookie: []byte("prepare")}, nil
}

// perform sends the guest once, also when its caller is gone, and says how that ended.
func (g *guest) perform(ctx context.Context, _ protocol.MigrationEnd) (any, error) {
	g.mu.Lock()
	if g.stays {
		g.mu.Unlock()
		return nil, transport.Refusal(protocol.ReasonInvalid, "it has failed")
	}
	if g.sent == nil {
		g.sent = make(chan struct{})
		sending, cancel := context.WithCancel(context.Background())
		g.cancel = cancel
		g.publish(g.source, 1, protocol.Running, protocol.MigrationSends, nil)
		go g.send(sending)
	}
	sent := g.sent
	g.mu.Unlock()
	select {
	case <-sent:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed != nil {
		return nil, transport.Refusal("MigrationFailed", "%v", g.failed)
	}
	return protocol.MigrationStep{UID: migration, Cookie: []byte("perform")}, nil
}

func (g *guest) send(ctx context.Context) {
	errs := make(chan error, g.connections)
	for range g.connections {
		qemu, inner := net.Pipe()
		go func() {
			defer qemu.Close()
			stop := context.AfterFunc(ctx, func() { _ = qemu.Close() })
			defer stop()
			select {
			case g.conns <- inner:
			case <-ctx.Done():
				errs <- ctx.Err()
				return
			case <-time.After(time.Minute):
				errs <- errors.New("nothing takes the connection")
				return
			}
			block, sum := make([]byte, 1<<20), uint64(0)
			for n := int64(0); n < g.size/int64(g.connections); n += int64(len(block)) {
				block[0], block[len(block)-1] = byte(n>>20), byte(n>>24)
				if _, err := qemu.Write(block); err != nil {
					errs <- err
					return
				}
				sum = crc64.Update(sum, table, block)
			}
			g.sums.Add(sum)
			errs <- nil
		}()
	}
	var failed error
	for range g.connections {
		failed = errors.Join(failed, <-errs)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if failed != nil {
		g.failed, g.stays = failed, true
		g.publish(g.source, 1, protocol.Running, protocol.MigrationStays, &vmi.Finding{Reason: "MigrationFailed", Message: failed.Error()})
	} else {
		g.runsHere = false
		g.publish(g.source, 1, protocol.Paused, protocol.MigrationSent, nil)
	}
	close(g.sent)
}

// connect is the end of QEMU's next connection.
func (g *guest) connect(ctx context.Context) (net.Conn, error) {
	select {
	case c := <-g.conns:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take is a connection to the QEMU that waits.
func (g *guest) take(context.Context) (net.Conn, error) {
	qemu, inner := net.Pipe()
	go func() {
		defer qemu.Close()
		b, sum := make([]byte, 1<<20), uint64(0)
		for {
			n, err := qemu.Read(b)
			sum = crc64.Update(sum, table, b[:n])
			g.taken.Add(int64(n))
			if err != nil {
				g.arrived.Add(sum)
				g.closed.Add(1)
				return
			}
		}
	}()
	return inner, nil
}

func (g *guest) finish(ctx context.Context, o protocol.MigrationEnd) (any, error) {
	if !o.Moved {
		return g.discard()
	}
	for deadline := time.Now().Add(finishTimeout * 2 / 3); ; {
		over := g.closed.Load() >= int64(g.connections) // read before what arrived
		if g.taken.Load() >= g.size {
			break
		}
		if over || time.Now().After(deadline) { // it was cut off
			if _, err := g.discard(); err != nil {
				return nil, err
			}
			break
		}
		if !sleep(ctx, time.Millisecond) {
			return nil, ctx.Err()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.discarded:
		return nil, transport.Refusal(protocol.ReasonNotMoved, "it was destroyed")
	case string(o.Cookie) != "perform":
		return nil, transport.Refusal(protocol.ReasonMalformed, "cookie %q", o.Cookie)
	}
	g.runsThere = true
	g.publish(g.target, 1, protocol.Running, protocol.MigrationArrived, nil)
	return protocol.MigrationStep{UID: migration, Cookie: []byte("finish")}, nil
}

func (g *guest) discard() (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runsThere {
		return nil, transport.Refusal(protocol.ReasonInvalid, "it runs")
	}
	g.discarded, g.ended = true, protocol.Cancelled
	g.publish(g.target, 2, protocol.Waiting, protocol.MigrationDiscarded, nil)
	return nil, nil
}

func (g *guest) confirm(_ context.Context, o protocol.MigrationEnd) (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.sent == nil || g.failed != nil:
		return nil, transport.Refusal(protocol.ReasonInvalid, "nothing was sent")
	case !o.Moved:
		g.runsHere, g.stays = true, true
		g.publish(g.source, 1, protocol.Running, protocol.MigrationStays, nil)
	default:
		g.ended = protocol.MovedAway
		g.publish(g.source, 1, protocol.Ended, protocol.MigrationSent, nil)
	}
	return nil, nil
}

// destroy ends a source that stands still: its VMI runs elsewhere.
func (g *guest) destroy(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runsHere || !g.runsThere {
		g.t.Error("the only guest is destroyed")
	}
	g.ended = protocol.MovedAway
	g.publish(g.source, 1, protocol.Ended, protocol.MigrationSent, nil)
	return nil
}

func (g *guest) abort(context.Context, protocol.MigrationEnd) (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.sent == nil:
		g.stays = true
		g.publish(g.source, 1, protocol.Running, protocol.MigrationStays, &vmi.Finding{Reason: "MigrationAborted", Message: "Live migration has been aborted"})
		return nil, nil
	case !g.runsHere:
		return nil, transport.Refusal(protocol.ReasonInvalid, "everything is at the target")
	}
	g.cancel()
	return nil, nil
}

// runs says where the guest runs.
func (g *guest) runs() (here, there bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runsHere, g.runsThere
}

// targetIn is the launcher in a pod.
func targetIn(pod types.UID) protocol.Target {
	t := own
	t.UID, t.Pod = vmitest.UID, pod
	return t
}

// ask makes a call of virt-controller to a handler.
func (m *moves) ask(n *node, pod types.UID, call protocol.Call, options any) error {
	body, err := json.Marshal(options)
	require.NoError(m.world.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = n.Call(ctx, targetIn(pod), call, body)
	return err
}

func (m *moves) accept() error {
	return m.ask(m.target, otherPod, protocol.CallMigrationAccept, protocol.MigrationAccept{UID: migration, Certificate: m.source.peer.Certificate})
}

func (m *moves) startWith(change func(*protocol.MigrationStart)) error {
	s := protocol.MigrationStart{UID: migration, Node: otherNode, Pod: otherPod, Address: m.target.peer.Address, Certificate: m.target.peer.Certificate}
	change(&s)
	return m.ask(m.source, podUID, protocol.CallMigrationStart, s)
}

func (m *moves) start() error { return m.startWith(func(*protocol.MigrationStart) {}) }

// requireMoved requires that the guest runs at the target alone, and that the status says so.
func (m *moves) requireMoved() {
	m.world.t.Helper()
	m.eventually("the VMI is on the other node", func() bool { return m.instance().Status.NodeName == otherNode })
	m.eventually("the source has ended", func() bool {
		m.guest.mu.Lock()
		defer m.guest.mu.Unlock()
		return m.ended == protocol.MovedAway
	})
	here, there := m.runs()
	require.False(m.world.t, here)
	require.True(m.world.t, there)
	s := m.instance().Status.MigrationState
	require.True(m.world.t, s.Completed && !s.Failed && s.TargetNodeDomainDetected)
	require.NotNil(m.world.t, s.StartTimestamp)
	require.NotNil(m.world.t, s.EndTimestamp)
	m.eventually("every byte arrived as it was", func() bool { return m.sums.Load() == m.arrived.Load() })
	require.Equal(m.world.t, m.size, m.taken.Load())
}

// requireStayed requires that the guest runs at the source alone, and that the status says so.
func (m *moves) requireStayed() {
	m.world.t.Helper()
	m.eventually("the migration has failed", func() bool { return m.instance().Status.MigrationState.Failed })
	m.eventually("the target is discarded", func() bool { m.guest.mu.Lock(); defer m.guest.mu.Unlock(); return m.discarded })
	here, there := m.runs()
	require.True(m.world.t, here)
	require.False(m.world.t, there)
	v := m.instance()
	require.Equal(m.world.t, nodeName, v.Status.NodeName)
	require.Equal(m.world.t, vmi.PhaseRunning, v.Status.Phase)
	require.True(m.world.t, v.Status.MigrationState.Completed)
	require.NotNil(m.world.t, v.Status.MigrationState.EndTimestamp)
}
