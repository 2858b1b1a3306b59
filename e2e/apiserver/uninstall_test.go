package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/scheduler/authority"
	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// serveUninstalls answers what virt-controller answers to the deletion of Podvisor,
// and keeps what virt-certificates keeps, each with its rights.
func (e elsewhere) serveUninstalls() *admission.Serving {
	t := e.t
	t.Helper()
	kube := e.kubeAs(otherNamespace, "virt-controller", "")
	meta, err := metadata.NewForConfig(e.as(otherNamespace, "virt-controller", ""))
	require.NoError(t, err)
	ownMeta, err := metadata.NewForConfig(e.as(otherNamespace, "virt-certificates", ""))
	require.NoError(t, err)
	kept, err := authority.New(authority.Config{Kube: e.kubeAs(otherNamespace, "virt-certificates", ""), Metadata: ownMeta, Namespace: otherNamespace})
	require.NoError(t, err)
	certificates, err := admission.NewServing(admission.ServingConfig{Kube: kube, Namespace: otherNamespace})
	require.NoError(t, err)
	l := listenInCluster(t, e.cluster.Name)
	_, err = e.kube.DiscoveryV1().EndpointSlices(otherNamespace).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "virt-controller", Labels: map[string]string{discoveryv1.LabelServiceName: "virt-controller"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.ControlPlane.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("webhooks"), Port: new(int32(l.Addr().(*net.TCPAddr).Port))}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	mux := http.NewServeMux()
	for at, h := range certificates.AtSecretPaths(map[string]http.Handler{admission.UninstallPath: admission.Uninstalls{
		Kube: kube, Metadata: meta, Namespace: otherNamespace, Hold: certificates.Hold,
	}}) {
		mux.Handle(at, h)
	}
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = kept.Run(ctx) })
	wg.Go(func() { _ = certificates.Run(ctx) })
	wg.Go(func() { _ = server.Serve(tls.NewListener(l, &tls.Config{GetCertificate: certificates.Certificate})) })
	t.Cleanup(func() { cancel(); _ = server.Close(); wg.Wait() })
	eventually(t, certificates.Ready)
	return certificates
}

// deleteNamespace deletes the namespace that Podvisor is installed in.
func (e elsewhere) deleteNamespace(dryRun ...string) error {
	return e.kube.CoreV1().Namespaces().Delete(e.t.Context(), otherNamespace, metav1.DeleteOptions{DryRun: dryRun})
}

