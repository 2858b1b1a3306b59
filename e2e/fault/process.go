package fault

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// restartDelay is how long a process that has ended is not started again.
const restartDelay = 200 * time.Millisecond

// process is a component's process, which is started again when it ends, as a kubelet does
// it with a container.
type process struct {
	command func() *exec.Cmd

	mu     sync.Mutex
	now    *os.Process
	ended  bool
	killed int // how often it was ended from outside
	ends   int // how often it has ended
	done   chan struct{}
}

// start starts the process. end ends it.
func start(command func() *exec.Cmd) *process {
	p := &process{command: command, done: make(chan struct{})}
	go p.run()
	return p
}

func (p *process) run() {
	// The signal of the parent's death is that of its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	for {
		c := p.begin()
		if c == nil {
			return
		}
		_ = c.Wait()
		p.mu.Lock()
		p.now = nil
		p.ends++
		p.mu.Unlock()
		time.Sleep(restartDelay)
	}
}

// begin starts it once. Nil: it is to end, or cannot be started.
func (p *process) begin() *exec.Cmd {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	c := p.command()
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := c.Start(); err != nil {
		p.ends++
		p.ended = true
		return nil
	}
	p.now = c.Process
	return c
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		return
	}
	if s == syscall.SIGKILL {
		p.killed++
	}
	if err := p.now.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		panic(err) // it is our own
	}
}

// unexpected is how often it has ended by itself.
func (p *process) unexpected() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.ends-p.killed, 0)
}

// end ends the process for good.
func (p *process) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.signal(syscall.SIGKILL)
	<-p.done
}
