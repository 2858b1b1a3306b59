package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// The times of a migration.
const (
	// prepareTimeout is how long it may take until the guest can be sent.
	prepareTimeout = time.Minute
	// finishTimeout is how long one question for the outcome may take, dismissTimeout one
	// attempt to have the target wait no more, and openTimeout the opening of
	// a stream there.
	finishTimeout  = 15 * time.Second
	dismissTimeout = 3 * time.Second
	openTimeout    = 15 * time.Second
	// mostDismissals is how often that is tried: a target that waits for long ends by itself.
	mostDismissals = 3
	// firstPause and lastPause are the times between two attempts of a step.
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
)

// reasonPrepareTimeout is the reason of a migration that could not begin in time.
const reasonPrepareTimeout = "PrepareTimeout"

// runner carries out one migration from the node, or goes on with it after a restart. What it
// does next is [handler.Next].
type runner struct {
	*Controller
	uid    types.UID       // of the migration
	of     protocol.Target // the launcher of the source
	vmi    *vmi.VirtualMachineInstance
	client *control.Client
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended

	mu      sync.Mutex
	start   protocol.MigrationStart
	finding *vmi.Finding  // why it was given up
	moved   bool          // the guest runs at the target, or ran there
	changed chan struct{} // closed when start or finding changes

	// Those of its own goroutine.
	began     time.Time
	known     handler.Moving
	looked    bool // at the first state
	begun     protocol.MigrationBegun
	prepared  protocol.MigrationStep
	performed protocol.MigrationStep
	mode      vmi.MigrationMode // how the memory is sent; empty: that is not known
	finished  protocol.MigrationStep
	dismissed int
	asked     time.Time // when the API server was asked last
	ended     time.Time // since when the launcher is known to have ended; zero: it is not
	left      bool      // the connections over the pod of the source were ended
	streams   sync.WaitGroup
}

func newRunner(c *Controller, of protocol.Target, s *session, start protocol.MigrationStart) *runner {
	return &runner{
		Controller: c, uid: start.UID, of: of, client: s.client, log: c.log.With("vmi", of.Key(), "migration", start.UID),
		done: make(chan struct{}), start: start, changed: make(chan struct{}), known: handler.Moving{UID: start.UID},
	}
}

// over says that the runner has ended.
func (r *runner) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// restart replaces what virt-controller says of the migration. It is refused if that is that the
// guest will never run at the target, and it did.
func (r *runner) restart(start protocol.MigrationStart) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if start.Over && r.moved {
		return errMoved(r.uid)
	}
	if r.start != start {
		r.start = start
		r.change()
	}
	return nil
}

// errMoved refuses what would have a guest run here that has moved.
func errMoved(uid types.UID) error {
	return transport.Refusal(string(protocol.MovedAway), "the guest of migration %s has moved: it is not here any more", uid)
}

// outcome notes whether the guest runs at the target. Since virt-controller was answered that it
// never will, nothing else counts.
func (r *runner) outcome(moved bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved = moved && !r.start.Over
	r.known.Moved = new(r.moved)
}

// cease notes why the migration is to end. The first cause counts.
func (r *runner) cease(f vmi.Finding) {
	named := f.Reason != "" // clients know an abort by its message alone
	if f = protocol.SanitizeFinding(f); !named {
		f.Reason = ""
	}
	r.mu.Lock()
	if r.finding == nil {
		r.finding = &f
		r.change()
	}
	r.mu.Unlock()
	r.loop.Add(r.of.Key())
}

// change says that there is something new. The lock is held.
func (r *runner) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// now is what virt-controller says of the migration, and what is closed when that changes.
func (r *runner) now() (protocol.MigrationStart, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start, r.changed
}

// move is what the VMI's status needs to know.
func (r *runner) move() handler.Move {
	r.mu.Lock()
	defer r.mu.Unlock()
	return handler.Move{UID: r.uid, Peer: r.start.Address, Finding: r.finding, Ended: r.over()}
}

