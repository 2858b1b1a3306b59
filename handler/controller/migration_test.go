package controller

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestAGuestMovesAndEveryByteArrives(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 128<<20, 4)
	before := m.changes()
	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	m.eventually("it is reported that it is sent", func() bool { return m.instance().Status.MigrationState.StartTimestamp != nil })
	require.NoError(t, m.start(), "to repeat it changes nothing")
	require.Eventually(t, func() bool { return m.instance().Status.NodeName == otherNode }, 3*time.Minute, 5*time.Millisecond)
	m.requireMoved()
	s := m.instance().Status.MigrationState
	require.Equal(t, "127.0.0.1", s.TargetNodeAddress)
	require.Len(t, s.TargetDirectMigrationNodePorts, 1)
	require.Equal(t, vmi.MigrationPreCopy, s.Mode)
	require.Equal(t, before+2, m.changes(), "one write of the start and one of the switch")
	m.eventually("events", func() bool { return len(m.reasons()) == 3 })
	require.Equal(t, []string{"N Started", "N Migrating", "N Migrated"}, m.reasons())
	require.NoError(t, m.accept(), "to repeat it changes nothing")
}

func TestTheStatusSaysHowAGuestWasSentAlsoIfTheTargetWritesFirst(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 1<<20, 1)
	tried := make(chan struct{}, 1)
	m.api.mu.Lock()
	m.api.held = func(v *vmi.VirtualMachineInstance) bool { // the source's
		held := v.Status.MigrationState.StartTimestamp != nil && v.Status.NodeName == nodeName
		if held {
			select {
			case tried <- struct{}{}:
			default:
			}
		}
		return held
	}
	m.api.mu.Unlock()
	m.before = func(ctx context.Context, c protocol.Call) error {
		if c == protocol.CallMigrationFinish {
			select {
			case <-tried:
			case <-ctx.Done():
			}
		}
		return nil
	}
	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	m.requireMoved()
	s := m.instance().Status.MigrationState
	require.Equal(t, vmi.MigrationPreCopy, s.Mode)
	require.Equal(t, "127.0.0.1", s.TargetNodeAddress)
	require.Len(t, s.TargetDirectMigrationNodePorts, 1)
}

// gone is a handler that is stopped in the middle of a call: its answer is lost.
type gone struct {
	once sync.Once
	met  chan struct{}
}

// meet says that the call was reached, and waits until its caller is gone, the first time.
func (g *gone) meet(ctx context.Context) (err error) {
	g.once.Do(func() {
		close(g.met)
		<-ctx.Done()
		err = ctx.Err()
	})
	return err
}

func TestAHandlerThatIsRestartedAtAnyStepGoesOnOrFailsCleanly(t *testing.T) {
	t.Parallel()
	calls := []protocol.Call{protocol.CallMigrationBegin, protocol.CallMigrationPrepare, protocol.CallMigrationPerform, protocol.CallMigrationFinish, protocol.CallMigrationConfirm}
	for _, call := range calls {
		for _, answered := range []string{"before", "after"} {
			for _, side := range []string{"source", "target"} {
				if side == "target" && (call == protocol.CallMigrationBegin || call == protocol.CallMigrationConfirm) {
					continue
				}
				t.Run(side+" "+answered+" "+string(call), func(t *testing.T) {
					t.Parallel()
					m := newMoves(t, 4<<20, 2)
					at := &gone{met: make(chan struct{})}
					hook := func(ctx context.Context, c protocol.Call) error {
						if c != call {
							return nil
						}
						if side == "target" && c == protocol.CallMigrationPerform { // it is no call of its own
							at.once.Do(func() { close(at.met); sleep(ctx, 200*time.Millisecond) })
							return nil
						}
						return at.meet(ctx)
					}
					if answered == "before" {
						m.before = hook
					} else {
						m.after = hook
					}
					require.NoError(t, m.accept())
					require.NoError(t, m.start())
					<-at.met
					if side == "source" {
						m.source.stop()
						m.source = m.node(nodeName)
					} else {
						m.target.stop()
						m.target = m.node(otherNode)
					}
					require.Eventually(t, func() bool { // virt-controller repeats its calls while the migration runs
						if s := m.instance().Status.MigrationState; s.Completed {
							return true
						}
						_ = m.accept()
						_ = m.start()
						return false
					}, time.Minute, 50*time.Millisecond)
					if m.instance().Status.MigrationState.Failed {
						m.requireStayed()
						return
					}
					m.requireMoved()
				})
			}
		}
	}
}

