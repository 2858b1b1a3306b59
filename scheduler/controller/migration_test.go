package controller

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
)

// world is an API server with a VMI on n1, whose handlers and kubelets are the test's.
type world struct {
	t    *testing.T
	api  *client.Client // that of handlers and users
	kube *kubefake.Clientset

	mu     sync.Mutex
	writes []string // of the Controller
	calls  []string
	most   int // pods that were ready at the same time
	// on is what a handler does with a call. Nil: it is done.
	on func(call protocol.Call, options any) error
}

func moving() (*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceMigration) {
	v := stored(vmi.PhaseRunning)
	v.Labels = map[string]string{vmi.NodeNameLabel: "n1"}
	v.Status.NodeName, v.Status.ActivePods = "n1", map[types.UID]string{"pod-uid": "n1"}
	v.Status.LauncherContainerImageVersion = rendering.Image
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, metav1.Now())
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: "move", UID: "m1", Finalizers: []string{vmi.MigrationFinalizer}}}
	m.Labels = map[string]string{vmi.MigrationSelectorLabel: v.Name}
	m.Spec.VMIName = v.Name
	return v, m
}

// tripped counts the writes of a client.
type tripped func(*http.Request) (*http.Response, error)

func (f tripped) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newWorld(t *testing.T, objects ...vmi.Object) (*world, *Controller) {
	t.Helper()
	source := launcher(t)
	source.Spec.NodeName = "n1"
	runsNow(source)
	setCondition(source, corev1.PodConditionType(vmi.PodConditionUnpaused), corev1.ConditionTrue)
	setCondition(source, corev1.PodReady, corev1.ConditionTrue)
	n2 := node(corev1.ConditionTrue)
	n2.Name = "n2"
	w := &world{t: t, kube: kubefake.NewClientset(source, node(corev1.ConditionTrue), n2)}
	w.kube.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		if c, ok := a.(ktesting.CreateAction); ok && a.GetVerb() == "create" { // an update is one too
			switch o := c.GetObject().(type) {
			case *corev1.Pod:
				o.UID, o.CreationTimestamp = types.UID("uid-"+o.Name), metav1.Now()
			case *corev1.PersistentVolumeClaim:
				o.UID, o.CreationTimestamp = types.UID("uid-"+o.Name), metav1.Now()
			}
		}
		switch verb := a.GetVerb(); verb {
		case "create", "patch", "delete":
			if a.GetResource().Resource != "events" {
				w.wrote(verb + " " + a.GetResource().Resource + "/" + a.GetSubresource())
			}
		}
		return false, nil, nil
	})
	s := fake.New(objects...)
	var err error
	w.api, err = client.New(s.Config())
	require.NoError(t, err)
	cfg := s.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripped(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				w.wrote(strings.ToLower(r.Method) + " " + r.URL.Path[strings.LastIndex(r.URL.Path, "virtual"):])
			}
			return next.RoundTrip(r)
		})
	})
	its, err := client.New(cfg)
	require.NoError(t, err)
	c, err := New(Config{Client: its, Kube: w.kube, Launcher: rendering, Handlers: w, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	return w, c
}

func (w *world) wrote(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, what)
}

// begin runs the Controller and the kubelets until the test ends.
func (w *world) begin(c *Controller) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			w.kubelets()
			time.Sleep(5 * time.Millisecond)
		}
	})
	w.t.Cleanup(func() { cancel(); wg.Wait() })
}

// kubelets run the pods, and say which are ready.
func (w *world) kubelets() {
	l, err := w.kube.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Error(err)
		return
	}
	ready := 0
	for i := range l.Items {
		p := &l.Items[i]
		before := p.DeepCopy()
		switch {
		case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		case p.Status.Phase != corev1.PodRunning:
			p.Spec.NodeName = "n2"
			runsNow(p)
		}
		is := corev1.ConditionFalse
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodConditionType(vmi.PodConditionUnpaused) && p.Status.Phase == corev1.PodRunning {
				is = c.Status
			}
		}
		setCondition(p, corev1.PodReady, is)
		if is == corev1.ConditionTrue {
			ready++
		}
		if podChanged(before, p) {
			_, _ = w.kube.CoreV1().Pods(p.Namespace).Update(context.Background(), p, metav1.UpdateOptions{}) // it may be gone
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = max(w.most, ready)
}

