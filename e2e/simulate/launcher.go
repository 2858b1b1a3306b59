package simulate

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// endTimeout is how long a launcher that has ended waits for its handler, as the real one does.
const endTimeout = 5 * time.Second

// VMI is whose launcher it is.
type VMI struct {
	Namespace, Name string
	UID             types.UID
}

// Guest is how the guest of a launcher behaves. The zero value starts and powers off in no time.
type Guest struct {
	// Boot is how long it takes from the first Desired to Running.
	Boot time.Duration
	// Off is how long it takes to power off. The grace period ends it earlier.
	Off time.Duration
}

// Exit is how the container of a launcher ended.
type Exit struct {
	// Code is its exit code: 137 if it was killed.
	Code int32
	// Message is its termination message.
	Message string
}

func (e Exit) reason() string {
	if e.Code == 0 {
		return "Completed"
	}
	return "Error"
}

// killed is the exit code of a process that SIGKILL ended.
const killed = 137

// LauncherConfig says which launcher it is.
type LauncherConfig struct {
	// Pods is the kubelet's folder of pods, Pod the UID of the pod, and Node its node.
	// Required.
	Pods string
	Pod  types.UID
	Node string
	// VMI is whose launcher it is. Required.
	VMI VMI
	// Guest is how its guest behaves.
	Guest Guest
	// Namespace gives it a network namespace of its own.
	Namespace bool
	// Ended is called once, when it has ended. Required.
	Ended func(Exit)
	// Logger takes what fails. Nil: nothing is logged.
	Logger *slog.Logger
}

// Launcher is a launcher without libvirt: the real server of the control protocol, at the
// socket where a handler looks for it. Its guest is a state. Its methods may be called from any
// goroutine.
type Launcher struct {
	config LauncherConfig
	server *control.Server
	cancel context.CancelFunc
	served sync.WaitGroup
	space  *os.File // the network namespace; nil: that of the process

	mu      sync.Mutex
	desired protocol.Desired
	state   protocol.State
	stop    *time.Timer // ends the guest
	over    bool
}

// StartLauncher starts a launcher.
func StartLauncher(c LauncherConfig) (*Launcher, error) {
	l := &Launcher{config: c, state: protocol.State{Phase: protocol.Waiting}}
	server := control.ServerConfig{Namespace: c.VMI.Namespace, Name: c.VMI.Name, UID: c.VMI.UID, Put: l.put, Logger: c.Logger}
	if c.Namespace {
		var err error
		if l.space, err = newNamespace(Address(c.Pod)); err != nil {
			return nil, fmt.Errorf("network namespace of pod %s: %w", c.Pod, err)
		}
		server.NetworkNamespace = fmt.Sprintf("/proc/self/fd/%d", l.space.Fd())
	}
	at := filepath.Join(c.Pods, string(c.Pod), "volumes/kubernetes.io~empty-dir", vmi.SocketsVolume)
	s, err := listen(at)
	if err != nil {
		return nil, fmt.Errorf("socket of pod %s: %w", c.Pod, err)
	}
	l.server = control.NewServer(server)
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	l.served.Go(func() { _ = l.server.Serve(ctx, s) })
	return l, nil
}

// Pod is the UID of its pod.
func (l *Launcher) Pod() types.UID { return l.config.Pod }

// Node is the node of its pod.
func (l *Launcher) Node() string { return l.config.Node }

// VMI is whose launcher it is.
func (l *Launcher) VMI() VMI { return l.config.VMI }

// State is the state that it shows its handler.
func (l *Launcher) State() protocol.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Change changes the state of a guest that runs, as what happens in it does: it reboots, its
// agent answers. A guest that does not run stays as it is.
func (l *Launcher) Change(change func(*protocol.State)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Phase == protocol.Running {
		change(&l.state)
		l.server.Publish(l.state)
	}
}

// put is the answer to a Desired.
func (l *Launcher) put(d protocol.Desired) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.desired = d
	l.state.Generation = d.Generation
	switch {
	case l.over:
	case d.Stop != nil:
		l.shutDown(time.Duration(d.Stop.GracePeriodSeconds)*time.Second, false)
		return nil
	case d.Role == vmi.RoleTarget:
	case l.state.Phase == protocol.Waiting:
		l.state.Phase = protocol.Starting
		if l.config.Guest.Boot == 0 {
			l.boot()
		} else {
			time.AfterFunc(l.config.Guest.Boot, func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.boot()
			})
		}
	}
	l.server.Publish(l.state)
	return nil
}

// boot makes a guest run that starts. mu is held.
func (l *Launcher) boot() {
	if l.state.Phase != protocol.Starting {
		return
	}
	l.state.Phase, l.state.Machine = protocol.Running, "pc-q35-10.0"
	l.state.Disks = nil
	for i, d := range l.desired.Instance.Spec.Domain.Devices.Disks {
		l.state.Disks = append(l.state.Disks, protocol.Disk{Name: d.Name, Target: fmt.Sprintf("vd%c", 'a'+i%26), SizeBytes: 1 << 30})
	}
	l.server.Publish(l.state)
}

// shutDown asks the guest to power off, within the grace period. mu is held.
func (l *Launcher) shutDown(grace time.Duration, terminated bool) {
	end := protocol.End{Reason: protocol.Shutdown, Message: "the guest powered off", Terminated: terminated}
	after := l.config.Guest.Off
	switch {
	case l.over:
		return
	case l.state.Phase == protocol.Waiting || l.state.Phase == protocol.Starting:
		end.Reason, end.Message, after = protocol.Cancelled, "the guest was not started yet", 0
	case grace == 0:
		end.Message, after = "the guest was switched off", 0
	case grace < after:
		end.Reason, end.Message, after = protocol.Killed, "the guest did not power off", grace
	}
	if l.stop != nil && !l.stop.Stop() {
		return // it ends now
	}
	if l.state.Phase != protocol.Stopping {
		l.state.Phase = protocol.Stopping
		l.server.Publish(l.state)
	}
	l.stop = time.AfterFunc(after, func() { l.end(end) })
}

// end is the end of the domain, and then of the process.
func (l *Launcher) end(e protocol.End) {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	l.over = true
	l.state = protocol.State{Generation: l.state.Generation, Phase: protocol.Ended, End: &e}
	l.server.Publish(l.state)
	l.mu.Unlock()
	select {
	case <-l.server.Drained():
	case <-time.After(endTimeout):
	}
	exit := Exit{Message: e.Termination()}
	if e.Reason.Failed() {
		exit.Code = 1
	}
	l.leave(exit)
}

// Terminate is what a kubelet does to a launcher whose pod ends: SIGTERM, and SIGKILL after the
// grace period.
func (l *Launcher) Terminate(grace time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shutDown(grace, true)
}

// Kill ends the launcher as SIGKILL does: nothing is said to the handler.
func (l *Launcher) Kill() {
	l.mu.Lock()
	over := l.over
	l.over = true
	l.mu.Unlock()
	if !over {
		l.leave(Exit{Code: killed})
	}
}

// Crash ends the guest as a crash of QEMU does.
func (l *Launcher) Crash(message string) {
	l.end(protocol.End{Reason: protocol.Crashed, Message: cmp.Or(message, "QEMU was killed")})
}

// leave ends the process.
func (l *Launcher) leave(e Exit) {
	l.cancel()
	l.served.Wait()
	if l.space != nil {
		_ = l.space.Close()
	}
	_ = os.RemoveAll(filepath.Join(l.config.Pods, string(l.config.Pod)))
	l.config.Ended(e)
}
