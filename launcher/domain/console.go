package domain

import "libvirt.org/go/libvirtxml"

// console adds the guest's first serial port, which is its console: a socket for
// the program that attaches to it, and a log of what the guest writes.
func console(b *build) error {
	if !isOn(b.spec.Devices.AutoattachSerialConsole, true) {
		return nil
	}
	s := libvirtxml.DomainSerial{
		Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind", Path: SerialSocket(b.host.PrivateDir)}},
		Target: &libvirtxml.DomainSerialTarget{Port: new(uint(0))},
	}
	if b.host.ConsoleLog != "" && isOn(b.spec.Devices.LogSerialConsole, true) {
		s.Log = &libvirtxml.DomainChardevLog{File: b.host.ConsoleLog, Append: "on"}
	}
	b.domain.Devices.Serials = []libvirtxml.DomainSerial{s}
	b.domain.Devices.Consoles = []libvirtxml.DomainConsole{{
		Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
		Target: &libvirtxml.DomainConsoleTarget{Type: "serial", Port: new(uint(0))},
	}}
	return nil
}
