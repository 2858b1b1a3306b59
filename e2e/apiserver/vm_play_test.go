package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/e2e/simulate"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// vmOf is a VM that the API server accepts.
func vmOf(name string, s vmi.RunStrategy, change ...vmitest.Option) *vmi.VirtualMachine {
	v := vmitest.NewVM(s, append([]vmitest.Option{vmitest.WithName(name), vmitest.WithMasquerade("default"), vmitest.WithContainerDisk("root", "example/fedora:40")}, change...)...)
	v.UID, v.Namespace, v.Generation = "", "", 0
	return v
}

func (s space) vms() client.VirtualMachines { return world.vmis.VirtualMachines(s.name) }

func (s space) createVM(v *vmi.VirtualMachine) *vmi.VirtualMachine {
	s.t.Helper()
	v, err := s.vms().Create(s.t.Context(), v, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return v
}

// editVM patches the VM as a user does.
func (s space) editVM(name, patch string) *vmi.VirtualMachine {
	s.t.Helper()
	v, err := s.vms().Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
	return v
}

func (s space) deleteVM(name string, p metav1.DeletionPropagation) {
	s.t.Helper()
	require.NoError(s.t, s.vms().Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &p}))
}

// awaitVM waits until ok is true for the VM.
func (s space) awaitVM(name string, ok func(*vmi.VirtualMachine) bool) *vmi.VirtualMachine {
	s.t.Helper()
	var v *vmi.VirtualMachine
	eventually(s.t, func() error {
		var err error
		if v, err = s.vms().Get(s.t.Context(), name, metav1.GetOptions{}); err == nil && !ok(v) {
			err = fmt.Errorf("the VM is not as expected: %+v, writes: %q", v.Status, s.writes.all())
		}
		return err
	})
	return v
}

func (s space) awaitPrintable(name string, p vmi.PrintableStatus) *vmi.VirtualMachine {
	s.t.Helper()
	return s.awaitVM(name, func(v *vmi.VirtualMachine) bool { return v.Status.PrintableStatus == p })
}

func (s space) awaitVMGone(name string) {
	s.t.Helper()
	eventually(s.t, func() error {
		v, err := s.vms().Get(s.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("VM %s is still there: %+v: %w", name, v, err)
	})
}

// ask writes requests as the calls start, stop and restart do: to the status, as
// virt-controller.
func (s space) ask(name string, requests ...vmi.StateChangeRequest) {
	s.t.Helper()
	c, err := client.New(withToken(s.t, world.config, home, "virt-controller"))
	require.NoError(s.t, err)
	eventually(s.t, func() error {
		v, err := s.vms().Get(s.t.Context(), name, metav1.GetOptions{})
		require.NoError(s.t, err)
		changed := v.DeepCopy()
		changed.Status.StateChangeRequests = append(changed.Status.StateChangeRequests, requests...)
		_, err = client.WriteStatus(s.t.Context(), c.VirtualMachines(s.name), v, changed)
		return err
	})
}

func startRequest(data map[string]string) vmi.StateChangeRequest {
	return vmi.StateChangeRequest{Action: vmi.StartRequest, Data: data}
}

func stopRequest(v *vmi.VirtualMachineInstance) vmi.StateChangeRequest {
	return vmi.StateChangeRequest{Action: vmi.StopRequest, UID: new(v.UID)}
}

// asTheController makes the clients of a controller those of virt-controller's own
// token.
func (s space) asTheController(wrap func(http.RoundTripper) http.RoundTripper) func(*controller.Config) {
	s.t.Helper()
	cfg := withToken(s.t, world.config, home, "virt-controller")
	cfg.Wrap(wrap)
	return func(c *controller.Config) { c.Client, c.Kube = clientsOf(s.t, cfg) }
}

func clientsOf(t require.TestingT, cfg *rest.Config) (*client.Client, kubernetes.Interface) {
	vmis, err := client.New(cfg)
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	return vmis, kube
}

// controlVMs runs a controller with virt-controller's own token.
func (s space) controlVMs() (stop func()) {
	s.t.Helper()
	return s.control(s.asTheController(func(next http.RoundTripper) http.RoundTripper { return counter{next, s.writes} }))
}

// nodes plays the nodes, the scheduler and the garbage collector for a namespace: each
// VMI comes to run, and powers off when it is deleted.
type nodes struct {
	s    space
	mine client.VirtualMachineInstances // as the handler of n1
	// hold says at which phase a VMI stays. Nil: at none.
	hold atomic.Pointer[vmi.Phase]
	// stuck holds deleted guests.
	stuck atomic.Bool
	// fail makes launchers end before their guests run.
	fail atomic.Bool

	mu sync.Mutex
	// made are the UIDs of the VMIs that there were, in their order.
	made []types.UID
}

func (s space) play() *nodes {
	s.t.Helper()
	c, err := client.New(asHandler("n1"))
	require.NoError(s.t, err)
	n := &nodes{s: s, mine: c.VirtualMachineInstances(s.name)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = n.step(ctx) // conflicts: the next step sees what there is
			time.Sleep(10 * time.Millisecond)
		}
	})
	s.t.Cleanup(func() { cancel(); wg.Wait() })
	return n
}

