package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// supervisor keeps the programs of one host running.
type supervisor struct {
	dir      string
	programs []plan.Program
	children *children
	board    *board
	log      *slog.Logger
	env      []string
	hung     time.Duration
	// prepare is called before every start of a program and returns how to start
	// it and what to do right after; nil means in no special way.
	prepare func(p plan.Program) (attr *syscall.SysProcAttr, started func(pid int) error, err error)
}

// A program that ends is started again after firstPause, then after twice as
// long and so on up to longestPause; one that ran for goodRun begins anew.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
	goodRun      = 10 * time.Second
)

// lookAgain is how often a program that works is asked whether it still does.
const lookAgain = 2 * time.Second

// hungAfter is how long a program may not do its work any more. On a busy host an API server does
// not answer for a minute, and goes on.
const hungAfter = 3 * time.Minute

// newSupervisor makes a supervisor. There is one children in a process.
func newSupervisor(dir, host string, programs []plan.Program, c *children, log *slog.Logger) (*supervisor, error) {
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o755); err != nil {
		return nil, err
	}
	s := &supervisor{
		dir: dir, programs: programs, children: c, log: log, env: os.Environ(), hung: hungAfter,
		board: &board{dir: dir, status: Status{Host: host}},
	}
	for _, p := range programs {
		s.board.status.Programs = append(s.board.status.Programs, ProgramStatus{Name: p.Name, State: Waiting, Since: time.Now()})
	}
	return s, s.board.write()
}

// run keeps all programs running until ctx ends. It does not stop them: when
// process 1 exits, the kernel kills what is left in its namespace.
func (s *supervisor) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range s.programs {
		all.Go(func() { s.keep(ctx, p) })
	}
	all.Wait()
}

// keep starts a program as often as it takes.
func (s *supervisor) keep(ctx context.Context, p plan.Program) {
	pause := firstPause
	for ctx.Err() == nil {
		for _, after := range p.After {
			s.set(p, func(st *ProgramStatus) { st.State, st.PID, st.Reason = Waiting, 0, after })
			if err := s.await(ctx, condition(after)); err != nil && ctx.Err() == nil {
				s.log.Error("condition", "program", p.Name, "err", err)
			}
		}
		begin := time.Now()
		reason, good := s.once(ctx, p)
		if ctx.Err() != nil {
			return
		}
		if good && p.Once {
			s.set(p, func(st *ProgramStatus) { st.State, st.PID, st.Reason = Done, 0, "" })
			return
		}
		s.log.Warn("program ended", "program", p.Name, "reason", reason)
		s.set(p, func(st *ProgramStatus) { st.State, st.PID, st.Reason, st.Restarts = Broken, 0, reason, st.Restarts+1 })
		if time.Since(begin) > goodRun {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// once runs a program to its end and says how it ended.
func (s *supervisor) once(ctx context.Context, p plan.Program) (reason string, good bool) {
	pid, exit, err := s.start(p)
	if err != nil {
		return err.Error(), false
	}
	s.log.Info("program started", "program", p.Name, "pid", pid)
	s.set(p, func(st *ProgramStatus) { st.State, st.PID, st.Reason = Starting, pid, "" })
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var watch sync.WaitGroup
	watch.Go(func() { s.observe(running, p, pid) })
	select {
	case <-ctx.Done():
		return "", false
	case status := <-exit:
		cancel()
		watch.Wait()
		if status.Signaled() {
			return "killed by signal " + status.Signal().String(), false
		}
		return fmt.Sprintf("exit status %d", status.ExitStatus()), status.ExitStatus() == 0
	}
}

// observe marks a program as running while it does its work. One that has done
// it and has not for long is hung, and is killed so that it is started again.
func (s *supervisor) observe(ctx context.Context, p plan.Program, pid int) {
	if !s.ready(ctx, p) {
		return
	}
	for {
		s.set(p, func(st *ProgramStatus) { st.State, st.Reason = Running, "" })
		missing := s.missing(ctx, p)
		if missing == "" {
			return
		}
		s.log.Warn("program does not work", "program", p.Name, "condition", missing)
		s.set(p, func(st *ProgramStatus) { st.State, st.Reason = Starting, missing })
		limited, cancel := context.WithTimeout(ctx, s.hung)
		again := s.ready(limited, p)
		cancel()
		if again {
			continue
		}
		if ctx.Err() == nil {
			s.log.Warn("program is hung", "program", p.Name, "pid", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return
	}
}

// ready waits until the program does its work, and reports whether it does.
func (s *supervisor) ready(ctx context.Context, p plan.Program) bool {
	for _, c := range p.Ready {
		if err := s.await(ctx, condition(c)); err != nil {
			if ctx.Err() == nil {
				s.log.Error("condition", "program", p.Name, "err", err)
			}
			return false
		}
	}
	return ctx.Err() == nil
}

// missing watches a running program and returns the first condition that does
// not hold any more, or nothing when ctx ends.
func (s *supervisor) missing(ctx context.Context, p plan.Program) string {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-tick.C:
		}
		for _, c := range p.Ready {
			if holds, err := s.check(condition(c)); err != nil || !holds() {
				return c
			}
		}
	}
}

func (s *supervisor) start(p plan.Program) (int, <-chan syscall.WaitStatus, error) {
	out, err := os.OpenFile(LogPath(s.dir, p.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, nil, err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	attr := &syscall.SysProcAttr{}
	started := func(int) error { return nil }
	if s.prepare != nil {
		if attr, started, err = s.prepare(p); err != nil {
			return 0, nil, fmt.Errorf("prepare %s: %w", p.Name, err)
		}
	}
	attr.Setsid = true
	pid, exit, err := s.children.start(p.Args, &syscall.ProcAttr{
		Dir: "/", Env: append(s.env[:len(s.env):len(s.env)], p.Env...), Sys: attr,
		Files: []uintptr{null.Fd(), out.Fd(), out.Fd()},
	})
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	if p.Prompt {
		if err := favor(pid); err != nil {
			s.log.Error("program started, but not favored", "program", p.Name, "err", err)
		}
	}
	if err := started(pid); err != nil {
		// It cannot work: let it end and be started again.
		_ = syscall.Kill(pid, syscall.SIGKILL)
		s.log.Error("program started, but not connected", "program", p.Name, "err", err)
	}
	return pid, exit, nil
}

func (s *supervisor) set(p plan.Program, change func(*ProgramStatus)) {
	if err := s.board.set(p.Name, change); err != nil {
		s.log.Error("write status", "err", err)
	}
}
