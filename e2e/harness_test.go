package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/e2e/kubectl"
	"github.com/podvisor/podvisor/e2e/local"
	"github.com/podvisor/podvisor/e2e/races"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Times that a thing may take on a busy host with two processors. They are
// limits for what would otherwise wait forever, not claims about speed.
const (
	soon = time.Minute
	long = 10 * time.Minute
)

// clusterName is the cluster of these tests, which CLUSTER names when another
// checkout runs them at the same time.
var clusterName = cmp.Or(os.Getenv("CLUSTER"), "test")

// world is the cluster with Podvisor in it that all tests share.
var world struct {
	cluster *cluster.Cluster
	kubectl kubectl.Kubectl
	kube    kubernetes.Interface
	vmis    *client.Client
	config  *rest.Config
	built   []images.Built
	err     error
}

// race says that Podvisor's programs have the race detector, of which no report may be in
// the logs of the nodes.
var race = os.Getenv("RACE") != ""

func TestMain(m *testing.M) {
	if err := choosePart(os.Getenv("PART")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	world.err = setUp(ctx)
	var watcher *races.Watcher
	if race {
		watcher = races.Watch(podLogs)
	}
	code := m.Run()
	if watcher != nil {
		code = max(code, sayRaces(watcher))
	}
	if world.cluster != nil && os.Getenv("KEEP") == "" {
		if err := world.cluster.Down(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "remove the cluster:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// podLogs are the folders with the logs of the pods on the nodes.
func podLogs() (folders []string) {
	if world.cluster == nil {
		return nil
	}
	for _, n := range world.cluster.NodeNames() {
		// A node that restarts has none for a moment.
		if pid, err := world.cluster.Node(n).PID(); err == nil {
			folders = append(folders, fmt.Sprintf("/proc/%d/root/var/log/pods", pid))
		}
	}
	return folders
}

// sayRaces prints the races that the watcher saw, and returns the exit status.
func sayRaces(watcher *races.Watcher) (code int) {
	logs, reports, err := watcher.Reports()
	if err == nil && logs == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "read the logs of the pods:", err)
		code = 1
	}
	fmt.Printf("read %d logs of containers: %d reports of races\n", logs, len(reports))
	for _, r := range reports {
		fmt.Println(r)
		code = 1
	}
	return code
}

// setUp starts the cluster and installs Podvisor in it.
func setUp(ctx context.Context) error {
	site, err := local.Up(ctx, local.Config{Name: clusterName, Race: race, Out: os.Stdout})
	world.cluster, world.kubectl, world.built = site.Cluster, site.Kubectl, site.Built
	world.config, world.kube, world.vmis = site.Access, site.Kube, site.VMIs
	if err != nil {
		return err
	}
	if err := install.Slow(ctx, world.kube, func(string) bool { return true }); err != nil {
		return err
	}
	return setUsual(ctx)
}

// space is a namespace of one test, in which pods must be restricted.
type space struct {
	t    *testing.T
	name string
	// endTurn ends the test's turn, for a test that only waits from then on.
	endTurn func()
}

// turns has room for the tests whose guests boot at a time: as many as there are
// processors, and one more whose pod starts meanwhile. A guest that boots under emulation
// and has no processor for seconds takes wrong times. One that has booted needs next to
// none.
var turns = make(chan struct{}, runtime.NumCPU()+1)

// newSpace makes a namespace that is removed with all that is in it when the
// test ends. If the test failed, it first shows what there is to see. It waits for
// the test's turn, which ends when a guest in the namespace has booted: a test calls it
// once, before all that takes time.
func newSpace(t *testing.T) space {
	t.Helper()
	testenv.Root(t)
	require.NoError(t, world.err, "set up the cluster")
	turns <- struct{}{}
	endTurn := sync.OnceFunc(func() { <-turns })
	t.Cleanup(endTurn)
	ns, err := world.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s := space{t, ns.Name, endTurn}
	t.Cleanup(func() {
		ctx := context.Background()
		if t.Failed() {
			s.explain(ctx)
		}
		require.NoError(t, world.kube.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}))
	})
	go s.endTurnAfterBoot(t.Context())
	return s
}

