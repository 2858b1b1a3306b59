package apiserver

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// nodeSide does for all VMIs of a namespace what the scheduler, the kubelet,
// virt-handler and, for pods, the garbage collector do.
type nodeSide struct {
	space
	handler client.Instances
	mu      sync.Mutex
	fails   bool
}

// playNode plays the node side until the test ends.
func (s space) playNode() *nodeSide {
	s.t.Helper()
	c, err := client.New(asHandler("n1"))
	require.NoError(s.t, err)
	n := &nodeSide{space: s, handler: c.VirtualMachineInstances(s.name)}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			n.step(ctx)
			time.Sleep(50 * time.Millisecond)
		}
	})
	s.t.Cleanup(func() { stop(); wg.Wait() })
	return n
}

// launchersFail says whether launchers end with an error from now on.
func (n *nodeSide) launchersFail(fail bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fails = fail
}

// step does one thing for each pod and VMI. What does not succeed is done in a later
// step.
func (n *nodeSide) step(ctx context.Context) {
	pods, err := n.pods.List(ctx, metav1.ListOptions{LabelSelector: vmi.AppLabel + "=" + vmi.LauncherApp})
	if err != nil {
		return
	}
	vmis, err := n.vmis.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	owned := map[string]bool{}
	for i := range vmis.Items {
		v := &vmis.Items[i]
		owned[pod.Name(v)] = true
		n.handle(ctx, v)
	}
	for i := range pods.Items {
		n.run(ctx, &pods.Items[i], owned)
	}
}

func (n *nodeSide) handle(ctx context.Context, v *vmi.VirtualMachineInstance) {
	changed := v.DeepCopy()
	switch {
	case v.Status.NodeName == "" || v.Status.Phase.Final():
		return
	case v.DeletionTimestamp != nil:
		changed.Status.SetPhase(vmi.Succeeded, metav1.Now())
	case v.Status.Phase == vmi.Scheduled:
		changed.Status.SetPhase(vmi.Running, metav1.Now())
		changed.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, metav1.Now())
	}
	_, _ = client.WriteStatus(ctx, n.handler, v, changed)
}

func (n *nodeSide) run(ctx context.Context, p *corev1.Pod, owned map[string]bool) {
	n.mu.Lock()
	fails := n.fails
	n.mu.Unlock()
	switch {
	case p.DeletionTimestamp != nil || !owned[p.Name]:
		_ = n.pods.Delete(ctx, p.Name, atOnce)
	case p.Spec.NodeName == "":
		err := n.pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
		}, metav1.CreateOptions{})
		if apierrors.IsConflict(err) {
			return
		}
	case p.Status.Phase == corev1.PodPending && fails:
		exited(1, metav1.Now(), "CannotStart: no such disk")(&p.Status)
		_, _ = n.pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	case p.Status.Phase == corev1.PodPending:
		running(&p.Status)
		_, _ = n.pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	}
}
