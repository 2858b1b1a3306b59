package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/client/informer"
)

// TestAKindIsARegistration adds a kind to a Controller: its clients, its cache and
// its decision.
func TestAKindIsARegistration(t *testing.T) {
	t.Parallel()
	vm := &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "vm-uid"}}
	api, err := client.New(fake.New(vm).Config())
	require.NoError(t, err)
	kube := kubefake.NewClientset()
	c, err := New(Config{Client: api, Kube: kube, Pods: rendering})
	require.NoError(t, err)

	vms := informer.New(api.VirtualMachines(""), informer.Selection{})
	require.NoError(t, reconcile.Cache(&c.caches.Caches, vms, reconcile.Cached[*vmi.VirtualMachine]{}))
	_, err = register(c, registration[*vmi.VirtualMachine, *vmi.VirtualMachineList]{
		name: "virt-controller-vm", cached: vms, in: api.VirtualMachines,
		describe: func(*vmi.VirtualMachine) []any { return nil },
		observe: func(context.Context, *vmi.VirtualMachine) (decide[*vmi.VirtualMachine], error) {
			return func(o *vmi.VirtualMachine, _ *vmi.Finding) scheduler.Plan {
				if len(o.Finalizers) > 0 {
					return scheduler.Plan{}
				}
				created := o.DeepCopy()
				created.Status.Created = true
				return scheduler.Plan{Actions: []scheduler.Action{
					scheduler.AddFinalizer{},
					scheduler.WriteStatus[*vmi.VirtualMachine]{Object: created},
					scheduler.Emit{Finding: vmi.Finding{Reason: "Observed"}},
				}}
			}, nil
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	defer func() { cancel(); require.NoError(t, <-done) }()
	require.Eventually(t, func() bool {
		l, err := kube.CoreV1().Events("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(l.Items) == 1 && l.Items[0].InvolvedObject.Kind == "VirtualMachine"
	}, 30*time.Second, 5*time.Millisecond)
	stored, err := api.VirtualMachines("default").Get(ctx, "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{vmi.Finalizer}, stored.Finalizers)
	require.True(t, stored.Status.Created)
}

func TestAStatusOfAnotherKindIsAnUnknownAction(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(""))
	_, err := r.instances.act(t.Context(), r.server.vmi, scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmi.VirtualMachine]{}}})
	require.ErrorContains(t, err, "unknown action scheduler.WriteStatus")
}
