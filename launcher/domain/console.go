package domain

import "libvirt.org/go/libvirtxml"

// consolePart is the serial console.
//
// +podvisor:entry
var consolePart = Part{Name: "console", Build: console}

// console adds the guest's first serial port, which is its console: a socket for
// the program that attaches to it, and a log of what the guest writes.
func console(b *Draft) error {
	if !isOn(b.Spec.Devices.AutoattachSerialConsole, true) {
		return nil
	}
	s := libvirtxml.DomainSerial{
		Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind", Path: SerialSocket(b.Host.PrivateDir)}},
		Target: &libvirtxml.DomainSerialTarget{Port: new(uint(0))},
	}
	if b.Host.Arch == archARM {
		s.Target.Type, s.Target.Model = "system-serial", &libvirtxml.DomainSerialTargetModel{Name: "pl011"}
	}
	if b.Host.ConsoleLog != "" && isOn(b.Spec.Devices.LogSerialConsole, true) {
		s.Log = &libvirtxml.DomainChardevLog{File: b.Host.ConsoleLog, Append: "on"}
	}
	b.Domain.Devices.Serials = []libvirtxml.DomainSerial{s}
	b.Domain.Devices.Consoles = []libvirtxml.DomainConsole{{
		Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
		Target: &libvirtxml.DomainConsoleTarget{Type: "serial", Port: new(uint(0))},
	}}
	return nil
}