// at stops new VMIs at this phase. "" lets them run.
func (n *nodes) at(p vmi.Phase) {
	if p == "" {
		n.hold.Store(nil)
		return
	}
	n.hold.Store(&p)
}

func (n *nodes) instances() []types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.made)
}

func (n *nodes) note(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.made, uid) {
		n.made = append(n.made, uid)
	}
}

func (n *nodes) step(ctx context.Context) error {
	pods, err := n.s.pods.List(ctx, metav1.ListOptions{}) // before the VMIs, or one of a new VMI seems to have none
	if err != nil {
		return err
	}
	l, err := n.s.vmis.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	alive := map[types.UID]bool{}
	for i := range l.Items {
		alive[l.Items[i].UID] = true
		n.note(l.Items[i].UID)
		errs = append(errs, n.instance(ctx, &l.Items[i]))
	}
	for i := range pods.Items {
		errs = append(errs, n.pod(ctx, &pods.Items[i], alive))
	}
	return errors.Join(append(errs, n.collect(ctx, l.Items))...)
}

func (n *nodes) instance(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	if hold := n.hold.Load(); hold != nil && v.Status.Phase == *hold && v.DeletionTimestamp == nil {
		return nil
	}
	switch {
	case v.Status.Phase == vmi.PhaseScheduled && v.DeletionTimestamp == nil:
		return simulate.Report(ctx, n.mine, v, vmi.PhaseRunning)
	case (v.Status.Phase == vmi.PhaseRunning || v.Status.Phase == vmi.PhaseScheduled) && v.DeletionTimestamp != nil && !n.stuck.Load():
		return simulate.Report(ctx, n.mine, v, vmi.PhaseSucceeded)
	}
	return nil
}

// ends writes the end of a guest.
func (n *nodes) ends(name string, p vmi.Phase) {
	n.s.t.Helper()
	eventually(n.s.t, func() error {
		v, err := n.s.vmis.Get(n.s.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return simulate.Report(n.s.t.Context(), n.mine, v, p)
	})
}

// pod is what the scheduler and the kubelet do.
func (n *nodes) pod(ctx context.Context, p *corev1.Pod, alive map[types.UID]bool) error {
	owner := metav1.GetControllerOfNoCopy(p)
	hold := n.hold.Load()
	switch {
	case p.DeletionTimestamp != nil, owner != nil && !alive[owner.UID]:
		return n.s.pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	case hold != nil && *hold == vmi.PhaseScheduling:
		return nil
	case p.Spec.NodeName == "":
		return n.s.pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}, metav1.CreateOptions{})
	case p.Status.Phase == corev1.PodPending && n.fail.Load():
		exited(1, metav1.Now(), "CannotStart: no such disk")(&p.Status)
		_, err := n.s.pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		return err
	case p.Status.Phase == corev1.PodPending:
		running(&p.Status)
		_, err := n.s.pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		return err
	}
	return nil
}

