package causes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// Mistake is a mistake that users make, and what the VMI is to say of it.
type Mistake struct {
	// Name is what the mistake is, in a few words.
	Name string
	// Alone says that other VMIs of the cluster suffer too.
	Alone bool
	// Prepare makes what the mistake needs. Nil: nothing.
	Prepare func(context.Context, Site) error
	// VMI is the one that is created.
	VMI *vmi.VirtualMachineInstance
	// Refused says that the API server must not accept the VMI.
	Refused bool
	// VM says that the VMI is that of a VM, which is created in its place, and which names
	// the cause between two tries.
	VM bool
	// Act is the mistake, as soon as the guest runs. Nil: it is in the VMI.
	Act func(context.Context, Site, *vmi.VirtualMachineInstance) error
	// Kubernetes is a part of what Kubernetes says of the cause about the pod. Empty:
	// it says nothing, because there is no pod or because only the launcher knows.
	Kubernetes string
	// Reasons are those that name the cause, and Message is a part of the message.
	Reasons []string
	Message string
}

// All are the mistakes. The function names the image of a component.
func All(image func(string) string) []Mistake {
	const missing = "localhost/podvisor/missing:causes"
	with := func(options ...vmitest.Option) *vmi.VirtualMachineInstance {
		v := vmitest.New(append([]vmitest.Option{
			vmitest.WithName("mistake"), vmitest.WithContainerDisk("root", image("demo-guest")), vmitest.WithMasquerade("default"),
			vmitest.WithGracePeriod(10),
		}, options...)...)
		v.UID, v.Namespace = "", ""
		return v
	}
	return []Mistake{
		{
			Name: "bad image", VMI: with(disk(missing)),
			Kubernetes: "failed to pull and unpack image", Reasons: []string{"ErrImagePull", "ImagePullBackOff"}, Message: missing,
		}, {
			Name: "no node fits", VMI: with(selector("example.com/no-such-node", "true")),
			Kubernetes: "didn't match Pod's node affinity/selector", Reasons: []string{"Unschedulable"}, Message: "didn't match Pod's node affinity/selector",
		}, {
			Name: "quota", Prepare: quota, VMI: with(),
			Reasons: []string{"FailedCreate"}, Message: "exceeded quota: no-pods",
		}, {
			Name: "bad disk", VMI: with(disk(image("tools"))),
			Reasons: []string{"StartFailed", "CannotStart"}, Message: "volume root",
		}, {
			Name: "bad spec", VMI: with(noMemory), Refused: true, Message: "spec.domain.memory",
		}, {
			Name: "no network", VMI: with(noNetwork),
			Kubernetes: "failed to setup network for sandbox", Reasons: []string{"FailedCreatePodSandBox"}, Message: "failed to setup network for sandbox",
		}, {
			Name: "missing Secret", VMI: with(secret("no-such-secret")),
			Kubernetes: `secret "no-such-secret" not found`, Reasons: []string{"FailedMount"}, Message: `secret "no-such-secret" not found`,
		}, {
			Name: "architecture that is not served", VMI: with(func(v *vmi.VirtualMachineInstance) { v.Spec.Architecture = "s390x" }),
			Refused: true, Message: "spec.architecture",
		}, {
			Name: "architecture that no node has", VMI: with(func(v *vmi.VirtualMachineInstance) { v.Spec.Architecture = "arm64" }),
			Kubernetes: "didn't match Pod's node affinity/selector", Reasons: []string{"Unschedulable"}, Message: "didn't match Pod's node affinity/selector",
		}, {
			Name: "no memory: no node has it", VMI: with(vmitest.WithMemory("1Ti")),
			Kubernetes: "Insufficient memory", Reasons: []string{"Unschedulable"}, Message: "Insufficient memory",
		}, {
			Name: "no memory: more than its limit", Prepare: limit("160Mi"), VMI: with(vmitest.WithMemory("512Mi"), fills),
			Kubernetes: "OOMKilled", Reasons: []string{"OOMKilled"}, Message: "memory",
		}, {
			Name: "evicted by the API", VMI: with(), Act: evict,
			Kubernetes: "EvictionByEvictionAPI", Reasons: []string{"PodTerminating", "Evicted"}, Message: "evicted from node",
		}, {
			Name: "evicted by the kubelet", VMI: with(littleStorage),
			Kubernetes: "Evicted", Reasons: []string{"Evicted"}, Message: "ephemeral",
		}, {
			Name: "evicted by a taint", Alone: true, VMI: with(), Act: taint,
			Kubernetes: "DeletionByTaintManager", Reasons: []string{"PodTerminating", "Evicted"}, Message: "evicted from node",
		}, {
			Name: "pod deleted", VMI: with(), Act: deletePod,
			Kubernetes: "Stopping container", Reasons: []string{"PodTerminating", "PodDeleted"}, Message: "deleted",
		}, {
			Name: "a VM that cannot start", VM: true, VMI: with(disk(image("tools"))),
			Reasons: []string{"StartFailed", "CannotStart"}, Message: "volume root",
		}, {
			Name: "a field that is not served", VMI: with(reservation), Refused: true, Message: "spec.domain.devices.disks[0].lun.reservation",
		}, {
			Name: "limit of a LimitRange", Prepare: limit("64Mi"), VMI: with(),
			Reasons: []string{"FailedCreate"}, Message: "write spec.domain.resources.limits.memory",
		}, {
			Name: "maxGuest below guest", VMI: with(memory(vmi.Memory{Guest: new(resource.MustParse("2Gi")), MaxGuest: new(resource.MustParse("1Gi"))})),
			Refused: true, Message: "must not be more than memory.maxGuest",
		}, {
			Name: "huge pages of 3Mi", VMI: with(memory(vmi.Memory{Guest: new(resource.MustParse("126Mi")), Hugepages: &vmi.Hugepages{PageSize: "3Mi"}})),
			Refused: true, Message: "spec.domain.memory.hugepages.pageSize",
		}, {
			// The last: nothing is refused without webhooks.
			Name: "bad spec, no webhook", Alone: true, Prepare: removeWebhooks, VMI: with(noMemory),
			Reasons: []string{"InvalidSpec"}, Message: "spec.domain.memory",
		},
	}
}

