package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/applyconfiguration"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// Kinds of Kubernetes' own that the operator has besides.
var (
	leases = vmi.Define[coordinationv1.Lease, coordinationv1.LeaseList](vmi.Definition{
		GroupVersionKind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Plural: "leases",
	})
	configMaps = vmi.Define[corev1.ConfigMap, corev1.ConfigMapList](vmi.Definition{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: "configmaps",
	})
)

const finalizer = "operator.example.com/notes"

// notes keeps a ConfigMap with the phase of each VM, as an operator does.
type notes struct{ client.Client }

func (n notes) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var vm vmi.VirtualMachine
	if err := n.Get(ctx, r.NamespacedName, &vm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	note := &corev1.ConfigMap{}
	note.Name, note.Namespace = vm.Name, vm.Namespace
	if vm.DeletionTimestamp != nil {
		controllerutil.RemoveFinalizer(&vm, finalizer)
		return ctrl.Result{}, n.Update(ctx, &vm)
	}
	if controllerutil.AddFinalizer(&vm, finalizer) {
		return ctrl.Result{}, n.Update(ctx, &vm)
	}
	_, err := controllerutil.CreateOrUpdate(ctx, n, note, func() error {
		note.Data = map[string]string{"status": string(vm.Status.PrintableStatus)}
		return controllerutil.SetControllerReference(&vm, note, n.Scheme())
	})
	return ctrl.Result{}, err
}

func TestAManagerOfControllerRuntimeWorksUnmodified(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, vmi.AddToScheme(scheme))
	s := fake.Serving([]vmi.Definition{leases.Definition, configMaps.Definition}, vmitest.NewVM(vmi.RunHalted))
	m, err := ctrl.NewManager(s.Config(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "notes.example.com", LeaderElectionNamespace: "default",
	})
	require.NoError(t, err)
	require.NoError(t, ctrl.NewControllerManagedBy(m).For(&vmi.VirtualMachine{}).Owns(&corev1.ConfigMap{}).Complete(notes{m.GetClient()}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()

	c, err := client.New(s.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	key := client.ObjectKey{Namespace: "default", Name: "testvmi"}
	var note corev1.ConfigMap
	noted := func(want string) func() bool {
		return func() bool { return c.Get(ctx, key, &note) == nil && note.Data["status"] == want }
	}
	require.Eventually(t, noted(""), time.Minute, 10*time.Millisecond)
	require.Equal(t, "VirtualMachine", note.OwnerReferences[0].Kind)

	var vm vmi.VirtualMachine
	require.NoError(t, c.Get(ctx, key, &vm))
	vm.Status.PrintableStatus = "Running"
	require.NoError(t, c.Status().Update(ctx, &vm))
	require.Eventually(t, noted("Running"), time.Minute, 10*time.Millisecond)

	require.NoError(t, c.Delete(ctx, &vm))
	require.Eventually(t, func() bool { return apierrors.IsNotFound(c.Get(ctx, key, &vm)) }, time.Minute, 10*time.Millisecond)

	desired := applyconfiguration.VirtualMachine("applied", "default").WithSpec(applyconfiguration.VirtualMachineSpec().WithRunStrategy(vmi.RunHalted))
	require.NoError(t, c.Apply(ctx, desired, client.FieldOwner("notes")))
	require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "applied"}, &vm))
	require.Equal(t, vmi.RunHalted, *vm.Spec.RunStrategy)

	// A kind that the server does not serve is not one whose objects are not found.
	require.Error(t, client.IgnoreNotFound(c.Get(ctx, key, &corev1.Secret{})))
}
