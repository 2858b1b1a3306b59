package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// kubelet plays the kubelets of two nodes with a virt-handler each: launchers are processes of
// their own, each with a network namespace and a socket.
type kubelet struct {
	nodes    [2]string         // the first one is the one that is tried
	dirs     map[string]string // of pods, by node
	journals string            // the folder of what the guests of VMIs did
	again    func(key string)
	writers  *writers

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

// handled plays the nodes of two virt-handlers for a namespace.
func (n *nodes) handled(namespace string, two ...string) (*kubelet, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := &kubelet{nodes: [2]string(two), dirs: map[string]string{}, journals: folder(namespace, "journals"),
		again: func(key string) { n.loop.Add("pod/" + key) }, writers: n.writers, runs: map[types.UID]*launched{}}
	for _, node := range two {
		k.dirs[node] = filepath.Join(folder(namespace, handlerName(node)), "pods")
	}
	n.kubelets[namespace] = k
	return k, os.Mkdir(k.journals, 0o700)
}

// step does the next thing for a pod, which is for this node if it has none yet.
func (k *kubelet) step(ctx context.Context, p *corev1.Pod, node string, orphan bool) error {
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
		return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	case r == nil && p.Status.Phase == corev1.PodPending:
		if err := k.start(p); err != nil {
			return err
		}
		return writeStatus(ctx, p, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	case r != nil && p.Status.Phase == corev1.PodPending: // the status was not written
		return writeStatus(ctx, p, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	case r != nil && r.ended() && p.Status.Phase == corev1.PodRunning:
		phase, end := corev1.PodSucceeded, &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.Now(), Message: r.termination()}
		if e, ok := protocol.ParseTermination(end.Message); !ok || e.Reason.Failed() {
			phase, end.Reason, end.ExitCode = corev1.PodFailed, "Error", 1
		}
		return writeStatus(ctx, p, phase, corev1.ContainerState{Terminated: end})
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
// the name and the UID of its VMI, and the name of its pod.
const launcherName = "FAULT_LAUNCHER"

// podNetwork makes in a network namespace what a CNI plugin makes for a pod.
const podNetwork = `ip link add eth0 type veth peer name node && ip addr add 10.244.77.2/24 dev eth0 &&
ip link set lo up && ip link set node up && ip link set eth0 up && ip route add default via 10.244.77.1`

// start starts the launcher of a pod, as the user of launchers.
func (k *kubelet) start(p *corev1.Pod) error {
	dir := filepath.Join(k.dirs[p.Spec.NodeName], string(p.UID), "volumes/kubernetes.io~empty-dir", vmi.SocketsVolume)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, vmi.RuntimeUID, vmi.RuntimeUID)); err != nil {
		return err
	}
	owner := metav1.GetControllerOfNoCopy(p)
	log, err := os.Create(filepath.Join(k.dirs[p.Spec.NodeName], string(p.UID), "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	journal, err := os.OpenFile(filepath.Join(k.journals, owner.Name+" "+string(owner.UID)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"launcher"}, Dir: dir, Stdout: log, Stderr: log, ExtraFiles: []*os.File{journal},
		Env: []string{launcherName + "=" + strings.Join([]string{p.Namespace, owner.Name, string(owner.UID), p.Name}, "/")},
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

// termination is the message that the launcher has left.
func (r *launched) termination() string {
	text, err := os.ReadFile(filepath.Join(r.dir, terminationFile))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// oracle says what is wrong with the launchers: a guest is started and stopped once, runs in one
// pod at a time, and no launcher is left.
func (k *kubelet) oracle() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for uid, r := range k.runs {
		select {
		case <-r.done:
		case <-time.After(time.Minute):
			errs = append(errs, fmt.Errorf("the launcher of pod %s runs on", uid))
		}
	}
	files, err := os.ReadDir(k.journals)
	errs = append(errs, err)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(k.journals, f.Name()))
		errs = append(errs, err)
		if err := judge(string(text)); err != nil {
			errs = append(errs, fmt.Errorf("the guest of VMI %s: %w:\n%s", f.Name(), err, text))
		}
	}
	return errors.Join(errs...)
}