// disk takes another image for the VMI's disk.
func disk(image string) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.Volumes[0].ContainerDisk.Image = image }
}

func selector(key, value string) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.NodeSelector = map[string]string{key: value} }
}

func noMemory(v *vmi.VirtualMachineInstance) {
	memory(vmi.Memory{Guest: new(resource.MustParse("0"))})(v)
}

func memory(m vmi.Memory) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory = &m }
}

// reservation asks for what KubeVirt has and Podvisor does not serve. The client of the
// mistakes is one that does not ask the API server for strict validation.
func reservation(v *vmi.VirtualMachineInstance) {
	d := &v.Spec.Domain.Devices.Disks[0]
	d.Disk, d.LUN = nil, &vmi.LunTarget{Reservation: true}
}

// noNetwork makes the container runtime fail when it sets up the network of the pod:
// it refuses a bandwidth of less than a kilobit per second, and gives it to CNI with
// the rest.
func noNetwork(v *vmi.VirtualMachineInstance) {
	v.Annotations = map[string]string{"kubernetes.io/ingress-bandwidth": "1"}
}

func secret(name string) vmitest.Option {
	return vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: &corev1.LocalObjectReference{Name: name}}})
}

// fills lets the guest use all of its memory, of which the VMI asks for next to
// nothing.
func fills(v *vmi.VirtualMachineInstance) {
	v.Spec.Domain.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
	vmitest.WithCloudInit("seed", "#cloud-config\nruncmd:\n- dd if=/dev/zero of=/fill bs=1M count=400\n")(v)
}

// littleStorage is less than the log of the launcher takes.
func littleStorage(v *vmi.VirtualMachineInstance) {
	v.Spec.Domain.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Ki")}
}

// quota allows no pod, and is in force when it returns.
func quota(ctx context.Context, s Site) error {
	all := s.Kube.CoreV1().ResourceQuotas(s.Namespace)
	q, err := all.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	for err == nil && len(q.Status.Hard) == 0 {
		if err = pause(ctx); err == nil {
			q, err = all.Get(ctx, "no-pods", metav1.GetOptions{})
		}
	}
	return err
}

// limit gives containers without a limit of memory one that is too small for a guest
// that has booted: little more than the launcher asks for, or less.
func limit(size string) func(context.Context, Site) error {
	return func(ctx context.Context, s Site) error {
		_, err := s.Kube.CoreV1().LimitRanges(s.Namespace).Create(ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "small"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)},
			}}},
		}, metav1.CreateOptions{})
		return err
	}
}

// removeWebhooks removes the webhooks that review VMIs, for all namespaces.
func removeWebhooks(ctx context.Context, s Site) error {
	const name = "virt-controller.kubevirt.io"
	a := s.Kube.AdmissionregistrationV1()
	if err := a.MutatingWebhookConfigurations().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return a.ValidatingWebhookConfigurations().Delete(ctx, name, metav1.DeleteOptions{})
}

// evict evicts the pod of the VMI as kubectl drain does.
func evict(ctx context.Context, s Site, v *vmi.VirtualMachineInstance) error {
	p, err := s.pod(ctx, v)
	if err != nil {
		return err
	}
	return s.Kube.CoreV1().Pods(s.Namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name}})
}

// deletePod deletes the pod of the VMI, as a user does who does not know VMIs.
func deletePod(ctx context.Context, s Site, v *vmi.VirtualMachineInstance) error {
	p, err := s.pod(ctx, v)
	if err != nil {
		return err
	}
	return s.Kube.CoreV1().Pods(s.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
}

// taint evicts all pods from the node of the VMI.
func taint(ctx context.Context, s Site, v *vmi.VirtualMachineInstance) error {
	p, err := s.pod(ctx, v)
	if err != nil {
		return err
	}
	const patch = `{"spec":{"taints":[{"key":"example.com/maintenance","effect":"NoExecute"}]}}`
	_, err = s.Kube.CoreV1().Nodes().Patch(ctx, p.Spec.NodeName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// pod is the VMI's pod.
func (s Site) pod(ctx context.Context, v *vmi.VirtualMachineInstance) (*corev1.Pod, error) {
	l, err := s.Kube.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: vmi.CreatedByLabel + "=" + string(v.UID)})
	if err != nil {
		return nil, err
	}
	if len(l.Items) != 1 {
		return nil, fmt.Errorf("VMI %s has %d pods", v.Name, len(l.Items))
	}
	return &l.Items[0], nil
}

// pause is a moment between two questions.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}
