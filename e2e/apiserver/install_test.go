package apiserver

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/testenv"
)

// fresh is an API server without Podvisor.
type fresh struct {
	t       *testing.T
	cluster *cluster.Cluster
	kube    kubernetes.Interface
}

func newFresh(t *testing.T, name string) fresh {
	t.Helper()
	testenv.Root(t)
	c, err := cluster.Up(t.Context(), cluster.Config{Name: clusterName + "-" + name, Extent: plan.APIServer, Out: os.Stdout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Down(context.Background())) })
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	return fresh{t, c, kube}
}

func (b fresh) kubectl(args ...string) (string, error) {
	out, err := exec.CommandContext(b.t.Context(), b.cluster.Kubectl, append([]string{"--kubeconfig", b.cluster.Kubeconfig}, args...)...).CombinedOutput()
	return string(out), err
}

// release is the folder of an overlay with the images of the tag, as the comment of
// kustomization.yaml shows it, with further lines.
func (b fresh) release(tag, further string) string {
	b.t.Helper()
	text, err := os.ReadFile("../../manifests/kustomization.yaml")
	require.NoError(b.t, err)
	var overlay strings.Builder
	for line := range strings.Lines(string(text)) {
		if shown, ok := strings.CutPrefix(line, "#   "); ok {
			overlay.WriteString(shown)
		}
	}
	manifests, err := filepath.Abs("../../manifests")
	require.NoError(b.t, err)
	dir := b.t.TempDir()
	base, err := filepath.Rel(dir, manifests)
	require.NoError(b.t, err)
	require.NoError(b.t, os.CopyFS(filepath.Join(dir, "images"), os.DirFS("../../manifests/overlays/images")))
	named := filepath.Join(dir, "images", "images.yaml")
	images, err := os.ReadFile(named)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(named, []byte(strings.ReplaceAll(string(images), ":v1\n", ":"+tag+"\n")), 0o600))
	shown := strings.ReplaceAll(overlay.String(), "../manifests", base)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"+shown+further), 0o600))
	return dir
}

// environment is what virt-controller's Deployment sets, and its image.
func (b fresh) environment() map[string]string {
	b.t.Helper()
	d, err := b.kube.AppsV1().Deployments("kubevirt").Get(b.t.Context(), "virt-controller", metav1.GetOptions{})
	require.NoError(b.t, err)
	c := d.Spec.Template.Spec.Containers[0]
	require.Empty(b.t, c.EnvFrom)
	out := map[string]string{"image": c.Image}
	for _, e := range c.Env {
		out[e.Name] = e.Value
	}
	return out
}