func TestAnAbortBeforeTheEndLeavesTheGuestAsItWas(t *testing.T) {
	t.Parallel()
	for _, call := range []protocol.Call{protocol.CallMigrationBegin, protocol.CallMigrationPrepare, protocol.CallMigrationPerform} {
		t.Run(string(call), func(t *testing.T) {
			t.Parallel()
			m := newMoves(t, 4<<20, 2)
			reached, goes := make(chan struct{}), make(chan struct{})
			m.before = func(ctx context.Context, c protocol.Call) error {
				if c == call {
					close(reached)
					select {
					case <-goes:
					case <-ctx.Done():
					}
				}
				return nil
			}
			require.NoError(t, m.accept())
			require.NoError(t, m.start())
			<-reached
			m.change(func(v *vmi.VirtualMachineInstance) { v.Status.MigrationState.AbortRequested = true })
			require.NoError(t, m.ask(m.source, podUID, protocol.CallMigrationAbort, protocol.MigrationStep{UID: migration}))
			close(goes)
			m.eventually("it is reported", func() bool { return m.instance().Status.MigrationState.Failed })
			s := m.instance().Status.MigrationState
			require.Contains(t, s.FailureReason, "has been aborted")
			require.Equal(t, vmi.MigrationAbortSucceeded, s.AbortStatus)
			require.Zero(t, m.taken.Load())
			here, there := m.runs()
			require.True(t, here)
			require.False(t, there)
		})
	}
}

func TestATargetThatDiscardedTheGuestGivesItBack(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 2)
	m.before = func(_ context.Context, c protocol.Call) error {
		if c == protocol.CallMigrationFinish {
			_, err := m.discard()
			return err
		}
		return nil
	}
	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	m.requireStayed()
	require.Contains(t, m.instance().Status.MigrationState.FailureReason, "it was destroyed")
}

func TestAGuestWhoseTargetDoesNotAnswerWaitsForAWordOfIt(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 2)
	m.before = func(_ context.Context, c protocol.Call) error {
		if c == protocol.CallMigrationFinish {
			return errors.New("it hangs")
		}
		return nil
	}
	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	m.eventually("everything is sent", func() bool { here, _ := m.runs(); return !here })
	m.eventually("the session knows", func() bool { return m.source.session(key, podUID).isSent() })
	m.elapse(10 * time.Second)
	m.eventually("it is reported", func() bool {
		c := m.instance().Status.Condition(vmi.ConditionPaused)
		return c != nil && c.Reason == handler.ReasonMigrationOutcomeUnknown
	})
	require.NoError(t, m.start())
	time.Sleep(300 * time.Millisecond)
	here, there := m.runs()
	require.False(t, here || there, "nothing resumes it by time")
	require.Error(t, m.ask(m.source, podUID, protocol.CallMigrationAbort, protocol.MigrationStep{UID: migration}), "it is too late")

	over := func(s *protocol.MigrationStart) { s.Over, s.Address, s.Certificate = true, "", "" }
	require.NoError(t, m.startWith(func(s *protocol.MigrationStart) { over(s); s.Held = true }), "the node of the target may be gone")
	time.Sleep(300 * time.Millisecond)
	here, there = m.runs()
	require.False(t, here || there, "what the target has of its state is there still")
	require.NoError(t, m.startWith(over))
	m.eventually("it runs again", func() bool { here, _ := m.runs(); return here })
	m.eventually("that is reported", func() bool {
		v := m.instance()
		return v.Status.MigrationState.Failed && v.Status.Condition(vmi.ConditionPaused) == nil
	})
}

