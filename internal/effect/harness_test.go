package effect

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/storage/credential"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// effects are what is made of a VMI, as text, by the name of what it is.
type effects map[string]string

// effectsOf makes of a VMI all that the library makes of it. The error says that
// the VMI is refused. What cannot be made of a VMI that is not refused is missing.
func effectsOf(v *vmi.VirtualMachineInstance) (effects, error) {
	out := effects{}
	var p *corev1.Pod
	var err error
	for _, way := range []pod.ContainerDisks{pod.InitCopy, pod.ImageVolume} {
		if p, err = podOf(v, way); err != nil {
			return nil, err
		}
		if out["pod "+string(way)], err = text(p); err != nil {
			return nil, err
		}
	}
	v = defaults.Apply(v, defaults.Profile{})
	p.Spec.NodeName = "node-a"
	if out["eviction"], err = text(instance.Eviction(v, p, defaults.Profile{})); err != nil {
		return nil, err
	}
	if out["gate"], err = text(gateOf(v, p)); err != nil {
		return nil, err
	}
	plan, err := planOf(v)
	if err != nil {
		return nil, err
	}
	if out["network"], err = text(plan); err != nil {
		return nil, err
	}
	volumes, disks, err := disksOf(v, domain.Tagged(v, domain.Host{Interfaces: plan.Attachments}))
	if err != nil {
		return nil, err
	}
	if out["disks"], err = text(volumes); err != nil {
		return nil, err
	}
	if out["agent"], err = agentOf(v); err != nil {
		return nil, err
	}
	d, err := domainOf(v, plan.Attachments, disks)
	if err != nil && !errors.Is(err, vmi.ErrInvalid) {
		return nil, err
	}
	if err == nil {
		out["domain"] = d
	}
	return out, nil
}

// differ says that something is different of what both have.
func (e effects) differ(other effects) bool {
	for name, text := range e {
		if o, ok := other[name]; ok && o != text {
			return true
		}
	}
	return false
}

func podOf(v *vmi.VirtualMachineInstance, way pod.ContainerDisks) (*corev1.Pod, error) {
	return pod.Render(v, pod.Config{Image: "example/virt-launcher:v1", ContainerDisks: way, Cluster: permissive, Facts: factsOf(v)})
}

// factsOf are definitions by which each network of Multus needs a resource of its own, as
// the device plugins of the networks offer them.
func factsOf(v *vmi.VirtualMachineInstance) pod.Facts {
	f := pod.Facts{Networks: map[string]*cni.Definition{}}
	for name, at := range cni.Definitions(v) {
		resource := "example.com/" + at.Namespace + "_" + at.Name
		if cni.ResourceFault(resource) == "" {
			f.Networks[name] = &cni.Definition{Resource: resource}
		}
	}
	return f
}

// planOf is the network that the handler makes, with the attachments that it puts
// to the launcher.
func planOf(v *vmi.VirtualMachineInstance) (network.Config, error) {
	eth0 := network.Link{
		Index: 2, Name: "eth0", Kind: "veth", MAC: "0a:58:0a:f4:00:05", MTU: 1450, Up: true,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.244.0.5/24"), netip.MustParsePrefix("fd00:244::5/64")},
		Routes:    []network.Route{{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("10.244.0.1")}},
	}
	names, links := cni.Links(v), []network.Link{eth0}
	for _, name := range slices.Sorted(maps.Values(names)) {
		if name != eth0.Name {
			links = append(links, network.Link{Index: 2 + len(links), Name: name, Kind: "veth", MAC: "0a:58:0a:f4:00:06", MTU: 1500, Up: true})
		}
	}
	return network.Plan(network.Input{Instance: v, State: network.State{Links: links}, Links: names, Owner: network.Owner{UID: vmi.User, GID: vmi.User}})
}

