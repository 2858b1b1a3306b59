package validate

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// Spec returns what is wrong with the spec of a VMI, or nothing. That a VMI
// says how much memory it has is checked by [Instance]: a template may
// leave it to an instance type.
func Spec(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	dom, dev := at.Child("domain"), at.Child("domain", "devices")
	l := quantity.Faults(at, s)
	if len(l) == 0 {
		l = append(memory(dom, &s.Domain, lim), cpu(at, s, lim)...)
	} else {
		l = append(l, amounts(dom.Child("resources"), &s.Domain, corev1.ResourceMemory)...)
		l = append(l, amounts(dom.Child("resources"), &s.Domain, corev1.ResourceCPU)...)
	}
	l = append(l, tooLarge(dom, &s.Domain)...)
	l = append(l, resources(dom.Child("resources"), s.Domain.Resources)...)
	for _, part := range []field.ErrorList{
		placement(at, s),
		affinity(at, s.Affinity),
		topologySpread(at.Child("topologySpreadConstraints"), s.TopologySpreadConstraints),
		tolerations(at.Child("tolerations"), s.Tolerations),
		dns(at, s),
		lifecycle(at, s),
		probes(at, s),
		accessCredentials(at.Child("accessCredentials"), s),

		platform(at, s, lim),
		firmware(dom, &s.Domain, lim.architecture(s.Architecture)),
		clock(dom.Child("clock"), s.Domain.Clock),
		onlyX86(dom, &s.Domain, lim.architecture(s.Architecture)),
		hyperv(at, &s.Domain),
		ioThreads(dom, &s.Domain),
		rebootPolicy(dom, &s.Domain, lim),
		launchSecurity(at, s, lim),

		volumes(at.Child("volumes"), s, lim),
		serviceAccount(at, s),
		disks(dev.Child("disks"), s, lim),
		filesystems(dev.Child("filesystems"), s),
		networks(at, s),
		interfaces(dev.Child("interfaces"), s, lim),
		bootOrders(at, &s.Domain.Devices),
		inputs(dev.Child("inputs"), s.Domain.Devices.Inputs),
		gpus(at, dev.Child("gpus"), s.Domain.Devices.GPUs, lim),
		hostDevices(at, dev.Child("hostDevices"), s.Domain.Devices.HostDevices, lim),
		resourceClaims(at, s),
		watchdog(dev.Child("watchdog"), s, lim),
		sound(at, dev.Child("sound"), s, lim),
		panicDevices(dev.Child("panicDevices"), s, lim),
		video(at, dev.Child("video"), s, lim),
		vsock(dev.Child("autoattachVSOCK"), &s.Domain.Devices, lim),
	} {
		l = append(l, part...)
	}
	return l
}

// placement checks what the pod takes over as it is.
func placement(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	if s.Hostname != "" {
		l = append(l, invalid(at.Child("hostname"), s.Hostname, validation.IsDNS1123Label(s.Hostname))...)
	}
	if s.Subdomain != "" {
		// A pod takes no dots, other than a subdomain of names.
		l = append(l, invalid(at.Child("subdomain"), s.Subdomain, validation.IsDNS1123Label(s.Subdomain))...)
	}
	if n := s.PriorityClassName; n != "" {
		l = append(l, invalid(at.Child("priorityClassName"), n, validation.IsDNS1123Subdomain(n))...)
	}
	if n := s.SchedulerName; n != "" {
		l = append(l, invalid(at.Child("schedulerName"), n, validation.IsDNS1123Subdomain(n))...)
	}
	for k, v := range s.NodeSelector {
		key := at.Child("nodeSelector").Key(k)
		l = append(l, invalid(key, k, validation.IsQualifiedName(k))...)
		l = append(l, invalid(key, v, validation.IsValidLabelValue(v))...)
	}
	return l
}

// lifecycle checks how a VMI starts and ends.
func lifecycle(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	if t := s.TerminationGracePeriodSeconds; t != nil {
		l = append(l, within(at.Child("terminationGracePeriodSeconds"), *t, 0, vmi.MostSeconds)...)
	}
	if e := s.EvictionStrategy; e != nil {
		l = append(l, exactlyOneOf(at.Child("evictionStrategy"), *e, vmi.EvictionNone, vmi.EvictionLiveMigrate, vmi.EvictionLiveMigrateIfPossible, vmi.EvictionExternal)...)
	}
	if st := s.StartStrategy; st != nil {
		l = append(l, exactlyOneOf(at.Child("startStrategy"), *st, vmi.StartPaused)...)
		if *st == vmi.StartPaused && s.LivenessProbe != nil {
			l = append(l, field.Invalid(at.Child("startStrategy"), *st, "excludes livenessProbe: a paused guest answers no probe and the VMI would fail. Leave one out"))
		}
	}
	return l
}

// rebootPolicy checks what a guest's reboot does.
func rebootPolicy(at *field.Path, d *vmi.DomainSpec, lim Limits) field.ErrorList {
	if d.RebootPolicy == "" {
		return nil
	}
	here := at.Child("rebootPolicy")
	l := oneOf(here, d.RebootPolicy, vmi.RebootPolicyReboot, vmi.RebootPolicyTerminate)
	if lim.Features.NoRebootPolicy {
		l = append(l, field.Invalid(here, d.RebootPolicy, "reboot policies are switched off in this cluster's configuration: leave it out"))
	}
	return l
}

// quote puts a value into a message.
func quote(s string) string { return strconv.Quote(s) }
