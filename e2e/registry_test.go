//go:build release

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/e2e/registrytest"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/testguest"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// push uploads an image under a name of the registry, in place of the one that has it, and
// returns its digest.
func push(t *testing.T, r registrytest.Registry, reference string, img v1.Image) string {
	t.Helper()
	tag, err := name.NewTag(reference)
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, img, remote.WithContext(t.Context()), remote.WithAuthFromKeychain(r)))
	return must(img.Digest()).String()
}

// builtImage is an image of this version with a mark, which gives it a digest of its own: the
// kubelet takes an image that was pulled with credentials for no pod that has none, whatever
// name it has.
func builtImage(t *testing.T, component, mark string) v1.Image {
	t.Helper()
	for _, b := range world.built {
		if b.Name != component {
			continue
		}
		img, err := tarball.ImageFromPath(b.Tar, nil)
		require.NoError(t, err)
		c := must(img.ConfigFile()).Config
		c.Labels = map[string]string{"mark": mark}
		return must(mutate.Config(img, c))
	}
	t.Fatalf("there is no image %s", component)
	return nil
}

// saying is a container disk whose guest says the words, as many as those of the test guest.
func saying(t *testing.T, words string) v1.Image {
	t.Helper()
	require.Len(t, words, len(testguest.Up))
	disk := bytes.Replace(testguest.Disk(), []byte(testguest.Up), []byte(words), 1)
	img, err := tarball.ImageFromPath(imageOf(t, "any/disk:1", []entry{{"disk/", 107, 0o755, ""}, {"disk/disk.img", 107, 0o440, string(disk)}}), nil)
	require.NoError(t, err)
	return img
}

// pullsFrom gives the accounts of the namespace the credentials of the registry.
func pullsFrom(t *testing.T, namespace string, r registrytest.Registry) {
	t.Helper()
	const secret = "registry"
	_, err := world.kube.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: r.Login()},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	accounts := world.kube.CoreV1().ServiceAccounts(namespace)
	all, err := accounts.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, a := range all.Items {
		_, err := accounts.Patch(t.Context(), a.Name, types.MergePatchType, []byte(`{"imagePullSecrets":[{"name":"`+secret+`"}]}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, a := range all.Items {
			_, _ = accounts.Patch(ctx, a.Name, types.MergePatchType, []byte(`{"imagePullSecrets":null}`), metav1.PatchOptions{})
		}
		_ = world.kube.CoreV1().Secrets(namespace).Delete(ctx, secret, metav1.DeleteOptions{})
	})
}

// refusal is how a registry refuses who does not say who they are.
var refusal = regexp.MustCompile("authorization failed|401 Unauthorized")

// TestPodsPullTheirImagesAnewFromARegistryThatAsksWhoItIs installs launchers of a registry
// whose images are pulled for each pod.
func TestPodsPullTheirImagesAnewFromARegistryThatAsksWhoItIs(t *testing.T) {
	testenv.Root(t)
	s := newSpace(t)
	r := registrytest.New(t, "toolchain/registry")
	for _, n := range world.cluster.NodeNames() {
		r.Serve(t, world.cluster.Node(n).Command)
	}
	at := func(image string) string { return r.Host + "/some/path/" + image + ":v1" }
	isFirst := push(t, r, at("virt-launcher"), builtImage(t, "virt-launcher", "first"))
	push(t, r, at("virt-launcher-full"), builtImage(t, "virt-launcher-full", "first"))
	push(t, r, at("disk"), saying(t, testguest.Up))
	launchers, here := thisSide().install, thisSide().install
	launchers.Reference = func(component string) string {
		if strings.HasPrefix(component, "virt-launcher") {
			return at(component)
		}
		return here.Reference(component)
	}
	pullsFrom(t, install.Namespace, r) // virt-handler runs the launcher's image too
	require.NoError(t, install.Install(t.Context(), launchers))
	t.Cleanup(func() { require.NoError(t, install.Install(context.Background(), here)) })
	configure(t, func(c *vmi.KubeVirtConfiguration) { c.ImagePullPolicy = corev1.PullAlways })

	start := func(name string, options ...vmitest.Option) *vmi.VirtualMachineInstance {
		v := vmitest.New(append([]vmitest.Option{vmitest.WithName(name), vmitest.WithMemory("64Mi"), vmitest.WithGracePeriod(0), vmitest.WithContainerDisk("root", at("disk"))}, options...)...)
		v.UID = ""
		v.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"} // the same has the images of before
		v.Spec.Volumes[0].ContainerDisk.ImagePullPolicy = corev1.PullAlways
		return s.create(v)
	}
	runs := func(v *vmi.VirtualMachineInstance, words, launcher string) {
		t.Helper()
		s.awaitPhase(v.Name, vmi.PhaseRunning)
		s.awaitConsole(v, words)
		p := s.pod(v)
		require.Equal(t, at("virt-launcher"), p.Spec.Containers[0].Image)
		require.Equal(t, corev1.PullAlways, p.Spec.Containers[0].ImagePullPolicy)
		require.Contains(t, p.Status.ContainerStatuses[0].ImageID, launcher)
		s.delete(v.Name)
		s.awaitGone(v)
	}

	stranger := start("stranger")
	// The virt-controller of before may have tried first, with its launcher, which is refused.
	eventually(t, long, func() error {
		c := s.awaitFalse(stranger, vmi.ConditionSynchronized)
		if c.Reason != "ErrImagePull" && c.Reason != "ImagePullBackOff" || !refusal.MatchString(c.Message) {
			return fmt.Errorf("stranger is not Synchronized because of %s: %s", c.Reason, c.Message)
		}
		return nil
	})
	s.delete(stranger.Name)
	s.awaitGone(stranger)

	pullsFrom(t, s.name, r)
	runs(start("first"), testguest.Up, isFirst)

	// What the tags name has changed. The secret that the disk names is the one of the pod.
	isSecond := push(t, r, at("virt-launcher"), builtImage(t, "virt-launcher", "second"))
	require.NotEqual(t, isFirst, isSecond)
	words := strings.Replace(testguest.Up, "is up", "is 2.", 1)
	push(t, r, at("disk"), saying(t, words))
	runs(start("second", func(v *vmi.VirtualMachineInstance) { v.Spec.Volumes[0].ContainerDisk.ImagePullSecret = "registry" }), words, isSecond)
	t.Logf("the launchers had %s and %s", isFirst, isSecond)
}