func TestPodvisorIsNotDeletedUnderVMIs(t *testing.T) {
	t.Parallel()
	e := installElsewhere(t, "uninstall", longTimeout("uninstall.parts.virt-controller.kubevirt.io"))
	admin, err := client.New(e.config)
	require.NoError(t, err)
	vmis := admin.VirtualMachineInstances("default")
	eventually(t, func() error {
		_, err := vmis.Create(t.Context(), guest("kept"), metav1.CreateOptions{})
		return err
	})
	require.ErrorContains(t, e.deleteNamespace(metav1.DryRunAll), "failed calling webhook", "while virt-controller does not answer")

	certificates := e.serveUninstalls()
	const refusal = "VirtualMachineInstance default/kept would be left without Podvisor"
	eventually(t, func() error {
		if err := e.deleteNamespace(metav1.DryRunAll); !apierrors.IsConflict(err) {
			return errors.Join(errors.New("the deletion is not reviewed yet"), err)
		}
		return nil
	})
	manifests, err := e.kubectl("kustomize", e.manifests)
	require.NoError(t, err)
	parts := 0
	for manifest := range strings.SplitSeq(manifests, "\n---\n") {
		if !strings.HasPrefix(manifest, "apiVersion: admissionregistration.k8s.io/") && !strings.Contains(manifest, "\nkind: ConfigMap\n") {
			parts++
		}
	}
	// Nothing can refuse the deletion of the webhooks themselves: they stay in force by
	// a finalizer.
	for _, args := range [][]string{{"--dry-run=server"}, {"--wait=false"}, {"--wait=false", "--ignore-not-found"}} {
		out, err := e.kubectl(append([]string{"delete", "-k", e.manifests}, args...)...)
		require.Error(t, err)
		require.Equal(t, parts, strings.Count(out, refusal), out)
	}
	require.True(t, certificates.Guarded())
	out, err := e.kubectl("apply", "--server-side", "-k", e.manifests)
	require.NoError(t, err, out)
	require.True(t, apierrors.IsConflict(e.deleteNamespace(metav1.DryRunAll)))

	// What only looks like a part of Podvisor may be deleted.
	other := metav1.ObjectMeta{Name: "other", Labels: map[string]string{vmi.AppLabel: ""}}
	_, err = e.kube.CoreV1().Services("default").Create(t.Context(), &corev1.Service{ObjectMeta: other, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, e.kube.CoreV1().Services("default").Delete(t.Context(), "other", metav1.DeleteOptions{}))
	_, err = e.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: other}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, e.kube.CoreV1().Namespaces().Delete(t.Context(), "other", metav1.DeleteOptions{}))

	// A VM that is off is kept too: with its definition it would be gone.
	vms := admin.VirtualMachines("default")
	m := vmitest.NewVM(vmi.RunHalted)
	m.ObjectMeta = metav1.ObjectMeta{Name: "off"}
	_, err = vms.Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)

	// Without VMs and VMIs, virt-handler ends first.
	require.NoError(t, vmis.Delete(t.Context(), "kept", metav1.DeleteOptions{}))
	_, err = vmis.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	for _, args := range [][]string{{"crd", "virtualmachines.kubevirt.io"}, {"crd", "virtualmachineinstances.kubevirt.io"}, {"namespace", otherNamespace}} {
		out, err := e.kubectl(append([]string{"delete", "--wait=false"}, args...)...)
		require.Error(t, err)
		require.Contains(t, out, "VirtualMachine default/off would be left without Podvisor: delete them first (kubectl delete vm,vmirs,vmi --all --all-namespaces)")
	}
	require.NoError(t, vms.Delete(t.Context(), "off", metav1.DeleteOptions{}))
	_, err = vms.Patch(t.Context(), "off", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, e.deleteNamespace(metav1.DryRunAll))
	daemonSets := e.kube.AppsV1().DaemonSets(otherNamespace)
	_, err = daemonSets.Get(t.Context(), "virt-handler", metav1.GetOptions{})
	require.NoError(t, err, "after a dry run")
	require.NoError(t, e.deleteNamespace())
	_, err = daemonSets.Get(t.Context(), "virt-handler", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	eventually(t, func() error {
		if certificates.Guarded() {
			return errors.New("the webhooks still exist")
		}
		return nil
	})
}

func TestTheControllerDeletesNoDaemonSetButVirtHandler(t *testing.T) {
	t.Parallel()
	newSpace(t)
	kube, err := kubernetes.NewForConfig(asController())
	require.NoError(t, err)
	err = kube.AppsV1().DaemonSets(home).Delete(t.Context(), "other", metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	err = kube.AppsV1().DaemonSets("default").Delete(t.Context(), "virt-handler", metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestVMIsHaveNoFinalizerWhileNothingKeepsPodvisorFromBeingDeleted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	var guarded atomic.Bool
	guarded.Store(true)
	s.control(func(c *controller.Config) { c.Guarded = guarded.Load })
	s.start("before")
	m, _ := s.owners()
	require.Equal(t, []string{vmi.VMFinalizer}, m.Finalizers)
	require.Equal(t, []string{vmi.Finalizer}, s.await("before", func(*vmi.VirtualMachineInstance) bool { return true }).Finalizers)
	guarded.Store(false)
	change := []byte(`{"metadata":{"labels":{"changed":"yes"}}}`)
	_, err := world.vmis.VirtualMachines(s.name).Patch(t.Context(), m.Name, types.MergePatchType, change, metav1.PatchOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		m, err := world.vmis.VirtualMachines(s.name).Get(t.Context(), m.Name, metav1.GetOptions{})
		if err == nil && len(m.Finalizers) > 0 {
			err = fmt.Errorf("the VM has the finalizers %v", m.Finalizers)
		}
		return err
	})
	_, err = s.vmis.Patch(t.Context(), "before", types.MergePatchType, change, metav1.PatchOptions{})
	require.NoError(t, err)
	s.start("after")
	for _, name := range []string{"before", "after"} {
		s.await(name, func(v *vmi.VirtualMachineInstance) bool {
			return len(v.Finalizers) == 0 && v.Status.Phase == vmi.PhaseRunning
		})
		s.delete(name)
		_, err := s.vmis.Get(t.Context(), name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	}
}
