package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// terminationFile has the message of a launcher that has ended.
const terminationFile = "termination"

// guestSize is how much is sent of a guest that moves: more than what lies between two launchers
// before the one at the end reads it.
const guestSize = 4 << 20

// What a guest does, in its journal: behind it stands the pod.
const (
	guestStarted = "started"
	guestLeft    = "left" // it stands still, and everything of it is sent
	guestArrived = "arrived"
	guestResumed = "resumed" // where it had left
	guestStopped = "stopped"
)

// judge says what is wrong with a journal.
func judge(journal string) error {
	at := ""
	lines := strings.Split(strings.TrimSpace(journal), "\n")
	for i, line := range lines {
		what, pod, _ := strings.Cut(line, " ")
		legal := at == "" && i > 0
		switch what {
		case guestStarted:
			legal = i == 0
		case guestLeft, guestStopped:
			legal = at == pod
		}
		if !legal || what == guestStopped && i != len(lines)-1 {
			return fmt.Errorf("line %d is wrong", i+1)
		}
		at = ""
		if what != guestLeft && what != guestStopped {
			at = pod
		}
	}
	if !strings.HasPrefix(lines[len(lines)-1], guestStopped+" ") {
		return errors.New("it was not stopped")
	}
	return nil
}

func TestAGuestRunsInOnePodAtATime(t *testing.T) {
	t.Parallel()
	for journal, legal := range map[string]bool{
		"started a\nstopped a\n": true,
		"started a\nleft a\narrived b\nleft b\narrived c\nstopped c\n": true,
		"started a\nleft a\nresumed a\nstopped a\n":                    true,
		"":                                  false,
		"started a\n":                       false,
		"started a\nstarted b\nstopped a\n": false,
		"started a\narrived b\nstopped b\n": false,
		"started a\nleft a\narrived b\nresumed a\nstopped a\n": false,
		"started a\nleft a\nstopped a\n":                       false,
		"started a\nleft a\n":                                  false,
		"arrived a\nstopped a\n":                               false,
		"started a\nstopped a\nstarted a\nstopped a\n":         false,
		"started a\nstopped b\n":                               false,
	} {
		require.Equal(t, legal, judge(journal) == nil, journal)
	}
}

