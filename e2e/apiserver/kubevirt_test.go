package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// watchSettings runs a watcher of the cluster's configuration, as this user.
func watchSettings(t *testing.T, cfg *rest.Config) *live.Watcher {
	t.Helper()
	c, err := client.New(cfg)
	require.NoError(t, err)
	definitions, err := metadata.NewForConfig(cfg)
	require.NoError(t, err)
	w, err := live.New(live.Config{KubeVirts: c.KubeVirts(""), Metadata: definitions})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return w
}

// configure creates the KubeVirt of the namespace, which the end of the test
// deletes.
func (s space) configure(name string, c vmi.KubeVirtConfiguration) (*vmi.KubeVirt, error) {
	s.t.Helper()
	i := world.vmis.KubeVirts(s.name)
	k, err := i.Create(s.t.Context(), &vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: vmi.KubeVirtSpec{Configuration: c}}, metav1.CreateOptions{})
	s.t.Cleanup(func() { _ = i.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	return k, err
}

// patch changes the KubeVirt.
func (s space) patch(name, patch string) *vmi.KubeVirt {
	s.t.Helper()
	k, err := world.vmis.KubeVirts(s.name).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
	return k
}

// awaitKubeVirt waits until the condition of this type has this reason, for the
// KubeVirt as it is now.
func (s space) awaitKubeVirt(name string, t vmi.ConditionType, reason string) *vmi.KubeVirt {
	s.t.Helper()
	var k *vmi.KubeVirt
	eventually(s.t, func() (err error) {
		if k, err = world.vmis.KubeVirts(s.name).Get(s.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if c := k.Status.Condition(t); c == nil || c.Reason != reason || k.Status.ObservedGeneration == nil || *k.Status.ObservedGeneration != k.Generation {
			return fmt.Errorf("the status of the KubeVirt is not the expected one: %+v", k.Status)
		}
		return nil
	})
	return k
}

// podOf waits for the VMI's pod.
func (s space) podOf(name string) corev1.Pod {
	s.t.Helper()
	var p corev1.Pod
	eventually(s.t, func() error {
		l, err := s.pods.List(s.t.Context(), metav1.ListOptions{LabelSelector: vmi.VMIIDLabel + "=" + name})
		if err == nil && len(l.Items) != 1 {
			err = errors.New("there is no pod")
		}
		if err == nil {
			p = l.Items[0]
		}
		return err
	})
	return p
}

func cpu(p corev1.Pod) string {
	q := p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
	return q.String()
}

// The tests of the configuration do not run beside each other: there is one in a
// cluster.

func TestAChangedConfigurationNeedsNoRestart(t *testing.T) {
	s := newSpace(t)
	settings := watchSettings(t, asController())
	handler := watchSettings(t, asHandler("n1"))
	s.control(func(c *controller.Config) { c.Settings = settings })

	s.create(guest("before"))
	require.Equal(t, "100m", cpu(s.podOf("before")), "without a KubeVirt, the defaults apply")

	k, err := s.configure("kubevirt", vmi.KubeVirtConfiguration{
		CPURequest: new(resource.MustParse("300m")),
		Network:    &vmi.NetworkConfiguration{PermitBridgeInterfaceOnPodNetwork: new(false)},
	})
	require.NoError(t, err)
	k = s.awaitKubeVirt(k.Name, vmi.ConditionDegraded, "AllComponentsReady")
	require.Len(t, k.Status.Conditions, 4)
	require.Equal(t, "amd64", k.Status.DefaultArchitecture)
	require.Equal(t, "virt-handler is not ready on all of its nodes.", k.Status.Condition(vmi.ConditionAvailable).Message)
	require.Equal(t, vmi.KubeVirtPhaseDeploying, k.Status.Phase)
	s.create(guest("configured"))
	require.Equal(t, "300m", cpu(s.podOf("configured")))

	bridged := guest("bridged")
	bridged.Spec.Domain.Devices.AutoattachPodInterface = nil
	bridged.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "net", InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}}}
	bridged.Spec.Networks = []vmi.Network{{Name: "net", NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}
	s.create(bridged)
	require.Contains(t, s.awaitReason("bridged", vmi.ConditionSynchronized, "InvalidSpec").Message, "use masquerade")
	s.patch("kubevirt", `{"spec":{"configuration":{"network":null}}}`)
	s.podOf("bridged") // what was not permitted is made as soon as it is
	// The next change waits for the write of this one, or both are one write.
	s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "AllComponentsReady")

	// What the schema lets pass and cannot be used leaves the last good one.
	s.patch("kubevirt", `{"spec":{"configuration":{"cpuRequest":"-1"}}}`)
	k = s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "InvalidConfiguration")
	require.Contains(t, k.Status.Condition(vmi.ConditionDegraded).Message, "spec.configuration.cpuRequest")
	require.Contains(t, k.Status.ObservedDeploymentConfig, "300m")
	s.create(guest("still"))
	require.Equal(t, "300m", cpu(s.podOf("still")))
	fresh := watchSettings(t, asHandler("n1"))
	require.True(t, fresh.Wait(t.Context()))
	require.Equal(t, "300m", fresh.State().Config.Defaults.CPURequest.String(), "also for a process that begins now")

	s.patch("kubevirt", `{"spec":{"configuration":{"cpuRequest":"200m"}}}`)
	k = s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "AllComponentsReady")
	s.create(guest("repaired"))
	require.Equal(t, "200m", cpu(s.podOf("repaired")))
	eventually(t, func() error {
		if got := handler.Facts()["config-resource-version"]; got != k.ResourceVersion {
			return fmt.Errorf("the handler has %s, not %s", got, k.ResourceVersion)
		}
		return nil
	})
	var kubevirtWrites int
	for _, w := range s.writes.all() {
		if w == "PATCH kubevirts/kubevirt/status 200" {
			kubevirtWrites++
		}
	}
	require.Equal(t, 4, kubevirtWrites, "one write for each change, none for what stays: %v", s.writes.all())
}

