package uninstall

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/e2e/kubectl"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// limit is how long a thing may take on a busy host.
const limit = 2 * time.Minute

// world is a cluster with Podvisor in it.
type world struct {
	t       *testing.T
	cluster *cluster.Cluster
	config  install.Config
	kube    kubernetes.Interface
	vmis    client.VirtualMachineInstances
}

func newWorld(t *testing.T) *world {
	t.Helper()
	testenv.Root(t)
	name := cmp.Or(os.Getenv("CLUSTER"), "test") + "-uninstall"
	c, err := cluster.Up(t.Context(), cluster.Config{Name: name, Out: os.Stdout})
	require.NoError(t, err)
	if os.Getenv("KEEP") == "" {
		t.Cleanup(func() { require.NoError(t, c.Down(context.Background())) })
	}
	built, err := images.Build(t.Context(), images.Config{Out: os.Stdout})
	require.NoError(t, err)
	require.NoError(t, c.Load(t.Context(), images.Tars(built)...))
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	require.NoError(t, err)
	w := &world{t: t, cluster: c, config: install.Config{
		Kubectl: kubectl.Kubectl{Path: c.Kubectl, Kubeconfig: c.Kubeconfig}, Manifests: "../../manifests",
		Reference: images.Reference, Emulation: true, Content: images.Content(built), Out: os.Stdout,
	}}
	w.kube, err = kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	vmis, err := client.New(cfg)
	require.NoError(t, err)
	w.vmis = vmis.VirtualMachineInstances("default")
	t.Cleanup(func() {
		if t.Failed() {
			w.explain()
		}
	})
	return w
}

func (w *world) explain() {
	for _, args := range [][]string{
		{"get", "ns,nodes,crd,clusterroles,clusterrolebindings", "-l", "kubevirt.io"},
		{"get", "vmi,pods", "-A", "-o", "wide"},
		{"-n", install.Namespace, "get", "all"},
		{"-n", install.Namespace, "logs", "-l", "kubevirt.io=virt-controller", "--tail=30", "--prefix"},
		{"-n", install.Namespace, "logs", "-l", "kubevirt.io=virt-certificates", "--tail=30", "--prefix"},
		{"-n", install.Namespace, "logs", "-l", "kubevirt.io=virt-handler", "--tail=30", "--prefix"},
	} {
		out, err := w.config.Kubectl.Run(context.Background(), args...)
		w.t.Logf("$ kubectl %s\n%s%v", strings.Join(args, " "), out, err)
	}
}

// step logs how long a step took.
func (w *world) step(what string, do func()) {
	w.t.Helper()
	began := time.Now()
	do()
	w.t.Logf("%-60s %s", what, time.Since(began).Round(100*time.Millisecond))
}

func (w *world) eventually(do func() error) {
	w.t.Helper()
	end := time.Now().Add(limit)
	for {
		err := do()
		if err == nil {
			return
		}
		require.False(w.t, time.Now().After(end), "%v", err)
		time.Sleep(100 * time.Millisecond)
	}
}

// kubectl runs kubectl and returns what it printed.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := w.config.Kubectl.Run(w.t.Context(), args...)
	require.NoError(w.t, err)
	return out
}

// start makes a VMI and waits until its guest runs.
func (w *world) start(name string) {
	w.t.Helper()
	v := vmitest.New(vmitest.WithName(name), vmitest.WithContainerDisk("root", images.Reference("demo-guest")), vmitest.WithMasquerade("default"))
	v.UID, v.Namespace = "", ""
	v.Spec.TerminationGracePeriodSeconds = new(int64(5)) // a guest that still boots does not power off
	_, err := w.vmis.Create(w.t.Context(), v, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.awaitRunning(name)
}

func (w *world) awaitRunning(name string) {
	w.t.Helper()
	w.eventually(func() error {
		v, err := w.vmis.Get(w.t.Context(), name, metav1.GetOptions{})
		if err == nil && v.Status.Phase != vmi.PhaseRunning {
			err = fmt.Errorf("%s is %s: %+v", name, v.Status.Phase, v.Status.Conditions)
		}
		return err
	})
}

// requireClean checks that no node shows that Podvisor was there, but for the
// resources, which are Kubernetes' own: it has none of them to give.
func (w *world) requireClean() {
	w.t.Helper()
	nodes, err := w.kube.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	require.NotEmpty(w.t, nodes.Items)
	for _, n := range nodes.Items {
		for _, have := range []map[string]string{n.Labels, n.Annotations} {
			for k := range have {
				require.NotContains(w.t, k, "kubevirt.io", n.Name)
			}
		}
		for _, dir := range []string{"/var/run/cdi", "/var/lib/kubelet/device-plugins"} {
			out, err := w.cluster.Node(n.Name).Command(w.t.Context(), "ls", dir).CombinedOutput()
			require.NoError(w.t, err, "%s", out)
			require.NotContains(w.t, string(out), "kubevirt", n.Name)
		}
	}
	w.eventually(func() error {
		nodes, err := w.kube.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
		for _, n := range nodes.Items {
			if q := n.Status.Allocatable[vmi.TunResource]; !q.IsZero() {
				err = fmt.Errorf("node %s still has %s %s", n.Name, q.String(), vmi.TunResource)
			}
		}
		return err
	})
}

// requireGone checks that nothing of the manifests is in the cluster, nor a pod of a
// VMI.
func (w *world) requireGone() {
	w.t.Helper()
	_, err := w.kube.CoreV1().Namespaces().Get(w.t.Context(), install.Namespace, metav1.GetOptions{})
	require.True(w.t, apierrors.IsNotFound(err), "%v", err)
	out := w.kubectl("get", "crd,apiservices,flowschemas,clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations,"+
		"validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings", "-o", "name")
	require.NotContains(w.t, out, "kubevirt")
	require.NotContains(w.t, out, "virt-certificates")
	require.NotContains(w.t, out, "virt-controller")
	w.eventually(func() error {
		pods, err := w.kube.CoreV1().Pods("default").List(w.t.Context(), metav1.ListOptions{LabelSelector: vmi.AppLabel})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("pod %s is still there", pods.Items[0].Name)
		}
		return err
	})
}

