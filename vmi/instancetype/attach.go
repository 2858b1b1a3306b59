package instancetype

import (
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// automatic are the preferences for what is attached automatically, which decide on the
// devices that all others are for.
func automatic(d *vmi.Devices, p *VirtualMachinePreferenceSpec) {
	if p == nil || p.Devices == nil {
		return
	}
	absent(&d.AutoattachGraphicsDevice, p.Devices.PreferredAutoattachGraphicsDevice)
	absent(&d.AutoattachMemBalloon, p.Devices.PreferredAutoattachMemBalloon)
	absent(&d.AutoattachPodInterface, p.Devices.PreferredAutoattachPodInterface)
	absent(&d.AutoattachSerialConsole, p.Devices.PreferredAutoattachSerialConsole)
	absent(&d.AutoattachInputDevice, p.Devices.PreferredAutoattachInputDevice)
}

// tablet is the name of the input that is attached automatically.
const tablet = "default-0"

func preferDevices(s *vmi.VirtualMachineInstanceSpec, p *DevicePreferences) {
	p = p.DeepCopy() // what is taken of it is the VMI's alone
	d := &s.Domain.Devices
	if p.PreferredDisableHotplug != nil {
		d.DisableHotplug = *p.PreferredDisableHotplug
	}
	absent(&d.UseVirtioTransitional, p.PreferredUseVirtioTransitional)
	absent(&d.BlockMultiQueue, p.PreferredBlockMultiQueue)
	absent(&d.NetworkInterfaceMultiQueue, p.PreferredNetworkInterfaceMultiQueue)
	absent(&d.Rng, p.PreferredRng)
	absent(&d.TPM, p.PreferredTPM)
	if d.Sound != nil {
		open(&d.Sound.Model, p.PreferredSoundModel)
	}
	if p.PreferredVideoType != "" {
		if d.Video == nil {
			d.Video = &vmi.Video{}
		}
		open(&d.Video.Type, p.PreferredVideoType)
	}
	for i := range d.Disks {
		preferDisk(&d.Disks[i], p)
	}
	for i := range d.Interfaces {
		preferInterface(s, &d.Interfaces[i], p)
	}
	preferInputs(d, p)
	preferPanicDevices(d, p.PreferredPanicDeviceModel)
}

func preferDisk(d *vmi.Disk, p *DevicePreferences) {
	if d.Disk == nil && d.CDRom == nil && d.LUN == nil {
		d.Disk = &vmi.DiskTarget{}
	}
	if d.CDRom != nil {
		open(&d.CDRom.Bus, p.PreferredCdromBus)
	}
	if d.LUN != nil {
		open(&d.LUN.Bus, p.PreferredLunBus)
	}
	if d.Disk == nil {
		return
	}
	open(&d.Disk.Bus, p.PreferredDiskBus)
	if p.PreferredDiskBlockSize != nil && d.BlockSize == nil {
		d.BlockSize = p.PreferredDiskBlockSize.DeepCopy()
	}
	open(&d.Cache, p.PreferredDiskCache)
	open(&d.IO, p.PreferredDiskIO)
	if d.Disk.Bus == vmi.DiskBusVirtio {
		absent(&d.DedicatedIOThread, p.PreferredDiskDedicatedIoThread)
	}
}

func preferInterface(s *vmi.VirtualMachineInstanceSpec, i *vmi.Interface, p *DevicePreferences) {
	open(&i.Model, p.PreferredInterfaceModel)
	onPodNetwork := slices.ContainsFunc(s.Networks, func(n vmi.Network) bool { return n.Name == i.Name && n.Pod != nil })
	if p.PreferredInterfaceMasquerade != nil && onPodNetwork && i.Binding == nil && len(i.Bindings()) == 0 {
		i.Masquerade = &vmi.InterfaceMasquerade{}
	}
}

func preferInputs(d *vmi.Devices, p *DevicePreferences) {
	preferred := p.PreferredInputBus != "" || p.PreferredInputType != ""
	if preferred && len(d.Inputs) == 0 && isTrue(d.AutoattachInputDevice) {
		d.Inputs = []vmi.Input{{Name: tablet}}
	}
	for i := range d.Inputs {
		open(&d.Inputs[i].Bus, p.PreferredInputBus)
		open(&d.Inputs[i].Type, p.PreferredInputType)
	}
}

func preferPanicDevices(d *vmi.Devices, model *vmi.PanicDeviceModel) {
	if model == nil {
		return
	}
	if len(d.PanicDevices) == 0 {
		d.PanicDevices = []vmi.PanicDevice{{}}
	}
	for i := range d.PanicDevices {
		absent(&d.PanicDevices[i].Model, model)
	}
}