func TestTheClusterDecidesOnMachineTypeAndProcessor(t *testing.T) {
	s := newSpace(t)
	settings := watchSettings(t, asController())
	s.control(func(c *controller.Config) { c.Settings = settings })
	_, err := s.configure("kubevirt", vmi.KubeVirtConfiguration{
		CPUModel: vmi.CPUModelPassthrough,
		ArchitectureConfiguration: &vmi.ArchitectureConfiguration{DefaultArchitecture: "amd64", AMD64: &vmi.ArchitectureSettings{
			MachineType: "pc-q35-7.2", EmulatedMachines: []string{"pc-q35-7.*"},
		}},
	})
	require.NoError(t, err)
	k := s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "AllComponentsReady")
	require.Equal(t, "amd64", k.Status.DefaultArchitecture)
	require.Equal(t, vmi.CPUModelPassthrough, settings.State().Config.Defaults.CPUModel)

	s.create(guest("plain"))
	require.Equal(t, "amd64", s.podOf("plain").Spec.NodeSelector[corev1.LabelArchStable])
	old := guest("old")
	old.Spec.Architecture, old.Spec.Domain.Machine = "amd64", &vmi.Machine{Type: "pc-q35-2.4"}
	s.create(old)
	require.Contains(t, s.awaitReason("old", vmi.ConditionSynchronized, "InvalidSpec").Message, `"pc-q35-2.4": must match pc-q35-7.*`)

	// A list that its own default does not match leaves the last good one.
	s.patch("kubevirt", `{"spec":{"configuration":{"architectureConfiguration":{"amd64":{"emulatedMachines":["q35"]}}}}}`)
	k = s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "InvalidConfiguration")
	require.Contains(t, k.Status.Condition(vmi.ConditionDegraded).Message, "spec.configuration.architectureConfiguration.amd64.machineType")
	require.Equal(t, map[string][]string{"amd64": {"pc-q35-7.*"}}, settings.State().Config.Limits.MachineTypes)

	for patch, says := range map[string]string{
		`{"spec":{"configuration":{"architectureConfiguration":{"defaultArchitecture":"s390x"}}}}`: "set defaultArchitecture to amd64 or arm64",
	} {
		_, err := world.vmis.KubeVirts(s.name).Patch(t.Context(), "kubevirt", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, says)
	}

	s.patch("kubevirt", `{"spec":{"configuration":{"architectureConfiguration":{"amd64":{"emulatedMachines":["pc-q35-*"]}}}}}`)
	s.podOf("old") // what was not allowed is made as soon as it is
}