func runsNow(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	setCondition(p, corev1.ContainersReady, corev1.ConditionTrue)
}

func setCondition(p *corev1.Pod, t corev1.PodConditionType, s corev1.ConditionStatus) {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			p.Status.Conditions[i].Status = s
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: s})
}

func (w *world) Handler(_ context.Context, node, network string) (string, string, error) {
	if network != "" {
		node += " in " + network
	}
	return "certificate of " + node, "address of " + node, nil
}

func (w *world) Call(_ context.Context, v *vmi.VirtualMachineInstance, pod types.UID, call protocol.Call, options any) error {
	w.mu.Lock()
	on := w.on
	text := string(call)
	switch o := options.(type) {
	case protocol.MigrationAccept:
		text += " by " + v.Status.ActivePods[pod] + " from " + o.Certificate
	case protocol.MigrationStart:
		text += " to " + o.Node + ", " + o.Address + ", " + o.Certificate
	}
	w.calls = append(w.calls, text)
	w.mu.Unlock()
	if on == nil {
		return nil
	}
	return on(call, options)
}

// status changes the status of the VMI, as a handler does.
func (w *world) status(change func(*vmi.VirtualMachineInstanceStatus)) error {
	for {
		vmis := w.api.VirtualMachineInstances("default")
		v, err := vmis.Get(context.Background(), "testvmi", metav1.GetOptions{})
		if err != nil {
			return err
		}
		to := v.DeepCopy()
		change(&to.Status)
		if _, err = client.WriteStatus(context.Background(), vmis, v, to); err == nil {
			return nil
		}
	}
}

// source changes the pod that the VMI leaves.
func (w *world) source(change func(*corev1.Pod)) error {
	for {
		p, err := w.kube.CoreV1().Pods("default").Get(context.Background(), launcher(w.t).Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(p)
		if _, err = w.kube.CoreV1().Pods("default").Update(context.Background(), p, metav1.UpdateOptions{}); err == nil {
			return nil
		}
	}
}

func (w *world) migration() *vmi.VirtualMachineInstanceMigration {
	m, err := w.api.VirtualMachineInstanceMigrations("default").Get(context.Background(), "move", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return m
}

func (w *world) instance() *vmi.VirtualMachineInstance {
	v, err := w.api.VirtualMachineInstances("default").Get(context.Background(), "testvmi", metav1.GetOptions{})
	require.NoError(w.t, err)
	return v
}

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().Before(deadline) {
			continue
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		require.FailNow(w.t, "timeout: "+what, "%v, %v, %v", w.writes, w.calls, w.migration())
	}
}

func TestAMigrationTakesFewWrites(t *testing.T) {
	t.Parallel()
	v, m := moving()
	w, c := newWorld(t, v, m)
	w.moves()
	w.begin(c)
	w.has()

	got, is := w.migration(), w.instance()
	require.Equal(t, is.Status.MigrationState, got.Status.MigrationState)
	require.Equal(t, vmi.PhaseRunning, is.Status.Phase)
	require.NotContains(t, is.Labels, vmi.MigrationTargetNodeLabel)
	require.Equal(t, "n2", is.Status.ActivePods[types.UID("uid-"+is.Status.MigrationState.TargetPod)])
	require.Equal(t, int64(150), *is.Status.MigrationState.MigrationConfiguration.ProgressTimeout)
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Equal(t, "migration-accept by n2 from certificate of n1", w.calls[0])
	require.Equal(t, "migration-start to n2, address of n2, certificate of n2", w.calls[1])
	require.Equal(t, 1, w.most, "two pods were ready at the same time")
	// The two of the handlers and these are at most 14.
	t.Logf("%d writes: %s", len(w.writes), strings.Join(w.writes, ", "))
	require.LessOrEqual(t, len(w.writes)+2, 14, "%v", w.writes)
}

func TestHandlersAreSentWhereTheOtherIsInTheNetworkOfTheMigration(t *testing.T) {
	t.Parallel()
	v, m := moving()
	v.Status.ActivePods = map[types.UID]string{"target": "n2"}
	v.Status.MigrationState = &vmi.MigrationState{SourceNode: "n1", TargetNode: "n2", MigrationConfiguration: &vmi.MigrationConfiguration{Network: new("moves")}}
	w := &world{t: t}
	c := newMigrationCalls(w, func(string) {}, time.Now)
	c.accept(t.Context(), m, scheduler.AcceptMigration{Instance: v, Pod: "target"})
	c.wait()
	c.start(t.Context(), m, scheduler.StartMigration{Instance: v, Pod: "target"})
	c.wait()
	require.Equal(t, []string{
		"migration-accept by n2 from certificate of n1 in moves",
		"migration-start to n2, address of n2 in moves, certificate of n2 in moves",
	}, w.calls)
}

// moves makes the handlers move the guest as soon as they are asked to.
func (w *world) moves() {
	var once sync.Once
	w.on = func(call protocol.Call, _ any) error {
		if call != protocol.CallMigrationStart {
			return nil
		}
		go once.Do(func() {
			// The handlers write the start and the switch.
			_ = w.status(func(s *vmi.VirtualMachineInstanceStatus) {
				s.MigrationState.StartTimestamp, s.MigrationState.TargetNodeAddress = new(metav1.Now()), "10.0.0.2"
			})
			time.Sleep(300 * time.Millisecond)
			_ = w.status(func(s *vmi.VirtualMachineInstanceStatus) {
				s.NodeName, s.MigrationState.Completed, s.MigrationState.EndTimestamp = "n2", true, new(metav1.Now())
			})
			time.Sleep(300 * time.Millisecond)
			_ = w.source(func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodSucceeded
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "MovedAway: the guest runs in another pod"}}
			})
		})
		return nil
	}
}

