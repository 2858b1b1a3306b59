package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Question is what a probe asks about a guest.
type Question string

// The questions.
const (
	// AskPing: does the guest's agent answer? That of a guest that a user has paused counts
	// as one that does: a user may pause a VMI whose liveness probe asks this.
	AskPing Question = "ping"
	// AskExec: does a program in the guest, which its agent runs, end with status 0?
	AskExec Question = "exec"
	// AskArrived: has the guest that moves to this pod arrived, and is the pod that it has left not
	// ready any more? The answer is yes as soon as that is so, and no at the end of the timeout.
	AskArrived Question = "arrived"
)

// ProbeConfig is a probe of the guest of a pod.
type ProbeConfig struct {
	// Question is what is asked. Required.
	Question Question
	// Namespace and Name are those of the VMI. Required for AskPing and AskExec.
	Namespace, Name string
	// Timeout is how long the answer may take. 0: as long as ctx lasts.
	Timeout time.Duration
	// Command is the program of AskExec with its arguments.
	Command []string
}

// arrivalPeriod is how often a probe looks whether the guest has arrived.
const arrivalPeriod = 50 * time.Millisecond

// Probe asks about the guest of the pod that the process is in. An error says what
// the answer is if it is not yes, or why there is none. While the pod waits for a guest that
// moves, and while a guest stands still because it has moved or is about to, it is yes. It is called in a process of
// its own in the container of the launcher, whose state it does not change.
func Probe(ctx context.Context, c ProbeConfig) error {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("no answer within %s: %w", c.Timeout, context.DeadlineExceeded))
		defer cancel()
	}
	if _, err := os.Lstat(waitsPath("")); err == nil && slices.Contains([]Question{AskPing, AskExec}, c.Question) {
		return nil
	}
	switch c.Question {
	case AskPing:
		return c.withAgent(ctx, func(conn *libvirt.Connection, domain string) error { return ping(ctx, conn, domain) })
	case AskExec:
		return c.withAgent(ctx, func(conn *libvirt.Connection, domain string) error { return c.exec(ctx, conn, domain) })
	case AskArrived:
		return arrives(ctx, "")
	}
	return fmt.Errorf("probe %q is none of %s, %s and %s: %w", c.Question, AskPing, AskExec, AskArrived, vmi.ErrInvalid)
}

// arrives waits until the guest has arrived in the pod with this root, alone.
func arrives(ctx context.Context, root string) error {
	for {
		if _, err := os.Lstat(arrivedPath(root)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-time.After(arrivalPeriod):
		case <-ctx.Done():
			return fmt.Errorf("no guest has arrived in this pod: %w", context.Cause(ctx))
		}
	}
}

func ping(ctx context.Context, conn *libvirt.Connection, domain string) error {
	if pausedFor(ctx, conn, domain, protocol.PausedByUser, protocol.PausedByMigration) {
		return nil
	}
	return conn.PingAgent(ctx, domain)
}

// pausedFor says that the guest is paused for one of the causes.
func pausedFor(ctx context.Context, conn *libvirt.Connection, domain string, causes ...protocol.PauseCause) bool {
	status, err := conn.Status(ctx, domain)
	return err == nil && status.State == libvirt.Paused && slices.Contains(causes, status.Pause)
}

func (c ProbeConfig) exec(ctx context.Context, conn *libvirt.Connection, domain string) error {
	if len(c.Command) == 0 {
		return fmt.Errorf("probe %s needs a command: %w", AskExec, vmi.ErrInvalid)
	}
	if pausedFor(ctx, conn, domain, protocol.PausedByMigration) {
		return nil
	}
	exit, err := conn.Exec(ctx, domain, c.Command[0], c.Command[1:]...)
	switch {
	case err != nil:
		return err
	case exit.Signal != 0:
		return fmt.Errorf("%s in the guest was ended by signal %d", c.Command[0], exit.Signal)
	case exit.Status != 0:
		return fmt.Errorf("%s in the guest ended with status %d", c.Command[0], exit.Status)
	}
	return nil
}

// withAgent connects to the daemon, which may just be started again.
func (c ProbeConfig) withAgent(ctx context.Context, ask func(*libvirt.Connection, string) error) (err error) {
	conn, err := dial(ctx, process.NewDaemon(process.Config{Dir: daemonDir("")}).Socket())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	v := vmi.VirtualMachineInstance{}
	v.Namespace, v.Name = c.Namespace, c.Name
	return ask(conn, domain.Name(&v))
}

// daemonDir is the folder of the libvirt daemon. Below another root than the pod's it
// is not as deep: the paths of sockets are short.
func daemonDir(root string) string {
	if root != "" {
		return filepath.Join(root, "libvirt")
	}
	return filepath.Join(vmi.PrivateDir, "libvirt")
}

// dial connects to the daemon as soon as it answers.
func dial(ctx context.Context, socket string) (*libvirt.Connection, error) {
	for {
		conn, err := libvirt.Dial(ctx, socket)
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}
