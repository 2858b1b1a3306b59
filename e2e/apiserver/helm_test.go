package apiserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/e2e/chart"
	"github.com/podvisor/podvisor/e2e/chart/charttest"
	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi/client"
)

// released is an API server in which Podvisor is a release of Helm, in [otherNamespace]. The
// release is recorded in the namespace default.
type released struct {
	elsewhere
	helm charttest.Helm
}

// newReleased starts the API server of the program, or of the toolchain.
func newReleased(t *testing.T, name, apiServer string) released {
	t.Helper()
	testenv.Root(t)
	c, err := cluster.Up(t.Context(), cluster.Config{Name: clusterName + "-" + name, Extent: plan.APIServer, APIServer: apiServer, Out: os.Stdout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Down(context.Background())) })
	r := released{elsewhere{t: t, cluster: c}, charttest.New(t, c.Kubeconfig)}
	r.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	require.NoError(t, err)
	r.kube, err = kubernetes.NewForConfig(r.config)
	require.NoError(t, err)
	return r
}

func referenceOf(version string) func(string) string {
	return func(component string) string { return "registry.example/podvisor/" + component + ":" + version }
}

// chart is the archive of a version with these manifests.
func (r released) chart(version, manifests string) string {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), chart.File(version))
	require.NoError(r.t, chart.Write(file, chart.Config{Version: version, Manifests: manifests, Reference: referenceOf(version)}))
	return file
}

const earlierName = "earlier"

// earlierManifests are those of a version that lacked a policy, and had a definition with
// another name of its kind.
func (r released) earlierManifests() string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "manifests")
	require.NoError(r.t, os.CopyFS(dir, os.DirFS("../../manifests")))
	for file, change := range map[string][2]string{
		"kustomization.yaml": {"- policies/attach.yaml\n", ""},
		"crds/migrations.kubevirt.io_migrationpolicies.yaml": {"    kind: MigrationPolicy\n", "    kind: MigrationPolicy\n    shortNames: [" + earlierName + "]\n"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(r.t, err)
		require.Equal(r.t, 1, strings.Count(string(text), change[0]), file)
		require.NoError(r.t, os.WriteFile(filepath.Join(dir, file), []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600))
	}
	return dir
}

// state is what the tests look at.
type state struct {
	launcher, permitted string
	replicas            int32
	// emulation is as virt-handler has it.
	emulation string
	// attach says that there is the policy that the earlier version lacks.
	attach bool
	// names are the short names of the definition that changed.
	names string
}