// has waits until everything follows that the guest has moved.
func (w *world) has() {
	w.t.Helper()
	w.eventually("the migration has succeeded", func() bool {
		m := w.migration()
		return m.Status.Phase == vmi.MigrationPhaseSucceeded && len(m.Finalizers) == 0
	})
	w.eventually("the VMI has one pod", func() bool { return len(w.instance().Status.ActivePods) == 1 })
	w.eventually("the pod is ready", func() bool {
		p, err := w.kube.CoreV1().Pods("default").Get(w.t.Context(), w.instance().Status.MigrationState.TargetPod, metav1.GetOptions{})
		return err == nil && isReady(p)
	})
	w.eventually("the labels follow", func() bool { return w.instance().Labels[vmi.NodeNameLabel] == "n2" })
}

func TestAMigrationWithStateTakesThreeWritesMore(t *testing.T) {
	t.Parallel()
	v, m := moving()
	v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)}
	w, c := newWorld(t, v, m)
	claims := w.kube.CoreV1().PersistentVolumeClaims(v.Namespace)
	held := pod.StateClaim(v, pod.Config{})
	_, err := claims.Create(t.Context(), held, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, w.source(func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "vm-state", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: held.Name},
		}})
	}))
	w.writes = nil
	w.moves()
	w.begin(c)
	w.has()
	w.eventually("there is one claim", func() bool {
		l, err := claims.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(l.Items) == 1 && l.Items[0].Labels[vmi.StateLabel] == v.Name && l.Items[0].Labels[vmi.MigrationNameLabel] == ""
	})
	_, err = claims.Get(t.Context(), w.instance().Status.MigrationState.TargetPersistentStatePVCName, metav1.GetOptions{})
	require.NoError(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	var onClaims []string
	for _, is := range w.writes {
		if strings.Contains(is, "persistentvolumeclaims") {
			onClaims = append(onClaims, is)
		}
	}
	require.Equal(t, []string{"create persistentvolumeclaims/", "patch persistentvolumeclaims/", "delete persistentvolumeclaims/"}, onClaims)
}

