package validate

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// bootOrders checks that no two devices are tried at the same place.
// KubeVirt reports an interface's 0 at an index of the spec.
func bootOrders(spec *field.Path, d *vmi.Devices) field.ErrorList {
	var l field.ErrorList
	taken := map[uint]*field.Path{}
	at := spec.Child("domain", "devices")
	order := func(here *field.Path, o *uint, zero string) {
		switch {
		case o == nil:
		case *o == 0:
			l = append(l, as(zero, field.Invalid(here, *o, "must be more than 0: the device with the lowest is tried first")))
		case taken[*o] != nil:
			l = append(l, field.Invalid(here, *o, "must be different from "+taken[*o].String()+", which comes first"))
		default:
			taken[*o] = here
		}
	}
	for i := range d.Disks {
		here := at.Child("disks").Index(i).Child("bootOrder")
		order(here, d.Disks[i].BootOrder, here.String())
	}
	for i := range d.Interfaces {
		order(at.Child("interfaces").Index(i).Child("bootOrder"), d.Interfaces[i].BootOrder, spec.Index(i).Child("bootOrder").String())
	}
	return l
}

func ioThreads(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	l := oneOf(at.Child("ioThreadsPolicy"), d.IOThreadsPolicy, vmi.IOThreadsShared, vmi.IOThreadsAuto, vmi.IOThreadsSupplementalPool)
	if d.IOThreadsPolicy != vmi.IOThreadsSupplementalPool {
		return l
	}
	if t := d.IOThreads; t == nil || t.SupplementalPoolThreadCount == nil || *t.SupplementalPoolThreadCount == 0 {
		pool := at.Child("ioThreads")
		l = append(l, as(pool.Child("count").String(), field.Invalid(pool.Child("supplementalPoolThreadCount"), 0, "must be at least 1 with ioThreadsPolicy supplementalPool")))
	}
	return l
}

func inputs(at *field.Path, all []vmi.Input) field.ErrorList {
	var l field.ErrorList
	for i := range all {
		l = append(l, oneOf(at.Index(i).Child("bus"), all[i].Bus, vmi.InputBusUSB, vmi.InputBusVirtio)...)
		l = append(l, exactlyOneOf(at.Index(i).Child("type"), all[i].Type, vmi.InputTablet)...)
	}
	return l
}

// filesystems checks what the guest sees as directories.
func filesystems(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	for i, f := range s.Domain.Devices.Filesystems {
		here := at.Index(i)
		if f.Virtiofs == nil {
			l = append(l, field.Required(here.Child("virtiofs"), "must be set, to {}: it is the only kind of file system"))
		}
		k := slices.IndexFunc(s.Volumes, func(v vmi.Volume) bool { return v.Name == f.Name })
		if k < 0 {
			l = append(l, field.Invalid(here.Child("name"), f.Name, "there is no volume of this name: add one to volumes, or remove the file system"))
			continue
		}
		if len(f.Name) > maxTag {
			l = append(l, field.TooLong(here.Child("name"), f.Name, maxTag))
		}
		if can := vmi.FilesystemKinds(); !slices.ContainsFunc(s.Volumes[k].Kinds(), func(kind string) bool { return slices.Contains(can, kind) }) {
			l = append(l, field.Invalid(here.Child("name"), f.Name, "a volume of this kind cannot be a file system, only "+enumeration(can)+": show it by a disk"))
		}
		if slices.ContainsFunc(s.Domain.Devices.Filesystems[:i], func(o vmi.Filesystem) bool { return o.Name == f.Name }) {
			l = append(l, field.Duplicate(here.Child("name"), f.Name))
		}
	}
	return l
}

// maxTag is the longest name by which a guest mounts a file system, in bytes.
const maxTag = 36