func TestPodvisorIsDeletedAsItIsInstalled(t *testing.T) {
	w := newWorld(t)
	w.step("install", func() { require.NoError(t, install.Install(t.Context(), w.config)) })
	// Nothing is applied again until all is deleted.
	require.NoError(t, install.Slow(t.Context(), w.kube, func(name string) bool { return strings.HasPrefix(name, "uninstall.parts.") }))
	w.step("start a VMI", func() { w.start("first") })
	w.step("delete -k is refused while there is a VMI", func() {
		err := install.Delete(t.Context(), w.config)
		require.ErrorContains(t, err, "VirtualMachineInstance default/first would be left without Podvisor: delete them first (kubectl delete vm,vmirs,vmi --all --all-namespaces)")
		for _, part := range []string{
			`namespaces "kubevirt"`, `customresourcedefinitions.apiextensions.k8s.io "virtualmachineinstances.kubevirt.io"`, `serviceaccounts "virt-handler"`,
			`clusterroles.rbac.authorization.k8s.io "virt-handler"`, `rolebindings.rbac.authorization.k8s.io "virt-controller"`, `secrets "virt-controller-certificates"`,
			`deployments.apps "virt-controller"`, `daemonsets.apps "virt-handler"`, `deployments.apps "virt-certificates"`, `secrets "virt-certificates"`,
			`serviceaccounts "virt-certificates"`, `apiservices.apiregistration.k8s.io "v1.subresources.kubevirt.io"`, `flowschemas.flowcontrol.apiserver.k8s.io "kubevirt-streams"`,
			`clusterroles.rbac.authorization.k8s.io "virt-certificates"`,
		} {
			require.ErrorContains(t, err, part)
		}
	})
	w.step("delete -k is refused again, and everything still works", func() {
		require.ErrorContains(t, install.Delete(t.Context(), w.config), "VirtualMachineInstance default/first would be left without Podvisor")
		w.awaitRunning("first")
		w.start("second")
	})
	w.step("delete the VMIs", func() { w.kubectl("delete", "vm,vmirs,vmi", "--all", "--all-namespaces") })
	w.step("delete -k without VMIs", func() {
		require.NoError(t, install.Delete(t.Context(), w.config))
		w.requireGone()
		w.requireClean()
	})

	w.step("install again", func() { require.NoError(t, install.Install(t.Context(), w.config)) })
	w.step("start a VMI", func() { w.start("third") })
	w.step("force the deletion, as docs/operations.md says", func() {
		require.Error(t, install.Delete(t.Context(), w.config))
		w.kubectl("delete", "--ignore-not-found", "--wait=false", "validatingwebhookconfiguration", "virt-controller.kubevirt.io")
		w.kubectl("patch", "validatingwebhookconfiguration", "virt-controller.kubevirt.io", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		w.kubectl("-n", install.Namespace, "delete", "daemonset", "virt-handler")
		w.kubectl("-n", install.Namespace, "wait", "--for=delete", "pod", "-l", "kubevirt.io=virt-handler", "--timeout=5m")
		w.eventually(func() error {
			left := w.kubectl("get", "vm,vmi", "--all-namespaces", "-o", "jsonpath={.items[*].metadata.finalizers}")
			if left != "" {
				return fmt.Errorf("VMIs have the finalizers %s", left)
			}
			return nil
		})
		require.NoError(t, install.Delete(t.Context(), w.config))
		w.kubectl("delete", "pods", "--all-namespaces", "-l", vmi.AppLabel+"="+vmi.LauncherApp)
		w.requireGone()
		w.requireClean()
	})

	w.step("delete the namespace alone", func() {
		require.NoError(t, install.Install(t.Context(), w.config))
		w.kubectl("delete", "namespace", install.Namespace, "--timeout=5m")
		// Deletions of namespaces are finished only while every API answers.
		w.kubectl("create", "namespace", "short")
		w.kubectl("delete", "namespace", "short", "--timeout=5m")
		w.requireClean()
	})

	w.step("install once more and start a VMI", func() {
		require.NoError(t, install.Install(t.Context(), w.config))
		w.start("fourth")
		v, err := w.vmis.Get(t.Context(), "fourth", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{vmi.Finalizer}, v.Finalizers)
	})
}
