package effect

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/storage/credential"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// Made is what is made of a VMI.
type Made struct {
	// Pod is its launcher's.
	Pod *corev1.Pod
	// Domain is the XML of its domain on a node with hardware virtualization.
	Domain string
}

// Permissive is the configuration of a cluster that allows all that the tests' VMIs have.
func Permissive() config.Config { return permissive }

// Make makes of a VMI all that the components make of it, on a node that has whatever it
// asks for. What is refused is an error.
func Make(v *vmi.VirtualMachineInstance) (Made, error) {
	p, err := podOf(v, pod.ImageVolume)
	if err != nil {
		return Made{}, fmt.Errorf("render: %w", err)
	}
	v = defaults.Instance(v, permissive.Defaults)
	plan, err := planOf(v)
	if err != nil {
		return Made{}, fmt.Errorf("plan the network: %w", err)
	}
	_, disks, err := disksOf(v, domain.Tagged(v, domain.Host{Interfaces: plan.Attachments}))
	if err != nil {
		return Made{}, fmt.Errorf("resolve the volumes: %w", err)
	}
	text, err := domainOf(v, plan.Attachments, disks)
	if err != nil {
		return Made{}, fmt.Errorf("build: %w", err)
	}
	return Made{Pod: p, Domain: text}, nil
}

func podOf(v *vmi.VirtualMachineInstance, way pod.ContainerDisks) (*corev1.Pod, error) {
	return pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1", ContainerDisks: way}, Cluster: permissive, Facts: factsOf(v)})
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
	for _, i := range v.Spec.Domain.Devices.Interfaces { // the pod has what its guest takes over
		for n := range links {
			if i.Bridge != nil && i.MacAddress != "" && links[n].Name == names[i.Name] {
				links[n].MAC = i.MacAddress
			}
		}
	}
	return network.Plan(network.Input{Instance: v, State: network.State{Links: links}, Links: names, Owner: network.Owner{UID: vmi.RuntimeUID, GID: vmi.RuntimeUID}})
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
			// A file that is to be made is not there.
			made := slices.ContainsFunc(v.Spec.Volumes, func(k vmi.Volume) bool { return k.Name == o.Volume && k.HostDisk != nil && k.HostDisk.Capacity != nil })
			if made && (strings.HasSuffix(path, "/missing") || strings.HasSuffix(path, "/missingx")) {
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
	return d.Marshal()
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
		Pods: config.Pods{HostDevices: map[string]bool{"example.com/gpu": true, "example.com/vgpu": true}},
		Limits: validate.Limits{Features: validate.Features{HostDevices: true, HostDisk: true, PortRanges: true, VSOCK: true, SEV: true},
			Devices: map[string]bool{"example.com/gpu": true, "example.com/vgpu": true}},
	}
	given = map[string]string{
		"PCIDEVICE_EXAMPLE_COM_SRIOV":        "0000:05:00.0,0000:05:00.1",
		"KUBEVIRT_RESOURCE_NAME_lan":         "example.com/sriov",
		"PCI_RESOURCE_EXAMPLE_COM_GPU":       "0000:01:00.0,0000:02:00.0,0000:03:00.0,0000:04:00.0",
		"MDEV_PCI_RESOURCE_EXAMPLE_COM_VGPU": "4b20d080-1b54-4048-85b3-a6a62d165c01,4b20d080-1b54-4048-85b3-a6a62d165c02,4b20d080-1b54-4048-85b3-a6a62d165c03",
	}
)

// secretsOf are the Secrets of the VMI's access credentials, each with one value that is
// a key.
func secretsOf(v *vmi.VirtualMachineInstance) credential.Contents {
	all := credential.Contents{}
	for _, name := range credential.Secrets(v) {
		all[name] = map[string][]byte{"root": []byte("ssh-test AAAACHNzaC10ZXN0AAAAAQA= of " + name)}
	}
	return all
}