func TestAGuestThatHasMovedIsNotHeldOrResumed(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 1<<20, 1)
	m.api.mu.Lock()
	m.api.held = func(v *vmi.VirtualMachineInstance) bool { return v.Status.NodeName == otherNode } // the target's
	m.api.mu.Unlock()
	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	m.eventually("it runs there", func() bool { _, there := m.runs(); return there })
	m.eventually("its source knows", func() bool {
		r := m.source.migrations.of(podUID)
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.moved
	})
	for _, held := range []bool{true, false} {
		err := m.startWith(func(s *protocol.MigrationStart) { s.Over, s.Held, s.Address, s.Certificate = true, held, "", "" })
		var refusal *vmi.Refusal
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, "MovedAway", refusal.Reason)
	}
	m.api.mu.Lock()
	m.api.held = nil
	m.api.mu.Unlock()
	m.eventually("that is reported", func() bool { return m.instance().Status.NodeName == otherNode })
	m.requireMoved()
}

func TestALauncherIsAskedToAbortWhateverItsSessionKnows(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 1)
	var asked atomic.Bool
	m.before = func(_ context.Context, c protocol.Call) error {
		if c == protocol.CallMigrationAbort {
			asked.Store(true)
			return transport.Refusal(protocol.ReasonNotFound, "the migration has not begun here")
		}
		return nil
	}
	require.NoError(t, m.ask(m.source, podUID, protocol.CallMigrationAbort, protocol.MigrationStep{UID: migration}))
	require.True(t, asked.Load())
}

func TestATargetOfWhichNothingIsLeftIsNotAccepted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		stage    protocol.MigrationStage
		isLeft   bool
		accepted bool
	}{
		{"its launcher has ended, and its node has the pod", protocol.MigrationDiscarded, true, true},
		{"its launcher has ended, and nothing is left", protocol.MigrationDiscarded, false, false},
		{"the guest ran there, which is to be reported", protocol.MigrationArrived, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMoves(t, 4<<20, 1)
			require.NoError(t, m.accept())
			m.target.stop()
			m.config.Exists = func(string) (bool, error) { return tt.isLeft, nil }
			m.guest.mu.Lock()
			m.publish(m.guest.target, 2, protocol.Ended, tt.stage, nil)
			m.guest.mu.Unlock()
			m.target = m.node(otherNode)
			m.eventually("what the launcher published last is known", func() bool {
				s := m.target.session(key, otherPod)
				return s != nil && s.observe().State != nil
			})
			m.eventually("it is answered", func() bool {
				err := m.accept()
				refusal := (*vmi.Refusal)(nil)
				notMoved := errors.As(err, &refusal) && refusal.Reason == protocol.ReasonNotMoved
				require.False(t, notMoved && tt.accepted, "it is not said of a guest that ran there, or may run")
				return notMoved || err == nil && tt.accepted || m.instance().Status.NodeName == otherNode
			})
		})
	}
}

func TestTheStatusSaysThatItHasMovedWhenTheTargetCannot(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 1)
	m.after = func(_ context.Context, c protocol.Call) error {
		if c == protocol.CallMigrationFinish {
			return errors.New("the answer is lost")
		}
		return nil
	}
	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	m.requireMoved()
}

