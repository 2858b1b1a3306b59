package validate

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// cpu checks the processors and what is asked of the node for them.
func cpu(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	dom, d := at.Child("domain"), &s.Domain
	l := amounts(dom.Child("resources"), d, corev1.ResourceCPU)
	c, here := d.CPU, dom.Child("cpu")
	if c == nil {
		return l
	}
	// In 64 bits, so that a product of three large numbers is not a small one.
	n, most := uint64(max(c.Cores, 1))*uint64(max(c.Sockets, 1)), lim.maxVCPUs()
	if n > most || n*uint64(max(c.Threads, 1)) > most {
		l = append(l, field.Invalid(topologyOrigin(dom, d), fmt.Sprintf("%d sockets × %d cores × %d threads", max(c.Sockets, 1), max(c.Cores, 1), max(c.Threads, 1)),
			fmt.Sprintf("must not be more than %d processors", most)))
	}
	if c.MaxSockets > 0 && c.Sockets > c.MaxSockets {
		l = append(l, tooManySockets(dom, d))
	}
	l = append(l, processorName(here.Child("model"), c.Model)...)
	for i, f := range c.Features {
		l = append(l, cpuFeature(here.Child("features").Index(i), f)...)
	}
	l = append(l, cpuOfArchitecture(at, c, lim.architecture(s.Architecture))...)
	if c.IsolateEmulatorThread && !c.DedicatedCPUPlacement {
		l = append(l, field.Invalid(here.Child("isolateEmulatorThread"), true, "needs dedicatedCpuPlacement: true"))
	}
	if c.NUMA != nil && c.NUMA.GuestMappingPassthrough != nil {
		l = append(l, numa(here.Child("numa", "guestMappingPassthrough"), d)...)
	}
	if c.DedicatedCPUPlacement {
		l = append(l, dedicated(dom, d)...)
	}
	return l
}

// topologyOrigin is where the number of processors was said: it follows from the
// limit or the request if nothing else is.
func topologyOrigin(at *field.Path, d *vmi.DomainSpec) *field.Path {
	if c := d.CPU; c.Cores == 1 && c.Threads == 1 {
		if q, ok := d.Resources.Limits[corev1.ResourceCPU]; ok && q.Value() == int64(c.Sockets) {
			return at.Child("resources", "limits", "cpu")
		}
		if q, ok := d.Resources.Requests[corev1.ResourceCPU]; ok && q.Value() == int64(c.Sockets) {
			return at.Child("resources", "requests", "cpu")
		}
	}
	return at.Child("cpu")
}

func tooManySockets(at *field.Path, d *vmi.DomainSpec) *field.Error {
	c, sockets, origin := d.CPU, at.Child("cpu", "sockets"), topologyOrigin(at, d)
	message := fmt.Sprintf("must not be more than cpu.maxSockets, %d", c.MaxSockets)
	if origin.String() == at.Child("cpu").String() {
		return field.Invalid(sockets, c.Sockets, message)
	}
	return as(sockets.String(), field.Invalid(origin, c.Sockets, message))
}

func cpuFeature(at *field.Path, f vmi.CPUFeature) field.ErrorList {
	var l field.ErrorList
	if f.Name == "" {
		l = append(l, field.Required(at.Child("name"), "name the feature, such as vmx"))
	}
	l = append(l, processorName(at.Child("name"), f.Name)...)
	all := []vmi.CPUFeaturePolicy{vmi.CPUFeatureForce, vmi.CPUFeatureRequire, vmi.CPUFeatureOptional, vmi.CPUFeatureDisable, vmi.CPUFeatureForbid}
	if len(oneOf(at, f.Policy, all...)) > 0 {
		l = append(l, field.NotSupported(at.Child("policy"), f.Policy, all))
	}
	return l
}

// processorName checks the name of a model or of a feature, which is the end of a
// node's label.
func processorName(at *field.Path, name string) field.ErrorList {
	if name == "" || len(name) <= maxProcessorName && processorNames.MatchString(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, fmt.Sprintf(
		"must be a name that libvirt knows, such as Haswell or sse4.2: at most %d letters, "+
			"digits, dots, dashes and underscores, with a letter or a digit first and last", maxProcessorName))}
}