func (r released) state() state {
	t := r.t
	t.Helper()
	d, err := r.kube.AppsV1().Deployments(otherNamespace).Get(t.Context(), "virt-controller", metav1.GetOptions{})
	require.NoError(t, err)
	s := state{replicas: *d.Spec.Replicas}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "LAUNCHER_IMAGE" {
			s.launcher = e.Value
		}
	}
	h, err := r.kube.AppsV1().DaemonSets(otherNamespace).Get(t.Context(), "virt-handler", metav1.GetOptions{})
	require.NoError(t, err)
	for _, e := range h.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "ALLOW_EMULATION" {
			s.emulation = e.Value
		}
	}
	policies := r.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	p, err := policies.Get(t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
	require.NoError(t, err)
	s.permitted = strings.Trim(p.Spec.Variables[0].Expression, "'")
	_, err = policies.Get(t.Context(), "attach.kubevirt.io", metav1.GetOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	s.attach = err == nil
	s.names, err = r.kubectl("get", "crd", "migrationpolicies.migrations.kubevirt.io", "-o", "jsonpath={.spec.names.shortNames[*]}")
	require.NoError(t, err)
	return s
}

// size is how many bytes the largest record of the release has.
func (r released) size() (largest int) {
	r.t.Helper()
	list, err := r.kube.CoreV1().Secrets("default").List(r.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	require.NoError(r.t, err)
	require.NotEmpty(r.t, list.Items)
	for _, s := range list.Items {
		size := 0
		for _, value := range s.Data {
			size += len(value)
		}
		largest = max(largest, size)
	}
	return largest
}

// template is what kubectl makes of the objects by the second command of the page.
var template = regexp.MustCompile(`(?m)^    kubectl get -f FOLDER/podvisor.yaml -o go-template='(.*)' \| kubectl apply --server-side -f -$`)

// takeOver applies the manifests, and makes a release of them as docs/helm.md says.
func (r released) takeOver(version, manifests string) {
	t := r.t
	t.Helper()
	dir, err := install.Overlay(install.Config{Manifests: manifests, Reference: referenceOf(version), Into: otherNamespace, Components: r.components()})
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, err)
	out, err := r.kubectl("apply", "--server-side", "-k", dir)
	require.NoError(t, err, out)
	before, err := r.kube.AppsV1().Deployments(otherNamespace).Get(t.Context(), "virt-controller", metav1.GetOptions{})
	require.NoError(t, err)

	args := []string{"install", "podvisor", r.chart(version, manifests), "--set=namespace=" + otherNamespace}
	out, err = r.helm.Try(args...)
	require.Error(t, err)
	require.Contains(t, out, "exists and cannot be imported into the current release")
	r.helm.Run(append(args, "--take-ownership", "--force-conflicts")...)
	page, err := os.ReadFile("../../docs/helm.md")
	require.NoError(t, err)
	shown := template.FindStringSubmatch(string(page))
	require.NotNil(t, shown, "docs/helm.md")
	identities, err := r.kubectl("get", "-k", dir, "-o", "go-template="+shown[1])
	require.NoError(t, err, identities)
	file := filepath.Join(t.TempDir(), "identities.yaml")
	require.NoError(t, os.WriteFile(file, []byte(identities), 0o600))
	out, err = r.kubectl("apply", "--server-side", "-f", file)
	require.NoError(t, err, out)

	after, err := r.kube.AppsV1().Deployments(otherNamespace).Get(t.Context(), "virt-controller", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, before.Spec, after.Spec, "its pods are not replaced")
}

// writeEndpoints writes the endpoints of virt-controller as API servers before 1.33 read them.
func (r released) writeEndpoints() {
	t := r.t
	t.Helper()
	slice, err := r.kube.DiscoveryV1().EndpointSlices(otherNamespace).Get(t.Context(), "virt-controller", metav1.GetOptions{})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "endpoints.yaml")
	text := fmt.Sprintf("apiVersion: v1\nkind: Endpoints\nmetadata: {name: virt-controller, namespace: %s}\nsubsets:\n- addresses: [{ip: %s}]\n  ports: [{name: webhooks, port: %d}]\n",
		otherNamespace, slice.Endpoints[0].Addresses[0], *slice.Ports[0].Port)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := r.kubectl("apply", "-f", file)
	require.NoError(t, err, out)
}

// components are those of the overlays that the API server needs.
func (r released) components() []string {
	v, err := r.kube.Discovery().ServerVersion()
	require.NoError(r.t, err)
	if v.Minor == "32" {
		return []string{"kubernetes-1.32"}
	}
	return nil
}

func TestHelmInstallsUpgradesRollsBackAndUninstalls(t *testing.T) {
	t.Parallel()
	helmKeepsVMs(newReleased(t, "helm", ""))
}

