package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// worker is a session of which only the tasks matter.
type worker struct {
	*session
	queued atomic.Int64
	wg     sync.WaitGroup
}

func newWorker(t *testing.T) *worker {
	w := &worker{}
	w.session = newSession(podUID, nil, timing{now: time.Now}, slog.New(slog.DiscardHandler), func() { w.queued.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	w.wg.Go(func() { w.work(ctx) })
	t.Cleanup(func() { cancel(); w.wg.Wait() })
	return w
}

func (w *worker) eventually(t *testing.T, f func() bool) {
	t.Helper()
	require.Eventually(t, f, time.Minute, time.Millisecond)
}

func TestATaskThatHangsHoldsNoWorker(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	hang, order := make(chan struct{}), make(chan string, 10)
	began := time.Now()
	w.hand(0, task{kind: taskPut, do: func(context.Context) error { <-hang; order <- "put"; return nil }})
	for range 100 {
		w.hand(0, task{kind: taskPut, do: func(context.Context) error { order <- "put again"; return nil }})
	}
	w.hand(0, task{kind: taskStop, do: func(context.Context) error { order <- "stop"; return nil }})
	require.Less(t, time.Since(began), time.Minute, "it is not waited for")
	w.end()
	close(hang)
	w.wg.Wait()
	close(order)
	var all []string
	for o := range order {
		all = append(all, o)
	}
	require.Equal(t, []string{"put", "stop"}, all, "a stop that was handed over before the end is still put")
	require.Zero(t, w.queued.Load(), "what was dropped is decided after the stop")
}

func TestADecisionOfBeforeATaskIsMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	var done atomic.Int64
	do := func(context.Context) error { done.Add(1); return nil }
	w.hand(0, task{kind: taskPut, do: do})
	w.eventually(t, func() bool { return w.seen() == 1 })
	w.hand(0, task{kind: taskPut, do: do})
	require.EqualValues(t, 1, w.queued.Load())
	w.hand(1, task{kind: taskPut, do: do})
	w.eventually(t, func() bool { return w.seen() == 2 })
	require.EqualValues(t, 2, done.Load())
}

func TestATaskThatFailsIsTriedWithGrowingDelays(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	var tries atomic.Int64
	began := time.Now()
	for time.Since(began) < time.Second || tries.Load() < 2 && time.Since(began) < time.Minute {
		w.hand(w.seen(), task{kind: taskPut, do: func(context.Context) error {
			if tries.Add(1) == 2 {
				panic("broken")
			}
			return errors.New("refused")
		}})
		time.Sleep(time.Millisecond)
	}
	// 20 ms, doubled: 6 tries in the first second, and less than one in each other.
	require.LessOrEqual(t, tries.Load(), 6+int64(time.Since(began)/time.Second))
	require.GreaterOrEqual(t, tries.Load(), int64(2))
	var stopped atomic.Bool
	w.hand(w.seen(), task{kind: taskStop, do: func(context.Context) error { stopped.Store(true); return nil }})
	w.eventually(t, stopped.Load)
}

func TestALauncherChoosesNoRateOfTasks(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	var done atomic.Int64
	hand := func() {
		w.hand(w.seen(), task{kind: taskBind, do: func(context.Context) error { done.Add(1); return nil }})
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	w.eventually(t, func() bool { hand(); return done.Load() >= tasksAtOnce })
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		hand()
	}
	require.LessOrEqual(t, done.Load(), tasksAtOnce+2+int64(time.Since(began)/taskInterval))
}

func TestWhatWaitsForALauncherIsATask(t *testing.T) {
	t.Parallel()
	stop := handler.Put{Desired: protocol.Desired{Stop: &protocol.Stop{}}}
	for _, tt := range []struct {
		actions []handler.Action
		now     int
		kind    taskKind
	}{
		{[]handler.Action{handler.Disconnect{}, handler.Connect{}}, 2, ""},
		{[]handler.Action{handler.Bind{}}, 0, taskBind},
		{[]handler.Action{handler.Put{}}, 0, taskPut},
		{[]handler.Action{stop, handler.Emit{}}, 0, taskStop},
		{nil, 0, ""},
	} {
		now, later := divide(tt.actions)
		require.Len(t, now, tt.now)
		require.Len(t, later, len(tt.actions)-tt.now)
		if len(later) > 0 {
			require.Equal(t, tt.kind, kindOf(later[0]))
		}
	}
}

// Each connection of a launcher that breaks begins the states of another.
func TestAttackALauncherThatReconnectsHasOneTimerOfStates(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	for n := range int64(1000) {
		w.receive(protocol.State{Phase: protocol.Running, Reboots: n})
		w.lost(errors.New("closed"))
	}
	require.Less(t, w.states.Reserve().Delay(), time.Duration(3/statesPerSecond*float64(time.Second)), "one state waits for its turn")
	last := protocol.State{Phase: protocol.Running, Reboots: 1001}
	w.receive(last)
	require.Eventually(t, func() bool {
		s := w.observe().State
		return s != nil && s.Reboots == last.Reboots
	}, time.Minute, time.Millisecond, "the state of the connection that lasts is observed")
}

func TestAttackALauncherWhoseTasksFailHasOneTimerOfRetries(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.turn.pace.ReserveN(time.Now(), tasksAtOnce)
	for range 1000 {
		for _, kind := range []taskKind{taskBind, taskPut} {
			w.hand(w.seen(), task{kind: kind, do: func(context.Context) error { return nil }})
		}
	}
	w.eventually(t, func() bool { return w.queued.Load() > 0 })
	require.Never(t, func() bool { return w.queued.Load() > 10 }, 100*time.Millisecond, time.Millisecond)
}

func TestAPanicInAGoroutineOfASessionIsAnError(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, guarded(func() error { panic("broken") }), "panic: broken")
	w := newWorld(t)
	w.launch(protocol.State{Phase: protocol.Waiting}, accept)
	var clock atomic.Int64
	s := newSession(podUID, w.dial, timing{heartbeat: time.Hour, answer: time.Minute, now: func() time.Time {
		if clock.Add(1) == 2 { // the first state of the first connection
			panic("broken")
		}
		return time.Now()
	}}, slog.New(slog.DiscardHandler), func() {})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.run(ctx) })
	require.Eventually(t, func() bool { return s.observe().State != nil }, time.Minute, time.Millisecond, "it connects again")
	cancel()
	wg.Wait()
}
