package main

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// children starts programs and reaps them, and with them every orphan of the
// guest, as is the duty of process 1. All exit statuses arrive in one
// place, so nothing waits for a child that the reaper has taken.
type children struct {
	mu     sync.Mutex
	exited map[int]chan unix.WaitStatus
}

func newChildren() *children {
	c := &children{exited: map[int]chan unix.WaitStatus{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			c.reap()
		}
	}()
	return c
}

func (c *children) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		c.mu.Lock()
		if ch, ok := c.exited[pid]; ok {
			ch <- status
			delete(c.exited, pid)
		}
		c.mu.Unlock()
	}
}

// process says how to start a program.
type process struct {
	args []string
	env  []string
	// files are the standard input, output and error; nil means those of init.
	files []*os.File
	attr  *syscall.SysProcAttr
}

var childEnv = []string{"PATH=/bin", "HOME=/root", "TERM=vt100"}

// start starts a program; its exit status comes through the channel.
func (c *children) start(p process) (<-chan unix.WaitStatus, error) {
	files := p.files
	if files == nil {
		files = []*os.File{os.Stdin, os.Stdout, os.Stderr}
	}
	path := p.args[0]
	if path[0] != '/' {
		path = "/bin/" + path
	}
	// The lock keeps the reaper from seeing the end of a child that is not in
	// the map yet.
	c.mu.Lock()
	defer c.mu.Unlock()
	child, err := os.StartProcess(path, p.args, &os.ProcAttr{
		Dir: "/", Env: append(childEnv, p.env...), Files: files, Sys: p.attr,
	})
	if err != nil {
		return nil, err
	}
	ch := make(chan unix.WaitStatus, 1)
	c.exited[child.Pid] = ch
	return ch, child.Release()
}

// run runs a program on the console to its end.
func (c *children) run(name string, args ...string) error {
	exited, err := c.start(process{args: append([]string{name}, args...)})
	if err != nil {
		return err
	}
	switch status := <-exited; {
	case status.Signaled():
		return fmt.Errorf("killed by signal %d", status.Signal())
	case status.ExitStatus() != 0:
		return fmt.Errorf("exit status %d", status.ExitStatus())
	}
	return nil
}

// any reports whether a started program still runs.
func (c *children) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.exited) > 0
}