// helmKeepsVMs is one release in steps.
func helmKeepsVMs(r released) {
	t := r.t
	r.takeOver("v1.0.0", r.earlierManifests())
	first := state{launcher: referenceOf("v1.0.0")("virt-launcher"), replicas: 2, emulation: "false", names: earlierName}
	first.permitted = first.launcher
	require.Equal(t, first, r.state())

	admin, err := client.New(r.config)
	require.NoError(t, err)
	vmis := admin.VirtualMachineInstances("default")
	eventually(t, func() error {
		_, err := vmis.Create(t.Context(), guest("kept"), metav1.CreateOptions{})
		return err
	})
	before, err := vmis.Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)
	stays := func() {
		t.Helper()
		v, err := vmis.Get(t.Context(), "kept", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, before.UID, v.UID)
		require.Nil(t, v.DeletionTimestamp)
	}
	certificates := r.serveUninstalls()
	r.writeEndpoints()

	// An upgrade changes all that is other, the definitions too, and nothing that
	// virt-certificates wrote.
	newest := r.chart("v2.0.0", "../../manifests")
	upgrade := []string{"upgrade", "podvisor", newest, "--reset-then-reuse-values", "--set=virtController.replicas=3", "--set=emulation=true"}
	r.helm.Run(upgrade...)
	second := state{launcher: referenceOf("v2.0.0")("virt-launcher"), replicas: 3, emulation: "true", attach: true}
	second.permitted = second.launcher
	require.Equal(t, second, r.state())
	stays()
	hooks, err := r.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
	require.NoError(t, err)
	for _, h := range hooks.Webhooks {
		require.NotEmpty(t, h.ClientConfig.CABundle, h.Name)
	}
	size := r.size()
	t.Logf("the largest record of the release has %d bytes", size)
	require.Less(t, size, 1<<20*3/4, "a Secret has at most 1 MiB")

	// What was changed by hand is named, and kept but by force.
	out, err := r.kubectl("-n", otherNamespace, "set", "env", "deployment/virt-controller", "POD_FIELDS=spec.dnsConfig")
	require.NoError(t, err, out)
	out, err = r.helm.Try(upgrade...)
	require.Error(t, err)
	require.Contains(t, out, `conflict with "kubectl-set"`)
	r.helm.Run(append(upgrade, "--force-conflicts")...)

	// A rollback is an upgrade to the earlier version.
	r.helm.Run("rollback", "podvisor", "1")
	require.Equal(t, first, r.state())
	stays()
	r.helm.Run(upgrade...)
	require.Equal(t, second, r.state())

	// An uninstall deletes nothing while there are VMIs.
	eventually(t, func() error {
		if err := r.deleteNamespace(metav1.DryRunAll); !apierrors.IsConflict(err) {
			return fmt.Errorf("the deletion is not reviewed yet: %w", err)
		}
		return nil
	})
	// What VMs run without may be left out.
	r.helm.Run(append(upgrade, "--set=monitoring.enabled=true,monitoring.dashboard.enabled=true")...)
	watched := []string{"service/kubevirt-prometheus-metrics", "secret/podvisor-metrics", "serviceaccount/podvisor-metrics", "configmap/podvisor-dashboard",
		"clusterrole/podvisor-metrics", "clusterrolebinding/podvisor-metrics"}
	out, err = r.kubectl(append([]string{"-n", otherNamespace, "get"}, watched...)...)
	require.NoError(t, err, out)
	r.helm.Run("rollback", "podvisor")
	for _, gone := range watched {
		out, err := r.kubectl("-n", otherNamespace, "get", gone)
		require.Error(t, err)
		require.Contains(t, out, "NotFound")
	}
	require.Equal(t, second, r.state())
	for range 2 {
		out, err = r.helm.Try("uninstall", "podvisor")
		require.Error(t, err)
		require.Contains(t, out, "VirtualMachineInstance default/kept would be left without Podvisor")
		require.Equal(t, second, r.state())
		require.Contains(t, r.helm.Run("status", "podvisor"), "STATUS: deployed")
	}
	hooks, err = r.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, hooks.DeletionTimestamp)
	// Nor without the ConfigMap, as after an installation without hooks. Helm then takes the
	// release for one that is being uninstalled, until a rollback.
	out, err = r.kubectl("--as=system:serviceaccount:kube-system:namespace-controller", "-n", otherNamespace, "delete", "configmap", "virt-controller-uninstall")
	require.NoError(t, err, out)
	out, err = r.helm.Try("uninstall", "podvisor")
	require.Error(t, err)
	require.Contains(t, out, "VirtualMachineInstance default/kept would be left without Podvisor")
	require.Equal(t, second, r.state())
	r.helm.Run("rollback", "podvisor")
	r.helm.Run(upgrade...)
	require.Equal(t, second, r.state())
	stays()

	require.NoError(t, vmis.Delete(t.Context(), "kept", metav1.DeleteOptions{}))
	_, err = vmis.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	r.helm.Run("uninstall", "podvisor")
	for _, gone := range []string{
		"daemonset/virt-handler", "deployment/virt-controller", "validatingadmissionpolicy/virt-controller.kubevirt.io", "clusterrole/virt-handler",
		"mutatingwebhookconfiguration/virt-controller.kubevirt.io", "apiservice/v1.subresources.kubevirt.io",
	} {
		out, err := r.kubectl("-n", otherNamespace, "get", gone)
		require.Error(t, err)
		require.Contains(t, out, "NotFound")
	}
	deleted, err := r.kubectl("get", "namespace", otherNamespace, "-o", "jsonpath={.metadata.deletionTimestamp}")
	require.NoError(t, err)
	require.NotEmpty(t, deleted)
	definitions, err := r.kubectl("get", "crd", "virtualmachines.kubevirt.io", "migrationpolicies.migrations.kubevirt.io", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}")
	require.NoError(t, err, "they are kept")
	require.Empty(t, definitions)
	out, err = r.helm.Try("status", "podvisor")
	require.Error(t, err)
	require.Contains(t, out, "not found")
	eventually(t, func() error {
		if certificates.Guarded() {
			return fmt.Errorf("the webhooks still exist")
		}
		return nil
	})
}
