package pod

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Guest is what the memory that a pod needs besides its guest's depends on.
type Guest struct {
	// Memory is the memory that the guest sees.
	Memory resource.Quantity
	// VCPUs is the number of processors that the guest sees.
	VCPUs uint32
	// Emulated says that the guest runs without hardware virtualization.
	Emulated bool
	// Architecture is the processor architecture of the guest, as in GOARCH. Empty:
	// amd64.
	Architecture string
	// ProcessProbes is the number of probes that are processes in the container: those that
	// ask the guest's agent, and the one of a target that waits for its guest.
	ProcessProbes int
	// IOThreads is the number of threads that only disks use.
	IOThreads int
	// PartBytes is what the parts of the guest need, such as its devices, by their names:
	// see [vmi.Trait].
	PartBytes map[string]int64
}

// The parts of the overhead, in bytes. Measured with one guest of 128 MiB:
// launcher 13 MB, libvirt daemon 25–28 MB, both resident; QEMU 35–46 MB more
// than the guest's memory under emulation with a translation cache of 32 MiB, of
// which the screen is a few. Each has some reserve, for what a device, a client or a
// console adds.
const (
	mib             = 1 << 20
	launcherMemory  = 20 * mib
	daemonMemory    = 36 * mib
	qemuMemory      = 32 * mib
	perVCPUMemory   = 4 * mib
	emulationMemory = 40 * mib
	// A probe that is a process has 10 MB resident, of which most is the program that it
	// shares with the launcher.
	processProbeMemory = 8 * mib
	// A thread touches some pages of its stack and has its own heap: 0.1 MB when it
	// is idle, some MB with many requests under way.
	ioThreadMemory = 2 * mib
	// The flash of guests of arm64: two devices of 64 MiB, for the firmware and its
	// variables. QEMU reads the files whole where they have no holes.
	flashMemory = 128 * mib
	// pageTables: one entry of 8 bytes for each page of 4096.
	pageTables = 512
)

// Overhead is the memory that a launcher pod needs besides its guest's: that of
// the launcher, the libvirt daemon and QEMU, of the tables with which the guest's
// memory is mapped, of the devices that need some, of probes that are processes, of
// translated code where the guest is emulated, and of the flash of arm64.
func Overhead(g Guest) resource.Quantity {
	n := int64(launcherMemory + daemonMemory + qemuMemory)
	n += int64(g.VCPUs) * perVCPUMemory
	n += int64(g.ProcessProbes) * processProbeMemory
	n += int64(g.IOThreads) * ioThreadMemory
	n += g.Memory.Value() / pageTables
	if g.Emulated {
		n += emulationMemory
	}
	if g.Architecture == defaults.ARM64 {
		n += flashMemory
	}
	for _, bytes := range g.PartBytes {
		n += bytes
	}
	// Whole MiB, which people can read.
	return *resource.NewQuantity((n+mib-1)/mib*mib, resource.BinarySI)
}

func guest(v *vmi.VirtualMachineInstance, c Config) Guest {
	d := &v.Spec.Domain
	g := Guest{
		Memory: bounded(d.GuestMemory()), VCPUs: d.CPU.VCPUs(), Emulated: c.Emulation(), ProcessProbes: processProbes(v, c.Role),
		IOThreads: ioThreads(d), Architecture: v.Spec.Architecture,
		PartBytes: map[string]int64{},
	}
	for _, t := range c.traits() {
		if t.MemoryBytes != 0 && t.Has(v) {
			g.PartBytes[t.Part] = t.MemoryBytes
		}
	}
	return g
}

// ioThreads is the number of threads that only disks use, at most.
func ioThreads(d *vmi.DomainSpec) int {
	n := 0
	switch d.IOThreadsPolicy {
	case vmi.IOThreadsShared:
		n = 1
	case vmi.IOThreadsAuto:
		n = 2 * int(d.CPU.VCPUs())
	case vmi.IOThreadsSupplementalPool:
		if d.IOThreads != nil && d.IOThreads.SupplementalPoolThreadCount != nil {
			n = int(*d.IOThreads.SupplementalPoolThreadCount)
		}
	}
	for _, disk := range d.Devices.Disks {
		if disk.DedicatedIOThread != nil && *disk.DedicatedIOThread {
			n++
		}
	}
	return n
}

// What a processor and a pod ask for if the user does not say.
const (
	cpuAllocationRatio = 10
	ephemeralStorage   = "50M"
)

// resources are what the compute container asks for: what the user asks for,
// with the overhead added to memory, and the devices that the VMI needs.
func resources(v *vmi.VirtualMachineInstance, c Config, overhead resource.Quantity) corev1.ResourceRequirements {
	d := &v.Spec.Domain
	req, lim := d.Resources.Requests.DeepCopy(), d.Resources.Limits.DeepCopy()
	if req == nil {
		req = corev1.ResourceList{}
	}
	if lim == nil {
		lim = corev1.ResourceList{}
	}
	bound(req)
	bound(lim)
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU} {
		if q, ok := lim[name]; ok && q.IsZero() {
			delete(lim, name) // no limit
		}
	}
	memory, ok := req[corev1.ResourceMemory]
	if !ok {
		memory = memoryRequest(d, c.Cluster.Pods)
	}
	if d.Memory != nil && d.Memory.Hugepages != nil {
		memory = hugepages(d, req, lim)
	}
	if !d.Resources.OvercommitGuestOverhead {
		memory.Add(overhead)
	}
	req[corev1.ResourceMemory] = memory
	if m, ok := lim[corev1.ResourceMemory]; ok {
		m.Add(overhead)
		lim[corev1.ResourceMemory] = m
	}
	if _, ok := req[corev1.ResourceCPU]; !ok {
		req[corev1.ResourceCPU] = cpuRequest(d, c.Cluster.Pods)
	}
	if d.CPU != nil && d.CPU.DedicatedCPUPlacement {
		dedicate(d, req, lim)
	}
	if _, ok := req[corev1.ResourceEphemeralStorage]; !ok {
		req[corev1.ResourceEphemeralStorage] = storageRequest(lim)
	}
	for _, name := range devices(v, c) {
		lim[name] = resource.MustParse("1")
	}
	bound(req)
	bound(lim)
	addHostDevices(d, lim)
	addNetworkResources(d, c.Facts, req, lim)
	if len(lim) == 0 {
		lim = nil
	}
	return corev1.ResourceRequirements{Requests: req, Limits: lim}
}