// run does one step after the other until there is none.
func (r *runner) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer r.streams.Wait()
	defer cancel()
	r.began = time.Now()
	var last handler.Step
	pause := firstPause
	for {
		_, changed := r.now()
		r.observe(ctx)
		step := handler.Next(r.known)
		if ctx.Err() != nil {
			return
		}
		if step != last && step != handler.StepWait {
			r.log.Info("migration", "step", step)
			last, pause = step, firstPause
		}
		if step == handler.StepDone {
			return
		}
		err := r.do(ctx, step)
		if err == nil && step != handler.StepWait {
			continue
		}
		if err != nil && ctx.Err() == nil {
			r.log.Warn("retry a step of a migration", "step", step, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			pause = firstPause
		case <-time.After(pause):
			pause = min(pause*3/2, lastPause)
		}
	}
}

// observe asks the own launcher for its state, which no session delays.
func (r *runner) observe(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, r.timing.answer)
	defer cancel()
	state, err := r.client.State(bounded)
	r.known.State = nil
	switch {
	case err == nil:
		state = state.Sanitized()
		r.known.State = &state
		if m := state.Migration; m != nil && m.UID == r.uid {
			r.mode = cmp.Or(m.Mode, r.mode)
		}
		if !r.looked { // what was before it, another handler has done
			r.looked, r.known.Asked = true, state.Migration != nil && state.Migration.UID == r.uid
		}
	case r.isGone(err):
		r.known.State = &protocol.State{Phase: protocol.Ended}
	}
	r.concludeWithout()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.GivenUp, r.known.Held = r.finding != nil, r.start.Held
	if r.start.Over && r.known.Moved == nil {
		r.known.Moved = new(false)
	}
}

// concludeWithout ends the questions for the outcome some time after the launcher has ended: a
// target that was not asked to run the guest by then has destroyed it.
func (r *runner) concludeWithout() {
	switch s := r.known.State; {
	case s == nil || s.Phase != protocol.Ended:
	case r.ended.IsZero():
		r.ended = time.Now()
	case r.known.Moved == nil && time.Since(r.ended) > finishTimeout:
		r.known.Moved = new(false)
	}
}

// isGone says that the launcher is not there any more.
func (r *runner) isGone(err error) bool {
	if r.nothingLeft(r.of.Pod) {
		return true
	}
	_, s := r.handled(r.of)
	return s == nil && (errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED))
}

// do does a step once.
func (r *runner) do(ctx context.Context, step handler.Step) error {
	switch step {
	case handler.StepBegin:
		return r.judged(step, r.begin(ctx))
	case handler.StepPrepare:
		return r.judged(step, r.prepare(ctx))
	case handler.StepPerform:
		return r.judged(step, r.perform(ctx))
	case handler.StepFinish:
		return r.finish(ctx)
	case handler.StepConfirm:
		return r.confirm(ctx)
	case handler.StepAbort:
		return r.bound(ctx, finishTimeout, func(ctx context.Context) error {
			return r.client.Call(ctx, protocol.CallMigrationAbort, protocol.MigrationStep{UID: r.uid}, nil)
		})
	case handler.StepDismiss:
		return r.dismiss(ctx)
	default:
		return nil
	}
}

// bound bounds what do takes. It also ends when virt-controller says something new.
func (r *runner) bound(ctx context.Context, most time.Duration, do func(context.Context) error) error {
	_, changed := r.now()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ended:
		}
	}()
	return do(ctx)
}

// judged gives the migration up if the step has failed for good, or has had its time.
func (r *runner) judged(step handler.Step, err error) error {
	if err == nil {
		return nil
	}
	f, refused := refusalOf(err)
	switch {
	case refused && !step.Retryable(f):
		r.cease(f)
	case time.Since(r.began) > prepareTimeout && step != handler.StepPerform:
		r.cease(vmi.Finding{Reason: reasonPrepareTimeout, Message: fmt.Sprintf("the migration could not begin within %s: %v", prepareTimeout, err)})
	}
	return err
}

