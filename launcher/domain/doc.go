// Package domain turns a virtual machine instance into a libvirt domain.
//
// [Build] takes the instance with its defaults applied and a [Host]: what the pod offers.
// Each kind of device is a [Part] in a file of its own. A new kind is a new file, whose
// part has the marker +podvisor:entry for the generated list [Parts]. A program that
// embeds the package adds its own to Host.Parts. Where a device is on its bus is a
// [Place]: places that are known are kept, whatever else is added or removed. The others
// are in the part of the device, and in port.go for what is behind ports. So the place of
// a device does not depend on its neighbours.
//
// The package neither observes the host nor calls libvirt, and it decides no defaults. An
// empty field of the spec is left to QEMU. The only exception is the machine type: the
// default is q35, for which the devices are made. It computes; it touches nothing.
//
// Traps: libvirt refuses a domain whose UUID differs from the one in its SMBIOS data, or
// two of whose devices have one alias. Unix socket paths end at 107 bytes, so those of the
// VMI are given in full rather than made by libvirt below its own folders. The processor
// of an emulated guest is a fixed model with fixed features. libvirt's mode "maximum"
// gives what a version of QEMU can emulate, and so another processor after an upgrade.
package domain