// endTurnAfterBoot ends the test's turn when the agent of a guest answers, which is the
// last thing that the guests of the tests start. Until the test ends it waits for one.
func (s space) endTurnAfterBoot(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		// A VMI that cannot be read, which some tests make, is not what is looked for.
		all, err := world.vmis.VirtualMachineInstances(s.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, v := range all.Items {
			if c := v.Status.Condition(vmi.ConditionAgentConnected); c != nil && c.Status == corev1.ConditionTrue {
				s.endTurn()
				return
			}
		}
	}
}

// explain writes down what is in the namespace and what the components say.
func (s space) explain(ctx context.Context) {
	for _, args := range [][]string{
		{"-n", s.name, "get", "vm,vmi,pods", "-o", "wide"},
		{"-n", s.name, "get", "vm,vmi", "-o", "yaml"},
		{"-n", s.name, "get", "events", "--sort-by=.lastTimestamp"},
		{"-n", s.name, "logs", "-l", "kubevirt.io=virt-launcher", "--tail=60"},
		{"-n", install.Namespace, "get", "pods", "-o", "wide"},
		{"-n", install.Namespace, "logs", "deploy/virt-controller", "--tail=30"},
		{"-n", install.Namespace, "logs", "-l", "kubevirt.io=virt-handler", "--tail=30", "--prefix"},
	} {
		out, err := world.kubectl.Run(ctx, args...)
		s.t.Logf("$ kubectl %s\n%s", strings.Join(args, " "), out)
		if err != nil {
			s.t.Log(err)
		}
	}
	s.t.Logf("who changed VMs and VMIs, but for their status:\n%s", s.changes())
}

// changes are the requests that changed or deleted VMs and VMIs of the namespace, from the
// audit log, each in a line.
func (s space) changes() string {
	f, err := os.Open(world.cluster.AuditLog)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	var out strings.Builder
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		var e struct {
			Verb, StageTimestamp, UserAgent string
			User                            struct{ Username string }
			ObjectRef                       struct{ Namespace, Resource, Name, Subresource string }
			ResponseStatus                  struct{ Code int }
		}
		if !bytes.Contains(lines.Bytes(), []byte(s.name)) || json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		o := e.ObjectRef
		if o.Namespace == s.name && o.Subresource == "" && strings.HasPrefix(o.Resource, "virtualmachine") && slices.Contains([]string{"update", "patch", "delete"}, e.Verb) {
			fmt.Fprintln(&out, e.StageTimestamp, e.User.Username, e.UserAgent, e.Verb, o.Resource, o.Name, e.ResponseStatus.Code)
		}
	}
	return out.String()
}

// kubectl runs kubectl in the namespace and returns what it printed.
func (s space) kubectl(args ...string) string {
	s.t.Helper()
	out, err := world.kubectl.Run(s.t.Context(), append([]string{"-n", s.name}, args...)...)
	require.NoError(s.t, err)
	return out
}