// refusalOf is what a launcher or the handler of the target refuses with.
func refusalOf(err error) (vmi.Finding, bool) {
	var own *control.Error
	var peer *vmi.Refusal
	switch {
	case errors.As(err, &own):
		return own.Finding, true
	case errors.As(err, &peer):
		return peer.Finding, true
	}
	return vmi.Finding{}, false
}

func (r *runner) begin(ctx context.Context) error {
	start, _ := r.now()
	return r.bound(ctx, prepareTimeout, func(ctx context.Context) error {
		var begun protocol.MigrationBegun
		if err := r.client.Call(ctx, protocol.CallMigrationBegin, protocol.MigrationBegin{UID: r.uid, Settings: start.Settings}, &begun); err != nil {
			return err
		}
		r.begun, r.known.Begun = begun, true
		return nil
	})
}

func (r *runner) prepare(ctx context.Context) error {
	start, _ := r.now()
	r.known.Asked = true
	return r.bound(ctx, prepareTimeout, func(ctx context.Context) error {
		options := protocol.MigrationPrepare{MigrationBegin: protocol.MigrationBegin{UID: r.uid, Settings: start.Settings}, MigrationBegun: r.begun}
		if err := r.ask(ctx, protocol.CallMigrationPrepare, options, &r.prepared); err != nil {
			return err
		}
		r.known.Prepared = true
		return nil
	})
}

// perform has the guest sent, and returns when everything is at the target, or when it stays.
// Meanwhile each connection that QEMU makes is joined with one at the target; those that are
// open then are carried to their end.
func (r *runner) perform(ctx context.Context) error {
	var pumps sync.WaitGroup
	defer pumps.Wait()
	opening, stop := context.WithCancel(ctx)
	defer stop()
	for _, s := range []protocol.Stream{protocol.StreamMigrationMemory, protocol.StreamMigrationDisks} {
		pumps.Go(func() { r.pump(ctx, opening, s) })
	}
	step := protocol.MigrationStep{UID: r.uid, Cookie: r.prepared.Cookie}
	if err := r.client.Call(ctx, protocol.CallMigrationPerform, step, &r.performed); err != nil {
		return err
	}
	r.known.Performed = true
	return nil
}

// pump joins one connection of QEMU after the other until opening ends.
func (r *runner) pump(ctx, opening context.Context, s protocol.Stream) {
	for opening.Err() == nil {
		near, err := r.client.Stream(opening, s)
		if err != nil {
			if f, _ := refusalOf(err); f.Reason == protocol.ReasonUnknown || !sleep(opening, firstPause) {
				return
			}
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, openTimeout)
		far, err := r.peer().Stream(bounded, r.path("", s))
		cancel()
		if err != nil {
			r.log.Warn("open a stream of a migration", "stream", s, "err", err)
			_ = near.Close() // QEMU reports it
			continue
		}
		r.streams.Go(func() { carry.Bulk(ctx, near, far) })
	}
}

// finish asks the target for the outcome. Without an answer the status of the VMI may have it:
// only the handler of the target writes there that the VMI is on another node.
func (r *runner) finish(ctx context.Context) error {
	err := r.bound(ctx, finishTimeout, func(ctx context.Context) error {
		start, _ := r.now()
		end := protocol.MigrationEnd{MigrationStep: protocol.MigrationStep{UID: r.uid, Cookie: r.performed.Cookie}, Moved: true, Mode: r.mode, Address: start.Address}
		return r.ask(ctx, protocol.CallMigrationFinish, end, &r.finished)
	})
	if err == nil {
		r.outcome(true)
		return nil
	}
	if f, _ := refusalOf(err); f.Reason == protocol.ReasonNotMoved {
		r.cease(f)
		r.outcome(false)
		return nil
	}
	if time.Since(r.asked) > lastPause {
		r.asked = time.Now()
		moved, failed := r.hasMoved(ctx)
		if moved {
			r.outcome(true)
			return nil
		}
		err = errors.Join(err, failed)
	}
	return err
}