func TestAttackNoByteGoesToOrComesFromAnotherHandler(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 1)
	foreign, err := stream.NewCertificate(time.Now())
	require.NoError(t, err)
	path := func(change func(*protocol.Path)) protocol.Path {
		p := protocol.Path{Target: targetIn(otherPod), Call: protocol.CallMigrationPrepare, Migration: migration}
		change(&p)
		return p
	}
	same := func(*protocol.Path) {}
	require.False(t, m.target.AdmitPeer(path(same), m.source.peer.Certificate), "nothing was accepted")
	require.NoError(t, m.accept())
	require.True(t, m.target.AdmitPeer(path(same), m.source.peer.Certificate))
	for name, change := range map[string]func(*protocol.Path){
		"another pod":       func(p *protocol.Path) { p.Target.Pod = podUID },
		"another VMI":       func(p *protocol.Path) { p.Target.UID = "u2" },
		"another name":      func(p *protocol.Path) { p.Target.Name = "other" },
		"another migration": func(p *protocol.Path) { p.Migration = "m0" },
		"no migration":      func(p *protocol.Path) { p.Migration = "" },
	} {
		require.False(t, m.target.AdmitPeer(path(change), m.source.peer.Certificate), name)
	}
	require.False(t, m.target.AdmitPeer(path(same), foreign.Hash))

	// A handler that is not the one of the source replays what that one would send.
	prepare := protocol.MigrationPrepare{MigrationBegin: protocol.MigrationBegin{UID: migration}, MigrationBegun: protocol.MigrationBegun{Cookie: []byte("begin")}}
	require.Error(t, foreign.Client(m.target.peer).Call(t.Context(), path(same), prepare, nil))
	_, err = foreign.Client(m.target.peer).Stream(t.Context(), path(func(p *protocol.Path) { p.Call, p.Stream = "", protocol.StreamMigrationMemory }))
	require.Error(t, err)
	// The one that was accepted names another migration in the options.
	prepare.UID = "m0"
	err = m.source.cert.Client(m.target.peer).Call(t.Context(), path(same), prepare, nil)
	var r *vmi.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, protocol.ReasonInvalid, r.Reason)

	// The source sends nothing to a target that has another certificate than virt-controller says.
	require.NoError(t, m.startWith(func(s *protocol.MigrationStart) { s.Certificate = foreign.Hash }))
	time.Sleep(300 * time.Millisecond)
	require.Zero(t, m.taken.Load())
	here, there := m.runs()
	require.True(t, here)
	require.False(t, there)
	require.NoError(t, m.start(), "the right one")
	m.requireMoved()
}

func TestAttackAReplayedPrepareReachesNoLauncher(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 1)
	var prepared atomic.Int64
	m.before = func(_ context.Context, c protocol.Call) error {
		if c == protocol.CallMigrationPrepare {
			prepared.Add(1)
		}
		return nil
	}
	replay := func(as *node) error {
		p := protocol.Path{Target: targetIn(otherPod), Call: protocol.CallMigrationPrepare, Migration: migration}
		return as.cert.Client(m.target.peer).Call(t.Context(), p, protocol.MigrationPrepare{MigrationBegin: protocol.MigrationBegin{UID: migration}}, nil)
	}
	require.Error(t, replay(m.source), "before the migration is accepted")
	require.NoError(t, m.accept())
	before := m.source
	before.stop()
	m.source = m.node(nodeName)
	require.NoError(t, m.accept(), "from the handler that was started again")
	require.Error(t, replay(before), "with the certificate of before")
	require.Zero(t, prepared.Load())
	require.Zero(t, m.taken.Load())
	m.eventually("it has begun", func() bool { return m.start() == nil })
	m.requireMoved()
	require.EqualValues(t, 1, prepared.Load())
}

func TestAttackAPodOfATenantReceivesNothing(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 1)
	// It listens as a launcher does, and looks like one; the status does not name it.
	var asked atomic.Int64
	ask := func(context.Context, []byte) (any, error) {
		asked.Add(1)
		return protocol.MigrationStep{UID: migration}, nil
	}
	m.questions = map[protocol.Call]func(context.Context, []byte) (any, error){protocol.CallMigrationPrepare: ask, protocol.CallMigrationFinish: ask}
	m.launchIn(foreignPod, protocol.State{Phase: protocol.Waiting, Movable: true}, func(*control.Server, protocol.Desired) error { asked.Add(1); return nil })
	options, err := json.Marshal(protocol.MigrationAccept{UID: migration, Certificate: m.source.peer.Certificate})
	require.NoError(t, err)
	for _, n := range []*node{m.source, m.target} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*acceptPeriod)
		_, err := n.Call(ctx, targetIn(foreignPod), protocol.CallMigrationAccept, options)
		cancel()
		requireReason(t, err, protocol.ReasonUnavailable)
		require.ErrorContains(t, err, "not handed over")
	}
	var starts sync.WaitGroup // each waits for a cache that may be behind
	for name, change := range map[string]func(*protocol.MigrationStart){
		"the pod":               func(s *protocol.MigrationStart) { s.Pod = foreignPod },
		"another node":          func(s *protocol.MigrationStart) { s.Node = "n3" },
		"the pod of the source": func(s *protocol.MigrationStart) { s.Pod, s.Node = podUID, nodeName },
	} {
		starts.Go(func() { assert.ErrorContains(t, m.startWith(change), "names another migration or target", name) })
	}
	starts.Wait()
	require.NoError(t, m.accept())
	p := protocol.Path{Target: targetIn(foreignPod), Migration: migration, Call: protocol.CallMigrationPrepare}
	require.Error(t, m.source.cert.Client(m.target.peer).Call(t.Context(), p, protocol.MigrationPrepare{MigrationBegin: protocol.MigrationBegin{UID: migration}}, nil))
	p.Call, p.Stream = "", protocol.StreamMigrationMemory
	_, err = m.source.cert.Client(m.target.peer).Stream(t.Context(), p)
	require.Error(t, err)
	require.Zero(t, asked.Load()+m.taken.Load())
	require.NoError(t, m.start())
	m.requireMoved()
	require.Zero(t, asked.Load())
}

