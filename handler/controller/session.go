package controller

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"reflect"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/internal/handler/socket"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// Delays between two attempts to connect. The first ones are short: a VMI that
// was just handed over has a launcher that is just starting, and every
// millisecond is one of the VMI's own start.
const (
	firstDelay = 5 * time.Millisecond
	lastDelay  = time.Second
)

// steady is how long a connection must have lasted for the delays to start again
// with the first.
const steady = 10 * time.Second

// A tenant controls the launcher, and each of its states may cost a write: so many
// are taken at once, and so many per second. A VMI from its start to its end takes
// fewer than the first.
const (
	statesAtOnce    = 20
	statesPerSecond = 0.5
)

// refreshPeriod is the time after which the finding of a launcher that does not
// answer is replaced by another. A launcher can choose its failures, and each may
// cost a write.
const refreshPeriod = time.Minute

// timing are the times of a session.
type timing struct {
	heartbeat, answer time.Duration
	now               func() time.Time
}

// session is the connection to one launcher, which is made again whenever it
// breaks, and what is known through it.
type session struct {
	podUID types.UID
	client *control.Client
	states *rate.Limiter
	timing timing
	queue  func()
	log    *slog.Logger
	tasks  chan task
	ended  chan struct{} // closed by end

	mu       sync.Mutex
	began    time.Time
	answered time.Time       // when the launcher answered last; zero: never
	received int             // how many states were received
	state    *protocol.State // what is observed
	next     *protocol.State // received, and not to be observed yet
	due      bool            // a timer waits to deliver next, whichever that is then

	sent       time.Time // since when everything of the guest is at a target; zero: it is not
	over       bool      // the VMI had failed when it was seen last, since its node was fenced
	heldSince  time.Time
	held       time.Time
	network    *handler.Network
	put        *protocol.Desired
	generation int64
	losses     int // of the connection

	finding *vmi.Finding
	since   time.Time // when it began
	set     time.Time // when it was replaced last

	turn turn
}

func newSession(podUID types.UID, dial func(context.Context, string) (net.Conn, error), t timing, log *slog.Logger, queue func()) *session {
	return &session{
		podUID: podUID, queue: queue, timing: t, log: limitedLog(log), began: t.now(),
		tasks: make(chan task, 1), ended: make(chan struct{}),
		states: rate.NewLimiter(statesPerSecond, statesAtOnce),
		client: control.NewClient(func(ctx context.Context) (net.Conn, error) { return dial(ctx, string(podUID)) }),
		turn:   turn{pace: rate.NewLimiter(rate.Every(taskInterval), tasksAtOnce)},
	}
}

// end ends the session and returns at once. The launcher is not affected. A task
// that was handed over before is completed.
func (s *session) end() { close(s.ended) }

// live is the session until it was ended and its last task is done, or until ctx
// ends.
func (s *session) live(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	watch, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() {
		select {
		case <-s.ended:
			stop()
		case <-ctx.Done():
		}
	})
	wg.Go(func() { s.run(watch) })
	s.work(ctx)
	cancel()
}

// run connects until ctx ends or the domain has ended.
func (s *session) run(ctx context.Context) {
	delay := firstDelay
	for {
		began := time.Now()
		var answered bool
		err := guarded(func() (err error) { answered, err = s.follow(ctx); return err })
		if err == nil || ctx.Err() != nil {
			return
		}
		if answered {
			s.log.Info("lost the connection to the launcher", "pod", s.podUID, "err", err)
		}
		if answered && time.Since(began) > steady {
			delay = firstDelay
		}
		s.lost(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
			delay = min(delay*3/2, lastDelay)
		}
	}
}

// receive takes a state, now or, if there were too many, later, when it may have
// been replaced by another, also of another connection. One timer waits for that at a
// time. An end is never delayed.
func (s *session) receive(state protocol.State) {
	state = state.Sanitized()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = s.timing.now()
	s.received++
	s.generation = max(s.generation, state.Generation)
	s.next = &state
	if state.Phase == protocol.Ended {
		s.deliver()
		return
	}
	if s.due {
		return
	}
	if wait := s.states.Reserve().Delay(); wait > 0 {
		s.due = true
		time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.due = false
			s.deliver()
		})
		return
	}
	s.deliver()
}

