package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// elsewhere is the API server of an installation in another namespace.
type elsewhere struct {
	t       *testing.T
	cluster *cluster.Cluster
	config  *rest.Config
	kube    kubernetes.Interface
	// manifests is the folder that was applied.
	manifests string
}

const otherNamespace = "podvisor-elsewhere"

// installElsewhere applies the manifests to an API server of their own with this
// name, with the namespace and these lines set by an overlay, and nothing else.
func installElsewhere(t *testing.T, name string, lines ...string) elsewhere {
	t.Helper()
	testenv.Root(t)
	c, err := cluster.Up(t.Context(), cluster.Config{Name: clusterName + "-" + name, Extent: plan.APIServer, Out: os.Stdout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Down(context.Background())) })
	dir := t.TempDir()
	require.NoError(t, overlay(dir, "namespace: "+otherNamespace+"\n"+strings.Join(lines, "")))
	e := elsewhere{t: t, cluster: c, manifests: dir}
	out, err := e.kubectl("apply", "--server-side", "-k", dir)
	require.NoError(t, err, out)
	e.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	require.NoError(t, err)
	e.kube, err = kubernetes.NewForConfig(e.config)
	require.NoError(t, err)
	admin, err := client.New(e.config)
	require.NoError(t, err)
	// For some seconds the API server refuses an object of a new kind that a policy changes.
	eventually(t, func() error {
		v, err := admin.VirtualMachineInstances("default").Create(t.Context(), guest("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && !slices.Contains(v.Finalizers, vmi.Finalizer) {
			err = errors.New("the policy of finalizers is not in force")
		}
		return err
	})
	return e
}

func (e elsewhere) kubectl(args ...string) (string, error) {
	out, err := exec.CommandContext(e.t.Context(), e.cluster.Kubectl, append([]string{"--kubeconfig", e.cluster.Kubeconfig}, args...)...).CombinedOutput()
	return string(out), err
}

// as is the account of this name in the namespace; on a node, if one is named.
func (e elsewhere) as(namespace, account, node string) *rest.Config {
	cfg := rest.CopyConfig(e.config)
	cfg.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + account
	if node != "" {
		cfg.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	return cfg
}

func (e elsewhere) kubeAs(namespace, account, node string) kubernetes.Interface {
	k, err := kubernetes.NewForConfig(e.as(namespace, account, node))
	require.NoError(e.t, err)
	return k
}

// writeStatus writes a status of a VMI on node n1, as the account.
func (e elsewhere) writeStatus(v *vmi.VirtualMachineInstance, cfg *rest.Config) error {
	c, err := client.New(cfg)
	require.NoError(e.t, err)
	_, err = c.VirtualMachineInstances(v.Namespace).Patch(e.t.Context(), v.Name, types.MergePatchType,
		[]byte(`{"status":{"nodeName":"n1","reason":"Tested"}}`), metav1.PatchOptions{}, "status")
	return err
}

// The namespace of the installation is in no policy: what the accounts of
// Podvisor may do is limited wherever they are, and an account that only has
// their name gains nothing.
func TestAttackAnInstallationInAnotherNamespaceIsHeldToTheSame(t *testing.T) {
	t.Parallel()
	e := installElsewhere(t, "ns")
	admin, err := client.New(e.config)
	require.NoError(t, err)
	vmis := admin.VirtualMachineInstances("default")
	for _, name := range []string{"n1", "n2"} {
		_, err := e.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	patchNode := func(account, node, patch string) error {
		_, err := e.kubeAs(otherNamespace, account, "n1").CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	var v *vmi.VirtualMachineInstance
	tries := 0
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		labelled := guest("vm")
		attackable(labelled)
		created, err := vmis.Create(t.Context(), labelled, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			created, err = vmis.Get(t.Context(), "vm", metav1.GetOptions{})
		}
		require.NoError(c, err)
		reserved := guest("labelled")
		reserved.Labels = map[string]string{vmi.CreatedByLabel: "x"}
		_, err = vmis.Create(t.Context(), reserved, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.True(c, apierrors.IsInvalid(err), "%v", err)
		// Each try changes something: the first ones may be permitted.
		tries++
		err = patchNode("virt-handler", "n1", fmt.Sprintf(`{"metadata":{"labels":{"a":"try-%d"}}}`, tries))
		require.True(c, apierrors.IsForbidden(err), "the policies are not all in force: %v", err)
		v = created
	}, timeout, 100*time.Millisecond)
	_, err = e.kube.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	forbidden := func(err error, message string) {
		t.Helper()
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, message)
	}

	// The accounts do their work.
	require.NoError(t, e.writeStatus(v, e.as(otherNamespace, "virt-controller", "")))
	require.NoError(t, patchNode("virt-handler", "n1", `{"metadata":{"labels":{"kubevirt.io/schedulable":"true"}}}`))

	// And no more than that.
	forbidden(patchNode("virt-handler", "n2", `{"metadata":{"labels":{"kubevirt.io/schedulable":"true"}}}`), "may not change another node")
	forbidden(patchNode("virt-handler", "n1", `{"metadata":{"labels":{"a":"b"}}}`), "only those labels of a node")
	require.NoError(t, e.writeStatus(v, e.as(otherNamespace, "virt-handler", "n1")))
	forbidden(e.writeStatus(v, e.as(otherNamespace, "virt-handler", "n2")), "the handler of node n2 may not change")
	_, err = e.kubeAs(otherNamespace, "virt-controller", "").CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "any"},
		Spec:       corev1.PodSpec{AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "c", Image: "example/c"}}},
	}, metav1.CreateOptions{})
	forbidden(err, "virt-controller may make")

	// Every attack on the usual installation is refused here too.
	eventually(t, func() error {
		_, err := e.kubeAs(otherNamespace, "virt-controller", "").CoreV1().Pods("default").Create(t.Context(), launcherOf(t, "default"), dryRun)
		if err == nil || !strings.Contains(err.Error(), `"owned.virt-controller.kubevirt.io"`) {
			return fmt.Errorf("the policies do not permit a launcher yet: %w", err)
		}
		return nil
	})
	attack(t, e.config, otherNamespace, "default")
	forgeEvents(t, e.config, otherNamespace, "default")
	changeVMIs(t, e.config, otherNamespace, v)
	bare := launcherOf(t, "default")
	_, err = e.kube.CoreV1().Pods("default").Create(t.Context(), bare, dryRun)
	forbidden(err, "by virt-controller only")

	// An account of the same name in a tenant's namespace, whatever its roles.
	for _, account := range []string{"virt-controller", "virt-handler"} {
		_, err := e.kube.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "virt-controller"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			err := e.writeStatus(v, e.as("default", account, "n1"))
			require.ErrorContains(c, err, "written by Podvisor only")
		}, timeout, 100*time.Millisecond)
		_, err = e.kubeAs("default", account, "n1").CoreV1().Pods("default").Create(t.Context(), bare, dryRun)
		forbidden(err, "virt-controller")
		own, err := client.New(e.as("default", account, "n1"))
		require.NoError(t, err)
		_, err = own.VirtualMachineInstances("default").Patch(t.Context(), v.Name, types.MergePatchType,
			[]byte(`{"spec":{"terminationGracePeriodSeconds":7}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, "cannot be changed")
	}
}
