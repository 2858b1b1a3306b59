package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// kubelet plays the scheduler and the kubelet of a node with a virt-handler: launchers are
// processes of their own, each with a network namespace and a socket.
type kubelet struct {
	node    string
	dir     string // of pods
	again   func(key string)
	writers *writers

	mu   sync.Mutex
	runs map[types.UID]*launched
}

// launched is a launcher that was started.
type launched struct {
	cmd  *exec.Cmd
	dir  string
	done chan struct{}
}

func (n *nodes) kubelet(namespace string) *kubelet {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kubelets[namespace]
}

// handled plays the node of a virt-handler for a namespace.
func (n *nodes) handled(namespace, node, dir string) *kubelet {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := &kubelet{node: node, dir: dir, again: func(key string) { n.loop.Add("pod/" + key) }, writers: n.writers, runs: map[types.UID]*launched{}}
	n.kubelets[namespace] = k
	return k
}

// step does the next thing for a pod.
func (k *kubelet) step(ctx context.Context, p *corev1.Pod, orphan bool) error {
	pods := world.kube.CoreV1().Pods(p.Namespace)
	k.mu.Lock()
	r := k.runs[p.UID]
	k.mu.Unlock()
	switch {
	case p.DeletionTimestamp != nil, orphan:
		if r != nil && !r.ended() {
			return r.cmd.Process.Signal(syscall.SIGTERM) // its end calls this again
		}
		return pods.Delete(ctx, p.Name, exactly(p.UID))
	case p.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: k.node}}, metav1.CreateOptions{})
	case r == nil && p.Status.Phase == corev1.PodPending:
		if err := k.start(p); err != nil {
			return err
		}
		return writeStatus(ctx, p, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	case r != nil && p.Status.Phase == corev1.PodPending: // the status was not written
		return writeStatus(ctx, p, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	case r != nil && r.ended() && p.Status.Phase == corev1.PodRunning:
		return writeStatus(ctx, p, corev1.PodSucceeded, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", FinishedAt: metav1.Now(), Message: protocol.End{Reason: protocol.Shutdown}.Termination()}})
	}
	return nil
}

func writeStatus(ctx context.Context, p *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState) error {
	changed := p.DeepCopy()
	changed.Status.Phase = phase
	changed.Status.Conditions = nil
	if phase == corev1.PodRunning {
		changed.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	changed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, Image: launcherImage, State: state}}
	_, err := world.kube.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	return err
}

// launcherName is the variable by which the program of the tests is a launcher: the namespace,
// the name and the UID of its VMI.
const launcherName = "FAULT_LAUNCHER"

// podNetwork makes in a network namespace what a CNI plugin makes for a pod.
const podNetwork = `ip link add eth0 type veth peer name node && ip addr add 10.244.77.2/24 dev eth0 &&
ip link set lo up && ip link set node up && ip link set eth0 up && ip route add default via 10.244.77.1`

// start starts the launcher of a pod, as the user of launchers.
func (k *kubelet) start(p *corev1.Pod) error {
	dir := filepath.Join(k.dir, string(p.UID), "volumes/kubernetes.io~empty-dir", vmi.SocketsVolume)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, vmi.RuntimeUID, vmi.RuntimeUID)); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(k.dir, string(p.UID), "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	owner := metav1.GetControllerOfNoCopy(p)
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"launcher"}, Dir: dir, Stdout: log, Stderr: log,
		Env: []string{launcherName + "=" + strings.Join([]string{p.Namespace, owner.Name, string(owner.UID)}, "/")},
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET,
			Credential: &syscall.Credential{Uid: vmi.RuntimeUID, Gid: vmi.RuntimeUID}}}
	k.writers.begin(p)
	if err := cmd.Start(); err != nil {
		return err
	}
	r := &launched{cmd: cmd, dir: dir, done: make(chan struct{})}
	k.mu.Lock()
	k.runs[p.UID] = r
	k.mu.Unlock()
	go func() {
		_ = cmd.Wait()
		k.writers.end(p)
		close(r.done)
		k.again(key(p))
	}()
	out, err := exec.Command("nsenter", "-t", strconv.Itoa(cmd.Process.Pid), "-n", "sh", "-c", podNetwork).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make the network of pod %s: %w: %s", p.Name, err, out)
	}
	return nil
}

func (r *launched) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// signal sends a signal to all launchers that run.
func (k *kubelet) signal(s syscall.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.runs {
		_ = r.cmd.Process.Signal(s) // it may have ended
	}
}

// end ends all launchers.
func (k *kubelet) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.runs {
		_ = r.cmd.Process.Kill()
		<-r.done
	}
}

// oracle says what is wrong with the launchers: the guest of each was started once, and none
// is left.
func (k *kubelet) oracle() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for uid, r := range k.runs {
		text, err := os.ReadFile(filepath.Join(r.dir, guestFile))
		if err != nil {
			errs = append(errs, err)
		}
		if got := string(text); got != "started\nstopped\n" {
			errs = append(errs, fmt.Errorf("the guest of pod %s: %q", uid, got))
		}
		select {
		case <-r.done:
		case <-time.After(10 * time.Second):
			errs = append(errs, fmt.Errorf("the launcher of pod %s runs on", uid))
		}
	}
	return errors.Join(errs...)
}

// guestFile is where a launcher notes what its guest did.
const guestFile = "guest"

// runLauncher is a launcher whose guest does at once what is desired.
func runLauncher() int {
	id := strings.Split(os.Getenv(launcherName), "/")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l := &guestOf{}
	l.server = control.NewServer(control.ServerConfig{Namespace: id[0], Name: id[1], UID: types.UID(id[2]), Put: l.put})
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
			l.end(true)
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
	server *control.Server

	mu    sync.Mutex
	state protocol.State
}

func (l *guestOf) put(d protocol.Desired) error {
	if d.Stop != nil {
		l.end(false)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Phase == "" {
		note("started")
		l.state = protocol.State{Phase: protocol.Running, Emulated: true}
	}
	l.state.Generation = d.Generation
	l.server.Publish(l.state)
	return nil
}

func (l *guestOf) end(terminated bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Phase == protocol.Ended {
		return
	}
	note("stopped")
	l.state = protocol.State{Phase: protocol.Ended, Generation: l.state.Generation, End: &protocol.End{Reason: protocol.Shutdown, Terminated: terminated}}
	l.server.Publish(l.state)
}

func note(what string) {
	f, err := os.OpenFile(guestFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, what)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