func TestAMigrationThatIsDeletedIsAbortedByTheHandlerOfTheSource(t *testing.T) {
	t.Parallel()
	v, m := moving()
	w, c := newWorld(t, v, m)
	w.on = func(call protocol.Call, _ any) error {
		switch call {
		case protocol.CallMigrationStart:
			return w.status(func(s *vmi.VirtualMachineInstanceStatus) {
				if s.MigrationState.StartTimestamp == nil {
					s.MigrationState.StartTimestamp, s.MigrationState.TargetNodeAddress = new(metav1.Now()), "10.0.0.2"
				}
			})
		case protocol.CallMigrationAbort:
			return w.status(func(s *vmi.VirtualMachineInstanceStatus) {
				ms := s.MigrationState
				ms.Failed, ms.Completed, ms.FailureReason, ms.AbortStatus = true, true, "Live migration has been aborted", vmi.MigrationAbortSucceeded
			})
		}
		return nil
	}
	w.begin(c)
	w.eventually("memory is sent", func() bool { return w.migration().Status.Phase == vmi.MigrationPhaseRunning })
	require.NoError(t, w.api.VirtualMachineInstanceMigrations("default").Delete(t.Context(), "move", metav1.DeleteOptions{}))
	w.eventually("the migration is gone", func() bool { return w.migration() == nil })
	w.eventually("the target is gone", func() bool {
		l, err := w.kube.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(l.Items) == 1
	})
	w.eventually("the VMI has one pod", func() bool { return len(w.instance().Status.ActivePods) == 1 })
	is := w.instance()
	require.Equal(t, "n1", is.Status.NodeName)
	require.Equal(t, vmi.PhaseRunning, is.Status.Phase)
	require.True(t, is.Status.MigrationState.AbortRequested)
	w.eventually("the label is gone", func() bool { return w.instance().Labels[vmi.MigrationTargetNodeLabel] == "" })
}

func TestMigrationsBeginWithinTheLimits(t *testing.T) {
	t.Parallel()
	v, first := moving()
	objects := []vmi.Object{v, first}
	w, c := newWorld(t, objects...)
	var all []*vmi.VirtualMachineInstanceMigration
	for i, name := range []string{"a", "b", "c", "d"} {
		other, m := moving()
		other.Name, other.UID, other.Status.ActivePods = name, types.UID(name), map[types.UID]string{types.UID("pod-" + name): "n1"}
		m.Name, m.UID, m.Spec.VMIName = "of-"+name, types.UID("m-"+name), name
		m.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
		p := launcher(t)
		p.Name, p.UID, p.Spec.NodeName = "virt-launcher-"+name, types.UID("pod-"+name), "n1"
		p.OwnerReferences[0].Name, p.OwnerReferences[0].UID, p.Labels[vmi.CreatedByLabel] = name, other.UID, name
		runsNow(p)
		require.NoError(t, c.caches.instances.GetIndexer().Add(other))
		require.NoError(t, c.caches.pods.GetIndexer().Add(p))
		require.NoError(t, c.migrations.loop.cached.GetIndexer().Add(m))
		all = append(all, m)
	}
	require.Empty(t, w.calls)
	var began []string
	for _, m := range []*vmi.VirtualMachineInstanceMigration{all[3], all[1], all[0], all[2]} {
		if c.takesPlace(m) {
			began = append(began, m.Name)
		}
	}
	require.Equal(t, []string{"of-b", "of-a"}, began, "two leave a node, the oldest first, whichever is asked for first")
	require.True(t, c.takesPlace(all[0]), "a place is kept")
	c.migrations.granted.Delete("m-a")
	ended := all[0].DeepCopy()
	ended.Status.Phase = vmi.MigrationPhaseFailed
	require.NoError(t, c.migrations.loop.cached.GetIndexer().Update(ended))
	require.Equal(t, []string{"default/of-c"}, c.nextMigrations())
}
