package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
)

// TestAKindIsARegistration adds a kind to a Controller: its definition and its
// decision.
func TestAKindIsARegistration(t *testing.T) {
	t.Parallel()
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "migration-uid"}}
	api, err := client.New(fake.New(m).Config())
	require.NoError(t, err)
	kube := kubefake.NewClientset()
	c, err := New(Config{Client: api, Kube: kube, Pods: rendering})
	require.NoError(t, err)

	_, err = register(c, registration[*vmi.VirtualMachineInstanceMigration, *vmi.VirtualMachineInstanceMigrationList]{
		definition: vmi.VirtualMachineInstanceMigrations, finalizer: vmi.Finalizer,
		name:     "virt-controller-migration",
		describe: func(*vmi.VirtualMachineInstanceMigration) []any { return nil },
		observe: func(context.Context, *vmi.VirtualMachineInstanceMigration) (decide[*vmi.VirtualMachineInstanceMigration], error) {
			return func(o *vmi.VirtualMachineInstanceMigration, _ *vmi.Finding) scheduler.Plan {
				if len(o.Finalizers) > 0 {
					return scheduler.Plan{}
				}
				changed := o.DeepCopy()
				changed.Status.Phase = vmi.MigrationPending
				return scheduler.Plan{Actions: []scheduler.Action{
					scheduler.AddFinalizer{},
					scheduler.WriteStatus[*vmi.VirtualMachineInstanceMigration]{Object: changed},
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
		return err == nil && len(l.Items) == 1 && l.Items[0].InvolvedObject.Kind == "VirtualMachineInstanceMigration"
	}, 30*time.Second, 5*time.Millisecond)
	stored, err := api.VirtualMachineInstanceMigrations("default").Get(ctx, "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{vmi.Finalizer}, stored.Finalizers)
	require.Equal(t, vmi.MigrationPending, stored.Status.Phase)
}

func TestAStatusOfAnotherKindIsAnUnknownAction(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(""))
	_, err := r.instances.act(t.Context(), r.server.vmi, scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmi.VirtualMachine]{}}})
	require.ErrorContains(t, err, "unknown action scheduler.WriteStatus")
}