// runLauncher is a launcher whose guest does at once what is desired.
func runLauncher() int {
	id := strings.Split(os.Getenv(launcherName), "/")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l := &guestOf{pod: id[3], journal: os.NewFile(3, "journal"), qemu: make(chan net.Conn)}
	config := control.ServerConfig{Namespace: id[0], Name: id[1], UID: types.UID(id[2]), Put: l.put}
	config.Calls, config.Questions, config.Streams = l.moves()
	l.server = control.NewServer(config)
	l.publish(protocol.State{Phase: protocol.Waiting})
	socket, err := net.Listen("unix", vmi.LauncherSocket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	serving, cancel := context.WithCancel(context.Background())
	go func(tests int) {
		for ; os.Getppid() == tests; time.Sleep(time.Second) {
		}
		os.Exit(1) // the tests were killed
	}(os.Getppid())
	go func() {
		select {
		case <-ctx.Done():
			l.end(protocol.End{Reason: protocol.Shutdown, Terminated: true})
		case <-l.server.Drained():
		}
		select {
		case <-l.server.Drained():
		case <-time.After(3 * time.Second): // without a handler, the status of the pod says it
		}
		cancel()
	}()
	if err := l.server.Serve(serving, socket); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// guestOf is the guest of a launcher.
type guestOf struct {
	pod     string
	journal *os.File
	server  *control.Server
	qemu    chan net.Conn // the connection by which the guest is sent

	mu    sync.Mutex
	state protocol.State
	sent  chan struct{} // closed when the sending has ended
	came  int           // bytes that came
}

// publish publishes a state. The lock is held, or nothing is served yet.
func (l *guestOf) publish(s protocol.State) {
	s.Movable = true
	l.state = s
	l.server.Publish(s)
}

// stage publishes where a migration stands. The lock is held.
func (l *guestOf) stage(uid types.UID, at protocol.MigrationStage, phase protocol.Phase, why *vmi.Finding) {
	s := l.state
	s.Phase, s.Pause, s.Migration = phase, nil, &protocol.Migration{UID: uid, Stage: at, Finding: why}
	if phase == protocol.Paused {
		s.Pause = &protocol.Pause{Cause: protocol.PausedByMigration}
	}
	l.publish(s)
}

// at is where the migration stands. The lock is held.
func (l *guestOf) at(uid types.UID) protocol.MigrationStage {
	if m := l.state.Migration; m != nil && m.UID == uid {
		return m.Stage
	}
	return ""
}

func (l *guestOf) put(d protocol.Desired) error {
	if d.Stop != nil {
		l.end(protocol.End{Reason: protocol.Shutdown})
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	if s.Phase == protocol.Waiting && d.Role == vmi.RoleActive {
		l.note(guestStarted)
		s.Phase, s.Emulated = protocol.Running, true
	}
	s.Generation = d.Generation
	l.publish(s)
	return nil
}

// movedAway is the end of a launcher whose guest runs elsewhere, whoever makes it end.
var movedAway = protocol.End{Reason: protocol.MovedAway, Message: "the guest runs in another pod"}

func (l *guestOf) end(e protocol.End) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.state.Phase {
	case protocol.Ended:
		return
	case protocol.Running:
		l.note(guestStopped)
	case protocol.Waiting:
		e.Reason = protocol.Cancelled
	case protocol.Paused: // all of it is sent
		e = movedAway
	}
	if err := os.WriteFile(terminationFile, []byte(e.Termination()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	s := l.state
	s.Phase, s.Pause, s.End = protocol.Ended, nil, &e
	l.publish(s)
}

func (l *guestOf) note(what string) {
	if _, err := fmt.Fprintln(l.journal, what, l.pod); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// moves are the calls and the streams of migrations.
func (l *guestOf) moves() (calls map[protocol.Call]func(context.Context) error, questions map[protocol.Call]func(context.Context, []byte) (any, error), streams map[protocol.Stream]func(context.Context) (net.Conn, error)) {
	calls = map[protocol.Call]func(context.Context) error{protocol.CallDestroy: func(context.Context) error {
		l.end(movedAway)
		return nil
	}}
	questions = map[protocol.Call]func(context.Context, []byte) (any, error){}
	for call, do := range map[protocol.Call]func(context.Context, protocol.MigrationEnd) (any, error){
		protocol.CallMigrationBegin: l.begin, protocol.CallMigrationPerform: l.perform, protocol.CallMigrationConfirm: l.confirm,
		protocol.CallMigrationAbort: l.abort, protocol.CallMigrationPrepare: l.prepare, protocol.CallMigrationFinish: l.finish,
	} {
		questions[call] = func(ctx context.Context, options []byte) (any, error) {
			var o protocol.MigrationEnd
			if err := json.Unmarshal(options, &o); err != nil {
				return nil, transport.Refusal(protocol.ReasonMalformed, "%v", err)
			}
			return do(ctx, o)
		}
	}
	streams = map[protocol.Stream]func(context.Context) (net.Conn, error){protocol.StreamMigrationMemory: l.connect}
	return calls, questions, streams
}

// stays refuses a step of a migration that has failed.
func stays() error { return transport.Refusal(protocol.ReasonMigrationFailed, "it has failed") }

func (l *guestOf) begin(_ context.Context, o protocol.MigrationEnd) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.at(o.UID) {
	case protocol.MigrationStays:
		return nil, stays()
	case "":
		l.stage(o.UID, protocol.MigrationBegins, l.state.Phase, nil)
	}
	return protocol.MigrationBegun{XML: "<domain/>"}, nil
}

// perform sends the guest once, also when its caller is gone.
func (l *guestOf) perform(ctx context.Context, o protocol.MigrationEnd) (any, error) {
	l.mu.Lock()
	switch l.at(o.UID) {
	case protocol.MigrationBegins:
		l.sent = make(chan struct{})
		l.stage(o.UID, protocol.MigrationSends, protocol.Running, nil)
		go l.send(o.UID, l.sent)
	case protocol.MigrationSends, protocol.MigrationSent:
	default:
		l.mu.Unlock()
		return nil, stays()
	}
	sent := l.sent
	l.mu.Unlock()
	select {
	case <-sent:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at(o.UID) != protocol.MigrationSent {
		return nil, stays()
	}
	return protocol.MigrationStep{UID: o.UID}, nil
}

func (l *guestOf) send(uid types.UID, sent chan struct{}) {
	defer close(sent)
	err := errors.New("nothing takes the connection")
	near, far := net.Pipe()
	select {
	case l.qemu <- far:
		_, err = near.Write(make([]byte, guestSize))
	case <-time.After(time.Minute):
	}
	_ = near.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.at(uid) != protocol.MigrationSends || l.state.Phase != protocol.Running: // it was aborted, or has ended
	case err != nil:
		l.stage(uid, protocol.MigrationStays, protocol.Running, &vmi.Finding{Reason: protocol.ReasonMigrationFailed, Message: err.Error()})
	default:
		l.note(guestLeft)
		l.stage(uid, protocol.MigrationSent, protocol.Paused, nil)
	}
}

func (l *guestOf) confirm(_ context.Context, o protocol.MigrationEnd) (any, error) {
	if o.Moved {
		l.end(movedAway)
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at(o.UID) == protocol.MigrationSent && l.state.Phase == protocol.Paused {
		l.note(guestResumed)
		l.stage(o.UID, protocol.MigrationStays, protocol.Running, nil)
	}
	return nil, nil
}

func (l *guestOf) abort(_ context.Context, o protocol.MigrationEnd) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at(o.UID) == protocol.MigrationSent {
		return nil, transport.Refusal(protocol.ReasonInvalid, "everything is at the target")
	}
	l.stage(o.UID, protocol.MigrationStays, l.state.Phase, &vmi.Finding{Reason: protocol.ReasonMigrationAborted, Message: "Live migration has been aborted"})
	return nil, nil
}

func (l *guestOf) prepare(_ context.Context, o protocol.MigrationEnd) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.at(o.UID) {
	case protocol.MigrationDiscarded:
		return nil, stays()
	case "":
		l.stage(o.UID, protocol.MigrationReceives, l.state.Phase, nil)
	}
	return protocol.MigrationStep{UID: o.UID}, nil
}

// finish lets the guest run here, if everything of it comes within some seconds: virt-handler
// waits 15 s for the answer.
func (l *guestOf) finish(ctx context.Context, o protocol.MigrationEnd) (any, error) {
	for end := time.Now().Add(10 * time.Second); ; {
		l.mu.Lock()
		switch at := l.at(o.UID); {
		case at == protocol.MigrationArrived:
		case at == protocol.MigrationReceives && o.Moved && l.came == guestSize:
			l.note(guestArrived)
			l.state.Emulated = true
			l.stage(o.UID, protocol.MigrationArrived, protocol.Running, nil)
		case at == protocol.MigrationReceives && o.Moved && time.Now().Before(end):
			l.mu.Unlock()
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Millisecond):
			}
			continue
		default:
			l.stage(o.UID, protocol.MigrationDiscarded, l.state.Phase, nil)
			l.mu.Unlock()
			return nil, transport.Refusal(protocol.ReasonNotMoved, "it was destroyed")
		}
		l.mu.Unlock()
		return protocol.MigrationStep{UID: o.UID}, nil
	}
}

// connect is the connection of QEMU: that of a guest that is sent, or one to the guest that comes.
func (l *guestOf) connect(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	comes := l.state.Phase == protocol.Waiting
	l.mu.Unlock()
	if comes {
		near, far := net.Pipe()
		go l.take(near)
		return far, nil
	}
	select {
	case c := <-l.qemu:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *guestOf) take(c net.Conn) {
	defer func() { _ = c.Close() }()
	b := make([]byte, 32<<10)
	for {
		n, err := c.Read(b)
		l.mu.Lock()
		l.came += n
		l.mu.Unlock()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, err)
			}
			return
		}
	}
}