// launcher is the image of the launcher that the policy permits.
func (b fresh) launcher() string {
	b.t.Helper()
	p, err := b.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(b.t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
	require.NoError(b.t, err)
	require.Equal(b.t, "launcher", p.Spec.Variables[0].Name)
	return strings.Trim(p.Spec.Variables[0].Expression, "'")
}

// configMaps are those of the installation.
func (b fresh) configMaps() []corev1.ConfigMap {
	b.t.Helper()
	l, err := b.kube.CoreV1().ConfigMaps("kubevirt").List(b.t.Context(), metav1.ListOptions{})
	require.NoError(b.t, err)
	return l.Items
}

// TestTheManifestsInstallAndUpgrade is one installation in steps. That the command
// of README and kustomization.yaml installs in one go, all tests here show: they
// begin with it.
func TestTheManifestsInstallAndUpgrade(t *testing.T) {
	t.Parallel()
	b := newFresh(t, "install")
	apply := func(t *testing.T, args ...string) string {
		t.Helper()
		said, err := b.kubectl(append([]string{"apply"}, args...)...)
		require.NoError(t, err, said)
		return said
	}
	refused := func(t *testing.T, dir string) string {
		t.Helper()
		said, err := b.kubectl("apply", "--server-side", "-k", dir)
		require.Error(t, err)
		return said
	}
	t.Run("the manifests permit the launcher that they name", func(t *testing.T) {
		apply(t, "-k", "../../manifests")
		require.Equal(t, "podvisor/virt-launcher", b.environment()["LAUNCHER_IMAGE"])
		require.Equal(t, "podvisor/virt-launcher", b.launcher())
	})
	t.Run("the overlay that the comment of kustomization.yaml shows sets what it says", func(t *testing.T) {
		apply(t, "-k", b.release("v1", ""))
		require.Equal(t, map[string]string{
			"image":          "registry.example/podvisor/virt-controller:v1",
			"LAUNCHER_IMAGE": "registry.example/podvisor/virt-launcher:v1", "LAUNCHER_FULL_IMAGE": "registry.example/podvisor/virt-launcher-full:v1", "ALLOW_EMULATION": "true", "CONTAINER_DISKS": "auto", "POD_FIELDS": "", "POD_NAME": "", "POD_NAMESPACE": "", "POD_UID": "", "GOMEMLIMIT": "900MiB", "GOGC": "200",
		}, b.environment())
		require.Equal(t, b.environment()["LAUNCHER_IMAGE"], b.launcher())
	})
	t.Run("what was applied without --server-side is taken over once by force", func(t *testing.T) {
		// The API server counts the defaults in atomic fields as another manager's.
		require.Contains(t, refused(t, b.release("v1", "")), `conflict with "kubectl-client-side-apply"`)
		apply(t, "--server-side", "--force-conflicts", "-k", b.release("v1", ""))
		apply(t, "--server-side", "-k", b.release("v1", ""))
	})
	t.Run("an upgrade rolls the Deployment and leaves nothing superseded, nor changes what virt-controller wrote", func(t *testing.T) {
		said, err := b.kubectl("patch", "mutatingwebhookconfiguration", "virt-controller.kubevirt.io", "--field-manager=virt-controller",
			"--type=json", "-p", `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"`+b.authority()+`"}]`)
		require.NoError(t, err, said)
		apply(t, "--server-side", "-k", b.release("v2", ""))
		require.Equal(t, "registry.example/podvisor/virt-launcher:v2", b.environment()["LAUNCHER_IMAGE"])
		require.Equal(t, "registry.example/podvisor/virt-launcher:v2", b.launcher())
		require.Empty(t, b.configMaps())
		hooks, err := b.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, hooks.Webhooks[0].ClientConfig.CABundle)
	})
	t.Run("an upgrade names what was changed by hand, and keeps it but by force", func(t *testing.T) {
		said, err := b.kubectl("-n", "kubevirt", "set", "env", "deployment/virt-controller", "ALLOW_EMULATION=false")
		require.NoError(t, err, said)
		said = refused(t, b.release("v3", ""))
		require.Contains(t, said, `conflict with "kubectl-set"`)
		require.Contains(t, said, `env[name="ALLOW_EMULATION"]`)
		require.Equal(t, "false", b.environment()["ALLOW_EMULATION"])
		apply(t, "--server-side", "--force-conflicts", "-k", b.release("v3", ""))
		require.Equal(t, "true", b.environment()["ALLOW_EMULATION"])
	})
	t.Run("the ConfigMap of an earlier version stays for the pods that read it", func(t *testing.T) {
		apply(t, "--server-side", "-k", b.earlier("v3"))
		require.Len(t, b.configMaps(), 1)
		apply(t, "--server-side", "-k", b.release("v4", ""))
		require.Equal(t, "registry.example/podvisor/virt-launcher:v4", b.environment()["LAUNCHER_IMAGE"])
		require.Len(t, b.configMaps(), 1, "an old pod that starts again reads it")
	})
}

// earlier is a release whose virt-controller also reads a ConfigMap that has the hash
// of its content in its name.
func (b fresh) earlier(tag string) string {
	b.t.Helper()
	return b.release(tag, `patches:
- target: {kind: Deployment, name: virt-controller}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/envFrom, value: [{configMapRef: {name: podvisor}}]}
configMapGenerator:
- {name: podvisor, namespace: kubevirt, literals: [LAUNCHER_IMAGE=old]}
`)
}

// authority is a certificate of an authority, in base64.
func (b fresh) authority() string {
	b.t.Helper()
	out, err := b.kubectl("config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}")
	require.NoError(b.t, err, out)
	return out
}
