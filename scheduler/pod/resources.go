package pod

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// Guest is what the memory that a pod needs beside its guest's depends on.
type Guest struct {
	// Memory is the memory that the guest sees.
	Memory resource.Quantity
	// VCPUs is the number of processors that the guest sees.
	VCPUs uint32
	// Emulated says that the guest runs without hardware virtualization.
	Emulated bool
	// UEFI says that UEFI firmware starts the guest.
	UEFI bool
	// TPM says that the guest has an emulated TPM.
	TPM bool
	// AgentProbes is the number of probes that ask the guest's agent.
	AgentProbes int
}

// The parts of the overhead, in bytes. Measured with one guest of 128 MiB:
// launcher 13 MB, libvirt daemon 25–28 MB, both resident; QEMU 35–46 MB more
// than the guest's memory under emulation with a translation cache of 32 MiB.
// Each has some reserve, for what a device, a client or a console adds.
const (
	mib             = 1 << 20
	launcherMemory  = 20 * mib
	daemonMemory    = 36 * mib
	qemuMemory      = 48 * mib
	perVCPUMemory   = 4 * mib
	emulationMemory = 40 * mib
	// A probe that asks the agent is a process of 10 MB resident, of which most is
	// the program that it shares with the launcher.
	agentProbeMemory = 8 * mib
	// The firmware and its variables, which QEMU maps.
	uefiMemory = 8 * mib
	// The emulator, and what makes its keys and certificates before the first start.
	tpmMemory = 16 * mib
	// pageTables: one entry of 8 bytes for each page of 4096.
	pageTables = 512
)

// Overhead is the memory that a launcher pod needs beside its guest's: that of
// the launcher, the libvirt daemon and QEMU, of the tables with which the guest's
// memory is mapped, of probes that ask the guest's agent, of UEFI firmware and a TPM, and of
// translated code where the guest is emulated.
func Overhead(g Guest) resource.Quantity {
	n := int64(launcherMemory + daemonMemory + qemuMemory)
	n += int64(g.VCPUs) * perVCPUMemory
	n += int64(g.AgentProbes) * agentProbeMemory
	n += g.Memory.Value() / pageTables
	if g.Emulated {
		n += emulationMemory
	}
	if g.UEFI {
		n += uefiMemory
	}
	if g.TPM {
		n += tpmMemory
	}
	// Whole MiB, which people can read.
	return *resource.NewQuantity((n+mib-1)/mib*mib, resource.BinarySI)
}

func guest(v *vmi.VirtualMachineInstance, c Config) Guest {
	d := &v.Spec.Domain
	return Guest{Memory: d.GuestMemory(), VCPUs: d.CPU.VCPUs(), Emulated: c.emulation(), UEFI: d.UEFI() != nil, TPM: d.Devices.TPM.On(), AgentProbes: agentProbes(v)}
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
	memory, ok := req[corev1.ResourceMemory]
	if !ok {
		memory = memoryRequest(d, c.Cluster.Pods)
	}
	memory.Add(overhead)
	req[corev1.ResourceMemory] = memory
	if m, ok := lim[corev1.ResourceMemory]; ok {
		m.Add(overhead)
		lim[corev1.ResourceMemory] = m
	}
	if _, ok := req[corev1.ResourceCPU]; !ok {
		req[corev1.ResourceCPU] = cpuRequest(d, c.Cluster.Pods)
	}
	if _, ok := req[corev1.ResourceEphemeralStorage]; !ok {
		req[corev1.ResourceEphemeralStorage] = storageRequest(lim)
	}
	for _, name := range devices(d, c) {
		lim[name] = resource.MustParse("1")
	}
	if len(lim) == 0 {
		lim = nil
	}
	return corev1.ResourceRequirements{Requests: req, Limits: lim}
}

// memoryRequest is the memory that is asked for where the user named no
// request: the limit, or what the guest sees, less what is overcommitted.
func memoryRequest(d *vmi.DomainSpec, p config.Pods) resource.Quantity {
	if m, ok := d.Resources.Limits[corev1.ResourceMemory]; ok {
		return m.DeepCopy()
	}
	m := d.GuestMemory()
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
func devices(d *vmi.DomainSpec, c Config) []corev1.ResourceName {
	var out []corev1.ResourceName
	if !c.emulation() {
		out = append(out, vmi.KVMResource)
	}
	if len(d.Devices.Interfaces) > 0 {
		out = append(out, vmi.TunResource)
	}
	for _, i := range d.Devices.Interfaces {
		if (i.Model == "" || i.Model == vmi.InterfaceModelVirtio) && !c.emulation() {
			return append(out, vmi.VhostNetResource)
		}
	}
	return out
}