// disksOf are the disks that the launcher makes, with the files of cloud-init, and those of
// the domain.
func disksOf(v *vmi.VirtualMachineInstance, tagged []cloudinit.Device) ([]storage.Attachment, map[string]domain.Disk, error) {
	observations, err := volume.Observations(v.Spec.Volumes, volume.Node{})
	if err != nil {
		return nil, nil, err
	}
	node := volume.Node{Images: map[string]storage.Image{}, Paths: map[string]storage.Facts{}, Content: map[string][]byte{}, Devices: tagged}
	for _, o := range observations {
		if o.Image != nil {
			node.Images[o.Volume] = storage.Image{Path: filepath.Join(o.Image.Dir, "disk.img"), Format: storage.QCOW2, SizeBytes: 1 << 30}
		}
		for _, path := range o.Paths {
			if strings.HasSuffix(path, "/missing") || strings.HasSuffix(path, "/missingx") {
				continue
			}
			node.Paths[path] = storage.Facts{Kind: storage.Directory, FreeBytes: 1 << 40}
			if filepath.Ext(path) == ".img" {
				node.Paths[path] = storage.Facts{Kind: storage.File, SizeBytes: 1 << 30, DirectIO: true}
			}
		}
		for _, path := range o.Content {
			node.Content[path] = []byte("of a Secret")
		}
	}
	if node.Keys, err = credential.Seed(v, secretsOf(v)); err != nil {
		return nil, nil, err
	}
	attachments, err := volume.Resolve(v, node)
	if err != nil {
		return nil, nil, err
	}
	disks := map[string]domain.Disk{}
	for _, a := range attachments {
		// A lun needs a device.
		isLUN := slices.ContainsFunc(v.Spec.Domain.Devices.Disks, func(d vmi.Disk) bool { return d.Name == a.Name && d.LUN != nil })
		disks[a.Name] = domain.Disk{Attachment: a, DirectIO: true, Device: isLUN, Blocks: storage.Blocks{LogicalBytes: 4096, PhysicalBytes: 4096}}
	}
	return attachments, disks, nil
}

func domainOf(v *vmi.VirtualMachineInstance, attachments []network.Attachment, disks map[string]domain.Disk) (string, error) {
	return domainOn(v, attachments, disks, domain.Host{KVM: true})
}

// domainOn is the domain on a host with or without KVM.
func domainOn(v *vmi.VirtualMachineInstance, attachments []network.Attachment, disks map[string]domain.Disk, h domain.Host) (string, error) {
	var kernel domain.KernelFiles
	for _, f := range volume.KernelFiles(v.Spec.Domain.BootContainer(), "") {
		if kernel.Kernel == "" {
			kernel.Kernel = filepath.Join(f.Dir, f.File)
		}
		kernel.Initrd = filepath.Join(f.Dir, f.File)
	}
	h.ConsoleLog, h.Disks, h.Interfaces, h.Kernel = "/private/console", disks, attachments, kernel
	h.CPUs, h.MemoryNodes, h.HostDevices = cpus(v), []int{0}, given
	d, err := domain.Build(v, h)
	if err != nil {
		return "", err
	}
	return domain.XML(d)
}

// gateOf is what is made of the readiness gate of the VMI's pod before its guest runs.
func gateOf(v *vmi.VirtualMachineInstance, p *corev1.Pod) []corev1.ConditionStatus {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	var out []corev1.ConditionStatus
	for _, a := range instance.Decide(instance.Observed{VMI: v, Pods: instance.Pods{Active: p}, Node: instance.Node{Name: "node-a", Object: &corev1.Node{}}}).Actions {
		if g, ok := a.(scheduler.SetPodCondition); ok {
			out = append(out, g.Condition.Status)
		}
	}
	return out
}

// text is JSON, in which equal values are equal.
func text(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("show %T: %w", v, err)
	}
	return string(b), nil
}

func TestTheVMIsThatAreChangedAreRight(t *testing.T) {
	for name, tree := range bases(t) {
		e, err := effectsOf(decode(t, tree))
		require.NoError(t, err, name)
		require.Len(t, e, 8, name)
	}
}

// cpus are those of the node that the pod has for itself, if the VMI asks for them.
func cpus(v *vmi.VirtualMachineInstance) []domain.HostCPU {
	c := v.Spec.Domain.CPU
	if c == nil || !c.DedicatedCPUPlacement {
		return nil
	}
	all := make([]domain.HostCPU, min(c.VCPUs(), 255))
	if c.IsolateEmulatorThread {
		all = append(all, domain.HostCPU{})
	}
	for i := range all {
		all[i] = domain.HostCPU{ID: i, Core: i}
	}
	return all
}

// permissive is the configuration of a cluster in which VMIs may have devices and disks of nodes,
// and given are those that a pod is given.
var (
	permissive = config.Config{
		Pods:   config.Pods{HostDevices: map[string]bool{"example.com/gpu": true, "example.com/vgpu": true}},
		Limits: validate.Limits{Features: validate.Features{HostDevices: true, HostDisk: true, PortRanges: true, VSOCK: true, SEV: true}},
	}
	given = map[string]string{
		"PCIDEVICE_EXAMPLE_COM_SRIOV":        "0000:05:00.0,0000:05:00.1",
		"KUBEVIRT_RESOURCE_NAME_lan":         "example.com/sriov",
		"PCI_RESOURCE_EXAMPLE_COM_GPU":       "0000:01:00.0,0000:02:00.0,0000:03:00.0,0000:04:00.0",
		"MDEV_PCI_RESOURCE_EXAMPLE_COM_VGPU": "4b20d080-1b54-4048-85b3-a6a62d165c01,4b20d080-1b54-4048-85b3-a6a62d165c02,4b20d080-1b54-4048-85b3-a6a62d165c03",
	}
)
