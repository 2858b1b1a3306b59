package host

import (
	"sync"
	"syscall"
)

// children starts processes and waits for all of them, and for every orphan
// that process 1 inherits.
type children struct {
	mu     sync.Mutex
	exits  map[int]chan<- syscall.WaitStatus
	notify chan struct{} // a child was started
}

func newChildren() *children {
	c := &children{exits: map[int]chan<- syscall.WaitStatus{}, notify: make(chan struct{}, 1)}
	go c.reap()
	return c
}

// start runs a program and returns a channel that gets its end.
func (c *children) start(argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	// The lock keeps reap from seeing the end of a process that is not yet in the table.
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return 0, nil, err
	}
	exit := make(chan syscall.WaitStatus, 1)
	c.exits[pid] = exit
	select {
	case c.notify <- struct{}{}:
	default:
	}
	return pid, exit, nil
}

// reap runs as long as the process does.
func (c *children) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.ECHILD {
			<-c.notify
			continue
		}
		if err != nil || !status.Exited() && !status.Signaled() {
			continue
		}
		c.mu.Lock()
		if exit, ok := c.exits[pid]; ok {
			exit <- status
			delete(c.exits, pid)
		}
		c.mu.Unlock()
	}
}