// deliver makes the last state that was received the one that is observed. The
// lock is held.
func (s *session) deliver() {
	if s.next == nil {
		return
	}
	if s.state == nil {
		s.finding = nil // it was about the connection
	}
	s.state, s.next = s.next, nil
	switch m := s.state.Migration; {
	case m == nil || m.Stage != protocol.MigrationSent:
		s.sent = time.Time{}
	case s.sent.IsZero():
		s.sent = s.timing.now()
	}
	s.queue()
}

// isSent says that the launcher has reported that everything of the guest is at a target.
func (s *session) isSent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.sent.IsZero()
}

// count is how many states were received.
func (s *session) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received
}

// isLatest says that state is the last one that was received.
func (s *session) isLatest(state protocol.State) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.state
	if s.next != nil {
		last = s.next
	}
	return last != nil && reflect.DeepEqual(*last, state)
}

// alive notes that the launcher has answered.
func (s *session) alive(generation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = s.timing.now()
	s.generation = max(s.generation, generation)
}

// lost drops what belongs to a connection, and notes why it broke.
func (s *session) lost(err error) {
	f := protocol.SanitizeFinding(vmi.Finding{Reason: vmi.ReasonLauncherUnresponsive, Message: err.Error()})
	if errors.Is(err, socket.ErrUnsafe) {
		f.Reason = vmi.ReasonLauncherUnsafe
	}
	now := s.timing.now()
	s.mu.Lock()
	connected := s.state != nil
	s.losses++
	s.state, s.next, s.network, s.put = nil, nil, nil, nil
	if connected {
		s.finding = nil // it was about the network or a Put
	}
	changed := s.finding == nil || *s.finding != f && now.Sub(s.set) >= refreshPeriod
	if changed {
		s.finding, s.set = &f, now
	}
	s.mu.Unlock()
	if changed {
		s.queue()
	}
}

// fail notes why the network or a Put failed, and when that attempt began. Of
// several the first one's beginning is kept.
func (s *session) fail(began time.Time, f vmi.Finding) {
	f = protocol.SanitizeFinding(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return // the connection broke, which says more
	}
	if s.finding == nil {
		s.since = began
	}
	s.finding = &f
}

// observe is the session as a decision sees it.
func (s *session) observe() *handler.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &handler.Session{
		Began: s.began, State: s.state, Network: s.network, Put: s.put,
		Generation: s.generation, Over: s.over, HeldSince: s.heldSince, Held: s.held, Sent: s.sent, Finding: s.finding, Since: s.since,
	}
	if s.state == nil {
		o.Since = s.began
		if !s.answered.IsZero() {
			o.Since = s.answered
		}
	}
	return o
}

// hold notes whether the guest must not start now.
func (s *session) hold(held bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !held:
		s.heldSince = time.Time{}
		return
	case s.heldSince.IsZero():
		s.heldSince = now
	}
	s.held = now
}

// lostSoFar is how often the connection was lost. What belongs to a connection and is done
// after its loss is not noted: the launcher of the next may be another.
func (s *session) lostSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.losses
}

// bound notes the network that was bound when so many connections were lost.
func (s *session) bound(n network.Config, losses int) {
	s.mu.Lock()
	if s.losses == losses {
		s.network, s.finding = &handler.Network{Interfaces: n.Interfaces, Attachments: n.Attachments}, nil
	}
	s.mu.Unlock()
	s.queue()
}

// putting is the generation of a Desired that is sent next. Whether it comes into
// force is not known until it is accepted.
func (s *session) putting() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	return s.generation
}

// accepted notes the Desired that was sent when so many connections were lost, and that
// the launcher accepted. If it refused one before, that is over.
func (s *session) accepted(d protocol.Desired, losses int) {
	s.mu.Lock()
	over := s.losses == losses && s.finding != nil
	if s.losses == losses {
		s.put, s.finding = &d, nil
	}
	s.mu.Unlock()
	if over {
		s.queue()
	}
}
