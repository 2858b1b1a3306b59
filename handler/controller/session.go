package controller

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/handler/socket"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// Delays between two tries to reach a launcher. The first ones are short: a
// machine that was just handed over has a launcher that is just starting, and
// every millisecond is one of the machine's own start.
const (
	firstDelay = 5 * time.Millisecond
	lastDelay  = time.Second
)

// steady is how long a connection must have held for its loss to be a new
// matter, with short delays. A launcher that hangs up again and again is not
// worth them.
const steady = 10 * time.Second

// A launcher is in the hands of a tenant, and each of its states may cost a
// write: so many it may tell at once, and so many in a second. A machine's whole
// life takes fewer than the first.
const (
	statesAtOnce    = 20
	statesPerSecond = 2
)

// session is the connection to one launcher, which is made again whenever it
// breaks, and what is known through it.
type session struct {
	podUID string
	client *control.Client
	states *rate.Limiter
	queue  func()
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	guest   *handler.Guest
	next    *handler.Guest // heard, but not to be observed yet
	network *network.Config
	put     *handler.Wish
	fault   *handler.Finding
	since   time.Time
	written *vmi.VirtualMachineInstance
	bases   []string // the resourceVersions that written was made from, one on top of the other
}

func newSession(podUID string, dial func(context.Context, string) (net.Conn, error), queue func()) *session {
	return &session{
		podUID: podUID, queue: queue, done: make(chan struct{}),
		states: rate.NewLimiter(statesPerSecond, statesAtOnce),
		client: control.NewClient(func(ctx context.Context) (net.Conn, error) { return dial(ctx, podUID) }),
	}
}

// start connects until close is called or the machine has ended.
func (s *session) start(ctx context.Context, log *slog.Logger) {
	ctx, s.cancel = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		s.run(ctx, log)
	}()
}

// close ends the connection. The machine is not touched.
func (s *session) close() {
	s.cancel()
	<-s.done
}

func (s *session) run(ctx context.Context, log *slog.Logger) {
	delay := firstDelay
	for {
		began := time.Now()
		heard, err := s.follow(ctx, log)
		if err == nil || ctx.Err() != nil {
			return
		}
		if heard {
			log.Info("the launcher is gone, will look for it", "pod", s.podUID, "err", err)
		}
		if heard && time.Since(began) > steady {
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

// follow takes the launcher's states until the machine has ended, or returns
// why it cannot.
func (s *session) follow(ctx context.Context, log *slog.Logger) (heard bool, err error) {
	for state, err := range s.client.Watch(ctx) {
		if err != nil {
			return heard, err
		}
		if !heard {
			log.Info("connected to the launcher", "pod", s.podUID, "guest", guest(state).Phase)
		}
		heard = true
		s.heard(state)
	}
	return heard, nil
}

// heard takes a state, now or, if there were too many, in a while, when it may
// have been replaced by another. An end is never kept waiting.
func (s *session) heard(state control.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := s.next != nil
	s.next = guest(state)
	if s.guest == nil {
		s.fault = nil
	}
	if state.Phase == control.Ended {
		s.deliver()
		return
	}
	if waits {
		return
	}
	if wait := s.states.Reserve().Delay(); wait > 0 {
		time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.deliver()
		})
		return
	}
	s.deliver()
}

// deliver makes the last state that was heard the one that is observed. The lock
// is held.
func (s *session) deliver() {
	if s.next == nil {
		return
	}
	s.guest, s.next = s.next, nil
	s.queue()
}

// lost forgets what went over a connection: the launcher may be another.
func (s *session) lost(err error) {
	s.mu.Lock()
	was := s.guest != nil
	s.guest, s.next, s.network, s.put = nil, nil, nil, nil
	begins := false
	if errors.Is(err, socket.ErrUnsafe) {
		begins = s.failed(handler.Finding{Reason: "LauncherUnsafe", Message: err.Error()}, time.Now())
	}
	s.mu.Unlock()
	if was || begins {
		s.queue()
	}
}

// fail notes what went wrong. It counts from its first time.
func (s *session) fail(f handler.Finding, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed(f, now)
}

// failed does the same with the lock held, and says whether the fault is new.
func (s *session) failed(f handler.Finding, now time.Time) bool {
	begins := s.fault == nil
	if begins {
		s.since = now
	}
	f.Message = shorten(f.Message) // a launcher's own words, when it refuses
	s.fault = &f
	return begins
}

// observe is the session as a decision sees it.
func (s *session) observe() *handler.Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &handler.Link{PodUID: s.podUID, Guest: s.guest, Put: s.put, Fault: s.fault, Since: s.since}
	if s.network != nil {
		l.Plumbing = &handler.Plumbing{Interfaces: s.network.Interfaces}
	}
	return l
}

// plumbed notes the network that was made. It is to be observed: of a guest that
// runs already, because an earlier handler saw to that, nothing else is heard.
func (s *session) plumbed(n network.Config) {
	s.mu.Lock()
	s.network, s.fault = &n, nil
	s.mu.Unlock()
	s.queue()
}

// attachments are what the launcher is told about the network.
func (s *session) attachments() []network.Attachment {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.network == nil {
		return nil
	}
	return s.network.Attachments
}

// told notes what the launcher was told. If it was not to be told before, that
// is over.
func (s *session) told(w handler.Wish) {
	s.mu.Lock()
	over := s.fault != nil
	s.put, s.fault = &w, nil
	s.mu.Unlock()
	if over {
		s.queue()
	}
}

// wrote notes the machine as a write of its status returned it, and the
// resourceVersion of the one that the write was made from.
func (s *session) wrote(base string, v *vmi.VirtualMachineInstance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bases, s.written = append(s.bases, base), v
}

// newest returns the cached machine, or what was last written as long as the
// cache is behind that. It closes this race: the launcher says something new
// before the cache has our own write, and we would write, in vain, from what is
// there no more.
func (s *session) newest(cached *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written == nil || cached == nil || cached.UID != s.written.UID || !slices.Contains(s.bases, cached.ResourceVersion) {
		s.written, s.bases = nil, nil // the cache has caught up
		return cached
	}
	return s.written
}