// hasMoved says whether the VMI is on this node no more, by the API server and no cache. Its
// guest, of which everything was sent, has moved then, or is to end.
func (r *runner) hasMoved(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timing.answer)
	defer cancel()
	l, err := r.config.Client.VirtualMachineInstances(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "status.nodeName=" + r.config.Node})
	if l == nil || err != nil && !errors.Is(err, vmi.ErrUnreadable) {
		return false, err
	}
	return !slices.ContainsFunc(l.Items, func(v vmi.VirtualMachineInstance) bool { return v.UID == r.of.UID }), nil
}

// leaveTimeout is how long it may take to end the connections over the pod of the source.
const leaveTimeout = 5 * time.Second

// leave ends the connections over the pod of the source, before its network goes with it: the
// peers of the guest are not left waiting. It is tried once.
func (r *runner) leave(ctx context.Context) {
	if r.binder == nil || r.left {
		return
	}
	r.left = true
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := r.binder.leave(ctx, r.client, r.vmi); err != nil {
		r.log.Warn("end the connections of a guest that has moved", "err", err)
	}
}

// reportedTimeout is how long the source waits until it is known in the cluster where the guest
// runs.
const reportedTimeout = time.Second

// reported waits until the status of the VMI, which the handler of the target writes, names its
// node. The streams of users end with the guest at the source: those that they open then are to
// reach the target.
func (r *runner) reported(ctx context.Context) {
	for until := time.Now().Add(reportedTimeout); time.Now().Before(until); {
		if v, _ := r.handled(r.of); v == nil || v.Status.NodeName != r.config.Node || !sleep(ctx, firstPause) {
			return
		}
	}
}

func (r *runner) confirm(ctx context.Context) error {
	if *r.known.Moved {
		r.reported(ctx)
		r.leave(ctx)
	}
	return r.bound(ctx, finishTimeout, func(ctx context.Context) error {
		end := protocol.MigrationEnd{MigrationStep: protocol.MigrationStep{UID: r.uid, Cookie: r.finished.Cookie}, Moved: *r.known.Moved}
		if err := r.client.Call(ctx, protocol.CallMigrationConfirm, end, nil); err != nil {
			return err
		}
		r.known.Confirmed = true
		return nil
	})
}

func (r *runner) dismiss(ctx context.Context) error {
	r.dismissed++
	err := r.bound(ctx, dismissTimeout, func(ctx context.Context) error {
		return r.ask(ctx, protocol.CallMigrationFinish, protocol.MigrationEnd{MigrationStep: protocol.MigrationStep{UID: r.uid}}, nil)
	})
	f, _ := refusalOf(err)
	r.known.Dismissed = err == nil || f.Reason == protocol.ReasonNotMoved || r.dismissed >= mostDismissals
	if r.known.Dismissed {
		return nil
	}
	return err
}

// peer is a client of the handler of the target.
func (r *runner) peer() *stream.PeerClient {
	start, _ := r.now()
	return r.config.Certificate.Client(stream.Peer{Certificate: start.Certificate, Address: start.Address})
}

// path is that of a request about the migration at the handler of the target.
func (r *runner) path(call protocol.Call, s protocol.Stream) protocol.Path {
	start, _ := r.now()
	to := r.of
	to.Pod = start.Pod
	return protocol.Path{Target: to, Call: call, Stream: s, Migration: r.uid}
}

// ask makes a call of the migration at the handler of the target.
func (r *runner) ask(ctx context.Context, call protocol.Call, options, answer any) error {
	return r.peer().Call(ctx, r.path(call, ""), options, answer)
}