// create posts a VMI.
func (s space) create(v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	s.t.Helper()
	v.Namespace = s.name
	v, err := world.vmis.VirtualMachineInstances(s.name).Create(s.t.Context(), v, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return v
}

// get reads a VMI.
func (s space) get(name string) *vmi.VirtualMachineInstance {
	s.t.Helper()
	v, err := world.vmis.VirtualMachineInstances(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return v
}

// delete asks for the end of a VMI.
func (s space) delete(name string) {
	s.t.Helper()
	require.NoError(s.t, world.vmis.VirtualMachineInstances(s.name).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

// awaitPhase waits until the VMI is in the phase.
func (s space) awaitPhase(name string, want vmi.Phase) *vmi.VirtualMachineInstance {
	s.t.Helper()
	var v *vmi.VirtualMachineInstance
	eventually(s.t, long, func() (err error) {
		v, err = world.vmis.VirtualMachineInstances(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err // its VM has not made it yet
		}
		if v.Status.Phase != want {
			if v.Status.Phase.Final() {
				s.t.Fatalf("%s is %s (%s) and not %s", name, v.Status.Phase, v.Status.Reason, want)
			}
			return fmt.Errorf("%s is %q (%s) and not %s: %+v", name, v.Status.Phase, v.Status.Reason, want, v.Status.Conditions)
		}
		return nil
	})
	return v
}

// awaitSteady waits until the guest of the VMI has booted, and its agent is
// connected: the last change of a status without a further event.
func (s space) awaitSteady(name string) *vmi.VirtualMachineInstance {
	s.t.Helper()
	v := s.awaitPhase(name, vmi.PhaseRunning)
	eventually(s.t, long, func() error {
		if v = s.get(name); v.Status.Condition(vmi.ConditionAgentConnected) == nil {
			return fmt.Errorf("%s has no agent: %+v", name, v.Status.Conditions)
		}
		return nil
	})
	return v
}

// requireSteady requires that nothing has happened to a VMI since before. What is known of the
// guest may have become more, and a handler that was slow is noted in the times of conditions.
func requireSteady(t *testing.T, before, now *vmi.VirtualMachineInstance) {
	t.Helper()
	type steady struct {
		phase      vmi.Phase
		node       string
		evacuated  string
		pods       map[types.UID]string
		conditions []string
		times      []vmi.PhaseTransitionTimestamp
	}
	of := func(v *vmi.VirtualMachineInstance) steady {
		s := steady{v.Status.Phase, v.Status.NodeName, v.Status.EvacuationNodeName, v.Status.ActivePods, nil, v.Status.PhaseTransitionTimestamps}
		for _, c := range v.Status.Conditions {
			s.conditions = append(s.conditions, fmt.Sprint(c.Type, " ", c.Status, " ", c.Reason))
		}
		return s
	}
	require.Equal(t, of(before), of(now))
}

// awaitGone waits until the VMI and its pods are gone from the API.
func (s space) awaitGone(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		_, err := world.vmis.VirtualMachineInstances(s.name).Get(s.t.Context(), v.Name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("%s is still there", v.Name)
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		if pods := s.pods(v); len(pods) != 0 {
			return fmt.Errorf("pod %s is still there", pods[0].Name)
		}
		return nil
	})
}

// pods are the VMI's pods.
func (s space) pods(v *vmi.VirtualMachineInstance) []corev1.Pod {
	s.t.Helper()
	l, err := world.kube.CoreV1().Pods(s.name).List(s.t.Context(), metav1.ListOptions{LabelSelector: vmi.CreatedByLabel + "=" + string(v.UID)})
	require.NoError(s.t, err)
	return l.Items
}

// pod is the VMI's one pod.
func (s space) pod(v *vmi.VirtualMachineInstance) corev1.Pod {
	s.t.Helper()
	pods := s.pods(v)
	require.Len(s.t, pods, 1)
	return pods[0]
}

// podNow is the pod that the VMI's guest runs in, which may have left another one.
func (s space) podNow(v *vmi.VirtualMachineInstance) corev1.Pod {
	s.t.Helper()
	if pods := s.pods(v); len(pods) == 1 {
		return pods[0]
	}
	return s.podOf(s.get(v.Name))
}

// console is what the guest has written to its serial console so far.
func (s space) console(v *vmi.VirtualMachineInstance) string {
	s.t.Helper()
	text, err := s.readConsole(v)
	require.NoError(s.t, err)
	return text
}

// readConsole is console for who asks again after an error. It starts no kubectl, which
// takes more of a processor than most of what a test waits for.
func (s space) readConsole(v *vmi.VirtualMachineInstance) (string, error) {
	s.t.Helper()
	log := world.kube.CoreV1().Pods(s.name).GetLogs(s.podNow(v).Name, &corev1.PodLogOptions{Container: vmi.ComputeContainer})
	text, err := log.DoRaw(s.t.Context())
	return string(text), err
}

// keepConsole opens the log file of the VMI's console on its node. The
// function that it returns reads all of it, also after the pod is gone: the API
// would not give the last lines of a pod that is deleted as soon as it ends.
func (s space) keepConsole(v *vmi.VirtualMachineInstance) func() string {
	s.t.Helper()
	return s.keepConsoleIn(s.pod(v))
}

// keepConsoleIn is keepConsole for one of several pods.
func (s space) keepConsoleIn(p corev1.Pod) func() string {
	s.t.Helper()
	pid, err := world.cluster.Node(p.Spec.NodeName).PID()
	require.NoError(s.t, err)
	f, err := os.Open(fmt.Sprintf("/proc/%d/root/var/log/pods/%s_%s_%s/%s/0.log", pid, s.name, p.Name, p.UID, vmi.ComputeContainer))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = f.Close() })
	return func() string {
		s.t.Helper()
		b, err := io.ReadAll(f)
		require.NoError(s.t, err)
		return string(b)
	}
}

// awaitConsole waits until the guest has written the text.
func (s space) awaitConsole(v *vmi.VirtualMachineInstance, text string) string {
	s.t.Helper()
	return s.awaitWritten(v, strconv.Quote(text), func(console string) bool { return strings.Contains(console, text) })
}

// awaitMatches waits until the guest has written what matches, and returns each match with its
// groups. A line may be there in part.
func (s space) awaitMatches(v *vmi.VirtualMachineInstance, pattern *regexp.Regexp) [][]string {
	s.t.Helper()
	return pattern.FindAllStringSubmatch(s.awaitWritten(v, pattern.String(), pattern.MatchString), -1)
}

// awaitWritten waits until the guest has written what is asked for, and returns its console. The
// test fails with the end of the console if the VMI is Failed, or it is not written in time.
func (s space) awaitWritten(v *vmi.VirtualMachineInstance, what string, is func(console string) bool) (console string) {
	s.t.Helper()
	eventually(s.t, long, func() (err error) {
		if console, err = s.readConsole(v); err != nil || is(console) {
			return err
		}
		now, err := world.vmis.VirtualMachineInstances(s.name).Get(s.t.Context(), v.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lines := strings.Split(console, "\n")
		ready := cmp.Or(now.Status.Condition(vmi.ConditionReady), &vmi.Condition{})
		err = fmt.Errorf("the guest of %s did not write %s; it is %s: %s\n%s", v.Name, what, now.Status.Phase, ready.Message,
			strings.Join(lines[max(0, len(lines)-8):], "\n"))
		if now.UID == v.UID && now.Status.Phase == vmi.PhaseFailed {
			s.t.Fatal(err)
		}
		return err
	})
	return console
}

// awaitEvent waits until the VMI has an event with the reason.
func (s space) awaitEvent(v *vmi.VirtualMachineInstance, reason string) corev1.Event {
	s.t.Helper()
	var found corev1.Event
	eventually(s.t, soon, func() error {
		for _, e := range s.events(v) {
			if e.Reason == reason {
				found = e
				return nil
			}
		}
		return fmt.Errorf("%s has no event %s", v.Name, reason)
	})
	return found
}

// events are the events of the VMI.
func (s space) events(v *vmi.VirtualMachineInstance) []corev1.Event {
	s.t.Helper()
	l, err := world.kube.CoreV1().Events(s.name).List(s.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(v.UID)})
	require.NoError(s.t, err)
	return l.Items
}

// eventually calls do until it succeeds. The test fails with its last error
// when the time is over.
func eventually(t *testing.T, limit time.Duration, do func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := do()
		if err == nil {
			return
		}
		require.Less(t, time.Since(began), limit, "%v", err)
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		case <-time.After(testenv.Pause(began, 100*time.Millisecond)):
		}
	}
}