// maxProcessorName is the longest name of a label.
const maxProcessorName = 63

var processorNames = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// cpuOfArchitecture checks what arm64 cannot do.
func cpuOfArchitecture(at *field.Path, c *vmi.CPU, arch string) field.ErrorList {
	if arch != defaults.ARM64 {
		return nil
	}
	if c.Model != "" && c.Model != vmi.CPUModelPassthrough {
		return field.ErrorList{field.NotSupported(at.Child("domain", "cpu", "model"), c.Model, []string{vmi.CPUModelPassthrough})}
	}
	return nil
}

func numa(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	var l field.ErrorList
	if !d.CPU.DedicatedCPUPlacement {
		l = append(l, field.Invalid(at, field.OmitValueType{}, "needs cpu.dedicatedCpuPlacement: true"))
	}
	if d.Memory == nil || d.Memory.Hugepages == nil {
		l = append(l, field.Invalid(at, field.OmitValueType{}, "needs memory.hugepages"))
	}
	return l
}

// maxDedicatedThreads is how many threads a core of a node has.
const maxDedicatedThreads = 2

// dedicated checks that the node can give whole CPUs: as many as the VMI has
// processors, and no memory that it may have to take back.
func dedicated(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	var l field.ErrorList
	here, res := at.Child("cpu", "dedicatedCpuPlacement"), at.Child("resources")
	limit, request := d.Resources.Limits[corev1.ResourceCPU], d.Resources.Requests[corev1.ResourceCPU]
	// A request that is the limit follows from it, or is corrected with it.
	if request.MilliValue()%1000 != 0 && request.Cmp(limit) != 0 {
		l = append(l, field.Invalid(res.Child("requests", "cpu"), request.String(), "must be a whole number with dedicatedCpuPlacement"))
	}
	if limit.MilliValue()%1000 != 0 {
		l = append(l, field.Invalid(res.Child("limits", "cpu"), limit.String(), "must be a whole number with dedicatedCpuPlacement"))
	}
	memLimit, memRequest := d.Resources.Limits[corev1.ResourceMemory], d.Resources.Requests[corev1.ResourceMemory]
	if memLimit.Sign() > 0 && memRequest.Sign() > 0 && memLimit.Cmp(memRequest) != 0 {
		l = append(l, field.Invalid(res.Child("requests", "memory"), memRequest.String(), "must equal the limit with dedicatedCpuPlacement, "+memLimit.String()))
	}
	if limit.Sign() > 0 && request.Sign() > 0 && limit.Value() != request.Value() {
		l = append(l, field.Invalid(here, true, fmt.Sprintf("needs resources.requests.cpu %s to equal resources.limits.cpu %s", request.String(), limit.String())))
	}
	n, asked := vcpus(d.CPU), max(limit.Value(), request.Value())
	if asked == 0 && n == 0 {
		l = append(l, field.Invalid(here, true, "needs the number of CPUs: in cpu.cores, cpu.sockets and cpu.threads, or in resources.limits.cpu"))
	}
	if asked > 0 && n > 0 && request.Value() != n && limit.Value() != n {
		l = append(l, field.Invalid(here, true, fmt.Sprintf("the VMI has %d processors but asks for %d CPUs in resources: leave one out or make them equal", n, asked)))
	}
	if d.CPU.Threads > maxDedicatedThreads {
		l = append(l, field.Invalid(here, true, fmt.Sprintf("needs cpu.threads to be at most %d, which is what a core of a node has, not %d", maxDedicatedThreads, d.CPU.Threads)))
	}
	return l
}

// vcpus is the number of processors, or 0 if the VMI does not say.
func vcpus(c *vmi.CPU) int64 {
	if c.Cores == 0 && c.Sockets == 0 && c.Threads == 0 {
		return 0
	}
	return int64(max(c.Cores, 1)) * int64(max(c.Sockets, 1)) * int64(max(c.Threads, 1))
}