func TestTheStatusFollowsTheHandlers(t *testing.T) {
	s := newSpace(t)
	settings := watchSettings(t, asController())
	stop := s.control(func(c *controller.Config) { c.Settings, c.Version = settings, "v1.0.0" })
	_, err := s.configure("kubevirt", vmi.KubeVirtConfiguration{})
	require.NoError(t, err)
	versions := func(k *vmi.KubeVirt) [3]string {
		return [3]string{k.Status.OperatorVersion, k.Status.TargetKubeVirtVersion, k.Status.ObservedKubeVirtVersion}
	}
	k := s.awaitKubeVirt("kubevirt", vmi.ConditionAvailable, "ComponentsNotReady")
	require.Equal(t, [3]string{"v1.0.0", "v1.0.0", ""}, versions(k))

	set := func(patch string) {
		_, err := world.kube.AppsV1().DaemonSets("kubevirt").Patch(context.Background(), "virt-handler", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
	d, err := world.kube.AppsV1().DaemonSets("kubevirt").Get(t.Context(), "virt-handler", metav1.GetOptions{})
	require.NoError(t, err)
	set(fmt.Sprintf(`{"status":{"observedGeneration":%d,"desiredNumberScheduled":2,"updatedNumberScheduled":2,"numberReady":2}}`, d.Generation))
	t.Cleanup(func() {
		set(`{"status":{"observedGeneration":0,"desiredNumberScheduled":0,"updatedNumberScheduled":0,"numberReady":0}}`)
	})
	k = s.awaitKubeVirt("kubevirt", vmi.ConditionAvailable, "AllComponentsReady")
	require.Equal(t, vmi.KubeVirtPhaseDeployed, k.Status.Phase)
	require.Equal(t, [3]string{"v1.0.0", "v1.0.0", "v1.0.0"}, versions(k))
	set(`{"status":{"updatedNumberScheduled":1,"numberReady":1}}`)
	k = s.awaitKubeVirt("kubevirt", vmi.ConditionProgressing, "UpdateInProgress")
	require.Equal(t, vmi.KubeVirtPhaseDeployed, k.Status.Phase, "it was there already")

	// The next version replaces virt-controller first.
	stop()
	s.control(func(c *controller.Config) { c.Settings, c.Version = settings, "v1.1.0" })
	eventually(t, func() (err error) {
		if k, err = world.vmis.KubeVirts(s.name).Get(t.Context(), "kubevirt", metav1.GetOptions{}); err == nil && k.Status.OperatorVersion != "v1.1.0" {
			err = fmt.Errorf("the status is of %q", k.Status.OperatorVersion)
		}
		return err
	})
	require.Equal(t, [3]string{"v1.1.0", "v1.1.0", "v1.0.0"}, versions(k), "while handlers are replaced")
	set(`{"status":{"updatedNumberScheduled":2,"numberReady":2}}`)
	k = s.awaitKubeVirt("kubevirt", vmi.ConditionProgressing, "AllComponentsReady")
	require.Equal(t, [3]string{"v1.1.0", "v1.1.0", "v1.1.0"}, versions(k))

	said, err := kubectl(t, "", "-n", s.name, "get", "kv")
	require.NoError(t, err, said)
	require.Regexp(t, `(?m)^NAME +AGE +PHASE\nkubevirt +\S+ +Deployed$`, said)
}

func TestASecondKubeVirtIsRefused(t *testing.T) {
	s, other := newSpace(t), newWebhooks(t, nil)
	settings := watchSettings(t, asController())
	s.control(func(c *controller.Config) { c.Settings = settings })
	first, err := s.configure("kubevirt", vmi.KubeVirtConfiguration{})
	require.NoError(t, err)
	s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "AllComponentsReady")
	// The policy sees the first one a moment later.
	eventually(t, func() error {
		_, err := s.configure("second", vmi.KubeVirtConfiguration{})
		if err == nil {
			_ = world.vmis.KubeVirts(s.name).Delete(t.Context(), "second", metav1.DeleteOptions{})
			return errors.New("a second KubeVirt in the same namespace was not refused")
		}
		if !apierrors.IsForbidden(err) {
			return err
		}
		require.ErrorContains(t, err, s.name+"/kubevirt is there already: change that one, or delete it first")
		return nil
	})
	said, err := kubectl(t, "apiVersion: kubevirt.io/v1\nkind: KubeVirt\nmetadata: {name: kubevirt, namespace: "+s.name+"}\nspec: {configuration: {cpuRequest: 1}}\n",
		"apply", "--server-side", "--force-conflicts", "-f", "-")
	require.NoError(t, err, "the first can be applied again: %s", said)

	// In another namespace no policy sees it, but virt-controller does.
	other.answer(admission.Webhooks{KubeVirts: settings.KubeVirts})
	stop := other.serve()
	_, err = other.configure("kubevirt", vmi.KubeVirtConfiguration{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, s.name+"/kubevirt is there already: change that one, or delete it first")
	stop() // without a webhook, a second one is stored, and has no effect
	// Of two of the same second the first by name would count.
	time.Sleep(time.Until(first.CreationTimestamp.Add(time.Second)))
	_, err = other.configure("kubevirt", vmi.KubeVirtConfiguration{CPURequest: new(resource.MustParse("2"))})
	require.NoError(t, err)
	k := other.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "ExistingDeployment")
	require.Contains(t, k.Status.Condition(vmi.ConditionAvailable).Message, s.name+"/kubevirt is older")
	s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "AllComponentsReady")
	for _, cfg := range []*rest.Config{asController(), asHandler("n1")} {
		fresh := watchSettings(t, cfg)
		require.True(t, fresh.Wait(t.Context()))
		require.Equal(t, s.name, fresh.State().KubeVirt.Namespace, "a watcher that starts now uses the same one")
	}
	require.Equal(t, s.name, settings.State().KubeVirt.Namespace)

	require.NoError(t, world.vmis.KubeVirts(s.name).Delete(t.Context(), "kubevirt", metav1.DeleteOptions{}))
	other.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "AllComponentsReady")
}