func TestThePartsOfMigrationsThatAreNoOthersAreRefused(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 1)
	m.eventually("there are sessions", func() bool { return m.target.session(key, otherPod) != nil })
	for _, call := range []protocol.Call{protocol.CallMigrationBegin, protocol.CallMigrationPerform, protocol.CallMigrationConfirm} {
		err := m.ask(m.source, podUID, call, protocol.MigrationEnd{MigrationStep: protocol.MigrationStep{UID: migration}})
		requireReason(t, err, protocol.ReasonUnknown)
	}
	_, err := m.source.Stream(t.Context(), targetIn(podUID), protocol.StreamMigrationMemory)
	requireReason(t, err, protocol.ReasonUnknown)
	_, err = m.target.Stream(t.Context(), targetIn(otherPod), protocol.StreamMigrationMemory)
	requireReason(t, err, protocol.ReasonUnknown)
	requireReason(t, m.ask(m.target, otherPod, protocol.CallMigrationPrepare, protocol.MigrationStep{UID: migration}), protocol.ReasonInvalid)
	for call, options := range map[protocol.Call]any{
		protocol.CallMigrationAccept: protocol.MigrationAccept{UID: migration}, protocol.CallMigrationStart: protocol.MigrationStart{UID: migration},
		protocol.CallMigrationAbort: protocol.MigrationStep{}, protocol.CallMigrationFinish: "x", protocol.CallMigrationAnnounce: protocol.MigrationStep{},
	} {
		requireReason(t, m.ask(m.source, podUID, call, options), protocol.ReasonMalformed)
	}
	requireReason(t, m.startWith(func(s *protocol.MigrationStart) { s.UID = "m2" }), protocol.ReasonUnavailable)
	require.NoError(t, m.ask(m.source, podUID, protocol.CallMigrationAbort, protocol.MigrationStep{UID: migration}), "one that was not begun")
	here, _ := m.runs()
	require.True(t, here)
}

func requireReason(t *testing.T, err error, want string) {
	t.Helper()
	var r *vmi.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, want, r.Reason, r.Message)
}

