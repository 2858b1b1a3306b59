package scale

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// restartDelay is how long a program that ended is down, as a container that a kubelet restarts.
const restartDelay = time.Second

// program is a program that is started again when it ends, as a kubelet does: virt-controller
// ends when it cannot renew its lease, which may be so on a busy host.
type program struct {
	make    func() *exec.Cmd
	log     *os.File
	stopped chan struct{}
	done    chan struct{}

	mu       sync.Mutex // protects what follows
	cmd      *exec.Cmd
	down     bool
	spent    time.Duration // by those that ended
	restarts int
}

// startProgram starts a program whose log is appended to a file.
func startProgram(command func() *exec.Cmd, log string) (*program, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &program{make: command, log: f, stopped: make(chan struct{}), done: make(chan struct{})}
	if err := p.start(); err != nil {
		_ = f.Close()
		return nil, err
	}
	go p.keep()
	return p, nil
}

// start starts the process.
func (p *program) start() error {
	c := p.make()
	c.Stdout, c.Stderr = p.log, p.log
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = c
	err := c.Start()
	p.down = err != nil
	return err
}

// keep waits for the process and starts it again, until it was stopped.
func (p *program) keep() {
	defer close(p.done)
	defer func() { _ = p.log.Close() }()
	for {
		_ = p.cmd.Wait() // how it ended is in its log
		p.mu.Lock()
		p.spent += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
		p.restarts++
		p.down = true
		p.mu.Unlock()
		select {
		case <-p.stopped:
			return
		case <-time.After(restartDelay):
		}
		if err := p.start(); err != nil {
			return
		}
	}
}

// stop ends the program.
func (p *program) stop() error {
	close(p.stopped)
	p.mu.Lock()
	process := p.cmd.Process
	p.mu.Unlock()
	_ = process.Signal(syscall.SIGTERM)
	end := time.AfterFunc(20*time.Second, func() { _ = process.Kill() })
	defer end.Stop()
	<-p.done
	return nil
}

// use is the processor time that the program took so far, also before it was restarted, the
// memory that it has now, and how often it was restarted.
func (p *program) use() (processor time.Duration, rss int64, restarts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return p.spent, 0, p.restarts
	}
	now, err := processorTime(p.cmd.Process.Pid)
	if err == nil {
		rss, err = resident(p.cmd.Process.Pid)
	}
	if err != nil {
		return p.spent, 0, p.restarts // it has just ended
	}
	return p.spent + now, rss, p.restarts
}