func TestNoKubeVirtBesideOneInTheUsualNamespace(t *testing.T) {
	s := newSpace(t)
	usual := space{t: t, name: "kubevirt"}
	_, err := usual.configure("kubevirt", vmi.KubeVirtConfiguration{})
	require.NoError(t, err)
	eventually(t, func() error {
		_, err := s.configure("kubevirt", vmi.KubeVirtConfiguration{})
		if err == nil {
			_ = world.vmis.KubeVirts(s.name).Delete(t.Context(), "kubevirt", metav1.DeleteOptions{})
			return errors.New("a second KubeVirt in another namespace was not refused")
		}
		if !apierrors.IsForbidden(err) {
			return err
		}
		return nil
	})
}

func TestWhereKubeVirtIsInstalledNothingIsDone(t *testing.T) {
	s := newSpace(t)
	eventually(t, func() error { // until the policy sees none of another namespace any more
		_, err := s.configure("kubevirt", vmi.KubeVirtConfiguration{})
		return err
	})
	definitions, err := metadata.NewForConfig(world.config)
	require.NoError(t, err)
	label := func(value string) {
		_, err := definitions.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
			Patch(context.Background(), "virtualmachineinstances.kubevirt.io", types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":`+value+`}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	label(`"virt-operator"`)
	t.Cleanup(func() { label("null") })
	settings := watchSettings(t, asController())
	require.True(t, settings.Wait(t.Context()))
	handler := watchSettings(t, asHandler("n1"))
	require.True(t, handler.Wait(t.Context()))
	for _, w := range []*live.Watcher{settings, handler} {
		require.Contains(t, w.OtherInstallation(), "the CustomResourceDefinition virtualmachineinstances.kubevirt.io has the label")
		require.ErrorContains(t, w.Ready(), "KubeVirt is installed")
	}
	s.control(func(c *controller.Config) { c.Settings = settings })

	s.create(guest("vm"))
	events := func() (out []string) {
		l, err := world.kube.CoreV1().Events(s.name).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=KubeVirt"})
		require.NoError(t, err)
		for _, e := range l.Items {
			out = append(out, e.Type+" "+e.Reason)
		}
		return out
	}
	eventually(t, func() error {
		if got := events(); len(got) != 1 || got[0] != "Warning KubeVirtInstalled" {
			return fmt.Errorf("events: %v", got)
		}
		return nil
	})
	require.Empty(t, s.writes.all())

	label("null")
	s.podOf("vm") // the controller works again
	eventually(t, handler.Ready)
	s.awaitKubeVirt("kubevirt", vmi.ConditionCreated, "AllResourcesCreated")
}

func TestTheExampleIsAConfiguration(t *testing.T) {
	said, err := kubectl(t, "", "create", "--dry-run=server", "-f", "../../examples/kubevirt.yaml")
	require.NoError(t, err, said)
	said, err = kubectl(t, "", "explain", "kubevirt.spec.configuration.network.defaultNetworkInterface")
	require.NoError(t, err, said)
	require.Contains(t, said, "binding of the interface of VMIs")
}