// enumeration is names as a sentence lists them.
func enumeration(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// gpus checks the GPUs that are passed through.
func gpus(spec, at *field.Path, all []vmi.GPU, lim Limits) field.ErrorList {
	var l field.ErrorList
	consoles := 0
	var claimed []claimed
	for i, g := range all {
		if g.ClaimRequest != nil {
			claimed = append(claimed, claimedDevice(at.Index(i), g.DeviceName, g.ClaimRequest))
		} else if g.DeviceName == "" {
			l = append(l, as(at.String(), field.Required(at.Index(i).Child("deviceName"), "name the resource of the device plugin, such as nvidia.com/TU104GL_Tesla_T4")))
		}
		if o := g.VirtualGPUOptions; o != nil && o.Display != nil && enabled(o.Display.Enabled) && (o.Display.RamFB == nil || on(o.Display.RamFB)) {
			consoles++
		}
	}
	if consoles > 1 {
		l = append(l, as(spec.Child("GPUs").String(), field.Invalid(at, plural(consoles, "display"),
			"at most one GPU shows the boot console: switch virtualGPUOptions.display.ramFB off for the others")))
	}
	for i, g := range all {
		l = append(l, deviceName(at.Index(i), g.Name, g.DeviceName, lim)...)
	}
	return append(l, claims(at, claimed, lim.Features.NoGPUsWithDRA)...)
}

// deviceNames are the names of devices of the node: libvirt has them as the devices' own.
var deviceNames = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// deviceName checks the name of a device of the node, and its resource.
func deviceName(at *field.Path, name, resource string, lim Limits) field.ErrorList {
	var l field.ErrorList
	if !deviceNames.MatchString(name) {
		l = append(l, field.Invalid(at.Child("name"), name, "must consist of the characters A-Z a-z 0-9 _ -"))
	}
	if resource != "" && lim.Devices != nil && !lim.Devices[resource] {
		l = append(l, field.Forbidden(at.Child("deviceName"), "the cluster's configuration does not permit "+resource+": name it in spec.configuration.permittedHostDevices "+
			"of the KubeVirt, or name one that is there"))
	}
	return l
}

func hostDevices(spec, at *field.Path, all []vmi.HostDevice, lim Limits) field.ErrorList {
	var l field.ErrorList
	var claimed []claimed
	plugged := 0
	for i, d := range all {
		if d.ClaimRequest != nil {
			claimed = append(claimed, claimedDevice(at.Index(i), d.DeviceName, d.ClaimRequest))
			continue
		}
		plugged++
		if d.DeviceName == "" {
			l = append(l, as(at.String(), field.Required(at.Index(i).Child("deviceName"), "name the resource of the device plugin, such as intel.com/qat")))
		}
	}
	if plugged > 0 && !lim.Features.HostDevices {
		l = append(l, as(spec.Child("HostDevices").String(), field.Invalid(at, plural(plugged, "device"),
			"devices of the node are switched off in this cluster's configuration: leave them out")))
	}
	for i, d := range all {
		l = append(l, deviceName(at.Index(i), d.Name, d.DeviceName, lim)...)
	}
	return append(l, claims(at, claimed, lim.Features.NoHostDevicesWithDRA)...)
}

func panicDevices(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	var l field.ErrorList
	all := s.Domain.Devices.PanicDevices
	for i, d := range all {
		if d.Model != nil {
			l = append(l, oneOf(at.Index(i).Child("model"), *d.Model, panicModels(lim.architecture(s.Architecture))...)...)
		}
	}
	if a := lim.architecture(s.Architecture); a == defaults.S390X && len(all) > 0 {
		l = append(l, field.Invalid(at, plural(len(all), "device"), "guests of s390x report a crash without a device: leave it out"))
	}
	return l
}

// panicModels are the models of panic devices of guests of an architecture.
func panicModels(arch string) []vmi.PanicDeviceModel {
	switch arch {
	case defaults.AMD64:
		return []vmi.PanicDeviceModel{vmi.PanicDeviceISA, vmi.PanicDeviceHyperv}
	case defaults.ARM64:
		return []vmi.PanicDeviceModel{vmi.PanicDevicePVPanic}
	}
	return []vmi.PanicDeviceModel{vmi.PanicDeviceISA, vmi.PanicDeviceHyperv, vmi.PanicDevicePVPanic}
}

// vsock checks the device for sockets between guest and node, by which a guest reaches
// what listens there, as no pod does.
func vsock(at *field.Path, d *vmi.Devices, lim Limits) field.ErrorList {
	if d.AutoattachVSOCK == nil || !*d.AutoattachVSOCK || lim.Features.VSOCK {
		return nil
	}
	return field.ErrorList{field.Invalid(at, true, "sockets between guests and their nodes are switched off in this cluster's configuration: leave it out")}
}

func watchdog(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	w := s.Domain.Devices.Watchdog
	if w == nil {
		return nil
	}
	var l field.ErrorList
	actions := []vmi.WatchdogAction{vmi.WatchdogPoweroff, vmi.WatchdogReset, vmi.WatchdogShutdown}
	if d := w.I6300ESB; d != nil {
		l = append(l, oneOf(at.Child("i6300esb", "action"), d.Action, actions...)...)
	}
	if d := w.Diag288; d != nil {
		l = append(l, oneOf(at.Child("diag288", "action"), d.Action, actions...)...)
	}
	switch a := lim.architecture(s.Architecture); {
	case a == defaults.ARM64:
		l = append(l, field.NotSupported[string](at, "watchdog on arm64", nil))
	case a == defaults.AMD64 && (w.I6300ESB == nil || w.Diag288 != nil):
		l = append(l, field.NotSupported(at, w.Name, []string{"i6300esb"}))
	case a == defaults.S390X && (w.Diag288 == nil || w.I6300ESB != nil):
		l = append(l, field.NotSupported(at, w.Name, []string{"diag288"}))
	}
	return l
}

// sound checks the sound card.
func sound(spec, at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	d := s.Domain.Devices.Sound
	if d == nil {
		return nil
	}
	var l field.ErrorList
	here := spec.Child("Sound").String()
	if d.Name == "" {
		l = append(l, as(here, field.Invalid(at.Child("name"), d.Name, "name the device")))
	}
	if d.Model != "" && d.Model != vmi.SoundICH9 && d.Model != vmi.SoundAC97 {
		l = append(l, as(here, field.Invalid(at.Child("model"), d.Model, "must be ich9 or ac97")))
	}
	if a := lim.architecture(s.Architecture); a != defaults.AMD64 {
		l = append(l, field.Invalid(at, d.Name, "guests of "+a+" have no sound card: leave it out"))
	}
	return l
}

// video checks the graphics card.
func video(spec, at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	v := s.Domain.Devices.Video
	if v == nil {
		return nil
	}
	var l field.ErrorList
	if !enabled(s.Domain.Devices.AutoattachGraphicsDevice) {
		l = append(l, as(spec.Child("video").String(), field.Invalid(at, v.Type, "a VMI with autoattachGraphicsDevice: false has no graphics card: leave one of the two out")))
	}
	types := map[string][]string{
		defaults.AMD64: {"vga", "cirrus", "virtio", "ramfb", "bochs"}, defaults.ARM64: {"virtio", "ramfb"}, defaults.S390X: {"virtio"},
	}[lim.architecture(s.Architecture)]
	if types != nil && !slices.Contains(types, v.Type) {
		l = append(l, field.NotSupported(at.Child("type"), v.Type, types))
	}
	return l
}