func TestHandlersOfTwoReleasesMoveAGuest(t *testing.T) {
	t.Parallel()
	field := func(options json.RawMessage, change func(map[string]any)) (json.RawMessage, error) {
		var all map[string]any
		if err := json.Unmarshal(options, &all); err != nil {
			return nil, err
		}
		change(all)
		return json.Marshal(all)
	}
	for name, wire := range map[string]func(protocol.Call, json.RawMessage) (json.RawMessage, error){
		"the source is older, and does not say how the guest was sent": func(call protocol.Call, options json.RawMessage) (json.RawMessage, error) {
			return field(options, func(all map[string]any) {
				assert.True(t, call != protocol.CallMigrationFinish || all["address"] != nil)
				delete(all, "mode")
				delete(all, "address")
			})
		},
		"the source is newer, and says more": func(_ protocol.Call, options json.RawMessage) (json.RawMessage, error) {
			return field(options, func(all map[string]any) { all["later"] = map[string]any{"a": 1} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMovesOver(t, 1<<20, 1, wire)
			require.NoError(t, m.accept())
			require.NoError(t, m.start())
			m.requireMoved()
			require.Equal(t, vmi.MigrationPreCopy, m.instance().Status.MigrationState.Mode)
		})
	}
}

func TestAHandlerWithoutAStepOfMigrationsLeavesTheGuestWhereItIs(t *testing.T) {
	t.Parallel()
	m := newMovesOver(t, 1<<20, 1, func(call protocol.Call, options json.RawMessage) (json.RawMessage, error) {
		if call == protocol.CallMigrationPrepare {
			return nil, transport.Refusal(protocol.ReasonUnknown, "it is of another release")
		}
		return options, nil
	})
	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	m.eventually("the migration has failed", func() bool { return m.instance().Status.MigrationState.Failed })
	require.Contains(t, m.instance().Status.MigrationState.FailureReason, "it is of another release")
	here, there := m.runs()
	require.True(t, here)
	require.False(t, there)
}

func TestALauncherOfAnotherReleaseIsTooOldToMove(t *testing.T) {
	t.Parallel()
	w, source, other, _, server := movingFrom(t, func(s *control.Server, d protocol.Desired) error {
		s.Publish(protocol.State{Generation: d.Generation, Phase: protocol.Running})
		return nil
	})
	server.Publish(protocol.State{Phase: protocol.Waiting, Generation: 1})
	require.Equal(t, vmi.PhaseRunning, w.instance().Status.Phase)
	m := &moves{world: w, source: &node{Controller: source}, target: &node{Controller: other}}
	m.source.peer.Certificate, m.target.peer = "sha256:a", stream.Peer{Certificate: "sha256:b", Address: "127.0.0.1:1"}
	requireReason(t, m.accept(), vmi.ReasonLauncherTooOld)
	requireReason(t, m.start(), vmi.ReasonLauncherTooOld)
}

func TestAHandlerThatStopsFinishesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 1)
	goes := make(chan struct{})
	m.before = func(ctx context.Context, c protocol.Call) error {
		if c == protocol.CallMigrationPerform {
			select {
			case <-goes:
			case <-ctx.Done():
			}
		}
		return nil
	}
	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	m.eventually("it is under way", func() bool { return m.source.moves() && m.target.moves() })
	settled := make(chan struct{}, 2)
	for _, n := range []*node{m.source, m.target} {
		go func() {
			n.Settle(context.Background())
			settled <- struct{}{}
		}()
	}
	m.eventually("nothing begins", func() bool {
		m.source.migrations.mu.Lock()
		defer m.source.migrations.mu.Unlock()
		return m.source.migrations.settling
	})
	require.NoError(t, m.start(), "what has begun goes on")
	require.Empty(t, settled)
	close(goes)
	m.requireMoved()
	<-settled
	<-settled
	requireReason(t, m.ask(m.target, otherPod, protocol.CallMigrationStart, protocol.MigrationStart{UID: migration, Pod: "p", Address: "a", Certificate: "c"}), protocol.ReasonUnavailable)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	m.source.Settle(ended) // it does not wait longer than it may
}

func TestAStreamOfAUserEndsAtTheSwitchAndTheNextReachesTheTarget(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 4<<20, 1)
	at := make(chan string, 1)
	m.before = func(_ context.Context, c protocol.Call) error {
		if c == protocol.CallMigrationConfirm { // it ends the guest at the source, and its streams
			at <- m.instance().Status.NodeName
		}
		return nil
	}
	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	m.requireMoved()
	require.Equal(t, otherNode, <-at, "who opens a stream again is sent to the target")
	m.eventually("it is on the node no more", func() bool {
		c, err := m.source.Stream(t.Context(), targetIn(podUID), protocol.StreamConsole)
		if err == nil {
			return c.Close() != nil
		}
		var r *vmi.Refusal
		return errors.As(err, &r) && r.Reason == protocol.ReasonNotFound
	})
	m.eventually("it is the pod of the VMI", func() bool {
		c, err := m.target.Stream(t.Context(), protocol.Target{Namespace: own.Namespace, Name: own.Name, UID: targetIn("").UID}, protocol.StreamConsole)
		if err != nil {
			return false
		}
		defer c.Close()
		_, err = io.WriteString(c, "x")
		return err == nil
	})
}