// collect is what the garbage collector does.
func (n *nodes) collect(ctx context.Context, instances []vmi.VirtualMachineInstance) error {
	revisions, err := world.kube.AppsV1().ControllerRevisions(n.s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	vms, err := n.s.vms().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	owners := map[types.UID]*vmi.VirtualMachine{}
	for i := range vms.Items {
		owners[vms.Items[i].UID] = &vms.Items[i]
	}
	left := map[types.UID]int{}
	var errs []error
	for i := range instances {
		v := &instances[i]
		errs = append(errs, n.dependent(owners, left, v, func(o metav1.DeleteOptions) error { return n.s.vmis.Delete(ctx, v.Name, o) }, func(patch []byte) error {
			_, err := n.s.vmis.Patch(ctx, v.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}))
	}
	for i := range revisions.Items {
		r := &revisions.Items[i]
		all := world.kube.AppsV1().ControllerRevisions(n.s.name)
		errs = append(errs, n.dependent(owners, left, r, func(o metav1.DeleteOptions) error { return all.Delete(ctx, r.Name, o) }, func(patch []byte) error {
			_, err := all.Patch(ctx, r.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}))
	}
	for _, v := range owners {
		f := slices.DeleteFunc(slices.Clone(v.Finalizers), func(f string) bool {
			return left[v.UID] == 0 && (f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents)
		})
		if v.DeletionTimestamp == nil || len(f) == len(v.Finalizers) {
			continue
		}
		changed := v.DeepCopy()
		changed.Finalizers = f
		_, err := n.s.vms().Update(ctx, changed, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// dependent deletes or orphans what a VM owned, and counts what is left of it.
func (n *nodes) dependent(owners map[types.UID]*vmi.VirtualMachine, left map[types.UID]int, o metav1.Object, remove func(metav1.DeleteOptions) error, patch func([]byte) error) error {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.Kind != vmi.VirtualMachines.Kind {
		return nil
	}
	owner := owners[ref.UID]
	switch {
	case owner == nil, owner.DeletionTimestamp != nil && slices.Contains(owner.Finalizers, metav1.FinalizerDeleteDependents):
		left[ref.UID]++
		if o.GetDeletionTimestamp() != nil {
			return nil
		}
		return remove(metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID()))})
	case owner.DeletionTimestamp != nil && slices.Contains(owner.Finalizers, metav1.FinalizerOrphanDependents):
		left[ref.UID]++
		return patch(fmt.Appendf(nil, `{"metadata":{"uid":%q,"ownerReferences":null}}`, o.GetUID()))
	}
	return nil
}

// revisions are the names of the start revisions of the namespace.
func (s space) revisions() []appsv1.ControllerRevision {
	s.t.Helper()
	l, err := world.kube.AppsV1().ControllerRevisions(s.name).List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	return l.Items
}

// errKilled is what a controller that was killed gets for a request.
var errKilled = errors.New("the process was killed")

// mortal lets a number of writes through. The answer to the last one is lost, and so is
// everything after it.
type mortal struct {
	next http.RoundTripper
	left *atomic.Int64
	died func()
}

func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return m.next.RoundTrip(r)
	}
	left := m.left.Add(-1)
	if left < 0 {
		return nil, errKilled
	}
	resp, err := m.next.RoundTrip(r)
	if left == 0 {
		if err == nil {
			_ = resp.Body.Close()
		}
		m.died()
		return nil, errKilled
	}
	return resp, err
}

// controlBriefly runs one controller after the other, each of which is killed after so
// many writes, until the test ends.
func (s space) controlBriefly(writes int64) (lives *atomic.Int64) {
	s.t.Helper()
	cfg := withToken(s.t, world.config, home, "virt-controller")
	lives = &atomic.Int64{}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	life := func() {
		ctx, die := context.WithCancel(ctx)
		defer die()
		var left atomic.Int64
		left.Store(writes)
		own := rest.CopyConfig(cfg)
		own.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return mortal{counter{next, s.writes}, &left, die}
		})
		c := controller.Config{Home: home, Namespace: s.name, Launcher: pod.Launcher{Image: "podvisor/virt-launcher:v1", AllowEmulation: true}}
		c.Client, c.Kube = clientsOf(s.t, own)
		k, err := controller.New(c)
		require.NoError(s.t, err)
		lives.Add(1)
		_ = k.Run(ctx) // it has ended
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			life()
		}
	})
	s.t.Cleanup(func() { cancel(); wg.Wait() })
	return lives
}