// mostMemory is more than any node has. The sums of the requests on a node fit into 64
// bits with it, in the thousandths with which the scheduler computes: with more they would
// overflow, and the pod would fit everywhere.
var mostMemory = resource.MustParse("512Ti")

// bound bounds the memory of a list, also that in huge pages.
func bound(list corev1.ResourceList) {
	for name, q := range list {
		if name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			list[name] = bounded(q)
		}
	}
}

// bounded is an amount of memory, or what no node has if it is more.
func bounded(q resource.Quantity) resource.Quantity {
	if q.Cmp(mostMemory) > 0 {
		return mostMemory.DeepCopy()
	}
	return q.DeepCopy()
}

// hugepages makes the guest's memory huge pages of the node, which are no memory for
// Kubernetes, and returns the memory that is left to ask for, which is none.
func hugepages(d *vmi.DomainSpec, req, lim corev1.ResourceList) resource.Quantity {
	size, err := quantity.Parse(d.Memory.Hugepages.PageSize)
	if err != nil {
		return resource.Quantity{} // refused by validation
	}
	// As the kubelet names it, whatever the user wrote.
	name := corev1.ResourceName(corev1.ResourceHugePagesPrefix + resource.NewQuantity(size.Value(), resource.BinarySI).String())
	pages := bounded(d.GuestMemory())
	pages = *resource.NewQuantity(pages.Value(), resource.BinarySI)
	if more, ok := req[name]; ok {
		pages.Add(more)
	} else if more, ok := lim[name]; ok {
		pages.Add(more)
	}
	req[name], lim[name] = pages, pages
	if _, ok := lim[corev1.ResourceMemory]; ok {
		lim[corev1.ResourceMemory] = resource.Quantity{}
	}
	return resource.Quantity{}
}

// dedicate asks for CPUs that no other pod uses: whole ones, as many as the guest has
// processors, and in a pod whose requests are its limits.
func dedicate(d *vmi.DomainSpec, req, lim corev1.ResourceList) {
	n := int64(d.CPU.VCPUs())
	if d.CPU.IsolateEmulatorThread {
		n++
	}
	cpus := *resource.NewQuantity(n, resource.DecimalSI)
	req[corev1.ResourceCPU], lim[corev1.ResourceCPU] = cpus, cpus
	lim[corev1.ResourceMemory] = req[corev1.ResourceMemory]
}

// memoryRequest is the memory that is asked for where the user named no
// request: the limit, or what the guest sees, less what is overcommitted.
func memoryRequest(d *vmi.DomainSpec, p config.Pods) resource.Quantity {
	if m, ok := d.Resources.Limits[corev1.ResourceMemory]; ok {
		return bounded(m)
	}
	m := bounded(d.GuestMemory())
	if p.MemoryOvercommit != 0 && p.MemoryOvercommit != 100 {
		return *resource.NewQuantity(int64(float64(m.Value())*100/float64(p.MemoryOvercommit)), m.Format)
	}
	return m.DeepCopy()
}

// cpuRequest is the processor time that is asked for where the user named no
// request: the limit, or a share of a processor for each that the guest sees and for
// each thread of its pool of I/O threads.
func cpuRequest(d *vmi.DomainSpec, p config.Pods) resource.Quantity {
	if cpu, ok := d.Resources.Limits[corev1.ResourceCPU]; ok {
		return cpu.DeepCopy()
	}
	ratio := int64(cmp.Or(p.CPUAllocationRatio, cpuAllocationRatio))
	// Rounded up: a pod that asks for nothing gets nothing on a busy node.
	threads := int64(d.CPU.VCPUs()) + int64(d.IOThreadPool())
	return *resource.NewMilliQuantity((threads*1000+ratio-1)/ratio, resource.DecimalSI)
}

// storageRequest is the space of the node that is asked for where the user named
// no request. It is never above the limit, which the API server would refuse.
func storageRequest(limits corev1.ResourceList) resource.Quantity {
	usual := resource.MustParse(ephemeralStorage)
	if l, ok := limits[corev1.ResourceEphemeralStorage]; ok && l.Cmp(usual) < 0 {
		return l.DeepCopy()
	}
	return usual
}

// devices are the node's devices that the VMI needs.
func devices(v *vmi.VirtualMachineInstance, c Config) []corev1.ResourceName {
	d := &v.Spec.Domain
	var out []corev1.ResourceName
	if !c.Emulation() {
		out = append(out, vmi.KVMResource)
	}
	for _, t := range c.traits() {
		if t.Resource != "" && t.Has(v) {
			out = append(out, t.Resource)
		}
	}
	taps := slices.DeleteFunc(slices.Clone(d.Devices.Interfaces), isDevice)
	if len(taps) > 0 {
		out = append(out, vmi.TunResource)
	}
	for _, i := range taps {
		if (i.Model == "" || i.Model == vmi.InterfaceModelVirtio) && !c.Emulation() {
			return append(out, vmi.VhostNetResource)
		}
	}
	return out
}

func isDevice(i vmi.Interface) bool { return i.IsDevice() }
