package process

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// Reaper collects the children that no other part of the process waits for: the
// daemon, QEMU, which libvirt leaves to the first process, and orphans of any kind.
// libvirt takes a process for running until it is reaped, so this happens at once.
//
// Children of os/exec are left to it. They are recognised by their session: it is
// that of the launcher, while the daemon is started in one of its own and
// everything below it inherits that or makes another.
//
// There is one Reaper in a process. Its methods may be called from any goroutine.
type Reaper struct {
	self, session int

	mu      sync.Mutex
	status  map[int]unix.WaitStatus
	order   []int // the keys of status, oldest first
	waiting map[int]chan unix.WaitStatus
}

// remembered is the number of exit statuses that are kept for a later
// [Reaper.Exited].
const remembered = 64

// NewReaper makes the process the parent of orphans, which the first process of a
// PID namespace is anyway.
func NewReaper() (*Reaper, error) {
	session, err := unix.Getsid(0)
	if err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	return &Reaper{
		self: os.Getpid(), session: session,
		status: map[int]unix.WaitStatus{}, waiting: map[int]chan unix.WaitStatus{},
	}, nil
}

// Run reaps until ctx ends.
func (r *Reaper) Run(ctx context.Context) {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		r.reap()
		select {
		case <-died:
		case <-ctx.Done():
			return
		}
	}
}

// Exited delivers the exit status of pid, a child in another session, once.
func (r *Reaper) Exited(pid int) <-chan unix.WaitStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := make(chan unix.WaitStatus, 1)
	if s, ok := r.status[pid]; ok {
		c <- s
		return c
	}
	r.waiting[pid] = c
	return c
}

// reap collects every child that has ended.
func (r *Reaper) reap() {
	for _, pid := range processes() {
		if !r.dead(pid) {
			continue
		}
		var s unix.WaitStatus
		if got, err := unix.Wait4(pid, &s, unix.WNOHANG, nil); err == nil && got == pid {
			r.note(pid, s)
		}
	}
}

// dead says that pid is a dead child of another session.
func (r *Reaper) dead(pid int) bool {
	s, ok := statusOf(pid)
	return ok && s.state == 'Z' && s.parent == r.self && s.session != r.session
}

func (r *Reaper) note(pid int, s unix.WaitStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.waiting[pid]; ok {
		delete(r.waiting, pid)
		c <- s
		return
	}
	if len(r.order) == remembered {
		delete(r.status, r.order[0])
		r.order = r.order[1:]
	}
	r.status[pid] = s
	r.order = append(r.order, pid)
}
