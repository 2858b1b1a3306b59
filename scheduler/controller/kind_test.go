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

func TestAKindIsItsEntry(t *testing.T) {
	t.Parallel()
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "migration-uid"}}
	api, err := client.New(fake.New(m).Config())
	require.NoError(t, err)
	kube := kubefake.NewClientset()
	c, err := New(Config{Client: api, Kube: kube, Launcher: rendering, Kinds: []Kind{KindOf[*vmi.VirtualMachineInstanceMigration, *vmi.VirtualMachineInstanceMigrationList]{
		Definition: vmi.VirtualMachineInstanceMigrations, Name: "example-migration",
		Observe: func(context.Context, *Controller, *vmi.VirtualMachineInstanceMigration) (Decide[*vmi.VirtualMachineInstanceMigration], error) {
			return func(o *vmi.VirtualMachineInstanceMigration, _ *vmi.Finding) scheduler.Plan {
				if len(o.Finalizers) > 0 {
					return scheduler.Plan{}
				}
				changed := o.DeepCopy()
				changed.Status.Phase = vmi.MigrationPhasePending
				return scheduler.Plan{Actions: []scheduler.Action{
					scheduler.AddFinalizer{Finalizer: vmi.Finalizer},
					scheduler.WriteStatus[*vmi.VirtualMachineInstanceMigration]{Object: changed},
					scheduler.Emit{Finding: vmi.Finding{Reason: "Observed"}},
				}}
			}, nil
		},
	}}})
	require.NoError(t, err)
	delete(c.kinds, moves.Name) // the kind is the test's
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	defer func() { cancel(); require.NoError(t, <-done) }()
	require.Eventually(t, func() bool {
		l, err := kube.CoreV1().Events("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(l.Items) == 1 && l.Items[0].InvolvedObject.Kind == "VirtualMachineInstanceMigration"
	}, time.Minute, 5*time.Millisecond)
	stored, err := api.VirtualMachineInstanceMigrations("default").Get(ctx, "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{vmi.Finalizer}, stored.Finalizers)
	require.Equal(t, vmi.MigrationPhasePending, stored.Status.Phase)
}

func TestAnEntryThatIsNotWholeOrNotTheOnlyOneIsRefused(t *testing.T) {
	t.Parallel()
	type entry = KindOf[*vmi.VirtualMachineInstanceMigration, *vmi.VirtualMachineInstanceMigrationList]
	observe := func(context.Context, *Controller, *vmi.VirtualMachineInstanceMigration) (Decide[*vmi.VirtualMachineInstanceMigration], error) {
		return nil, nil
	}
	for name, tt := range map[string]struct {
		kinds []Kind
		want  string
	}{
		"without a definition":     {[]Kind{entry{Name: "a", Observe: observe}}, `controller.KindOf "a" (): set Definition`},
		"without a name":           {[]Kind{entry{Definition: vmi.VirtualMachineInstanceMigrations, Observe: observe}}, ": set Name"},
		"without Observe":          {[]Kind{entry{Definition: vmi.VirtualMachineInstanceMigrations, Name: "a"}}, ": set Observe"},
		"twice":                    {[]Kind{entry{Definition: vmi.VirtualMachineInstanceMigrations, Name: "a", Observe: observe}, entry{Definition: vmi.VirtualMachineInstanceMigrations, Name: "a", Observe: observe}}, "set another Name, there is a loop a already"},
		"with the name of another": {[]Kind{entry{Definition: vmi.VirtualMachineInstanceMigrations, Name: "virt-controller-vmi", Observe: observe}}, "set another Name, there is a loop virt-controller-vmi already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, err := client.New(fake.New().Config())
			require.NoError(t, err)
			_, err = New(Config{Client: api, Kube: kubefake.NewClientset(), Launcher: rendering, Kinds: tt.kinds})
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAStatusOfAnotherKindIsAnUnknownAction(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(""))
	_, err := r.instances.act(t.Context(), r.server.vmi, scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmi.VirtualMachine]{}}})
	require.ErrorContains(t, err, "unknown action scheduler.WriteStatus")
}
