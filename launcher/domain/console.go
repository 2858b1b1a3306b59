package domain

import "libvirt.org/go/libvirtxml"

// serials is the guest's first serial port: a socket for whoever attaches a
// console, and a copy of what the guest writes.
func serials(h Host) []libvirtxml.DomainSerial {
	s := libvirtxml.DomainSerial{
		Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind", Path: SerialSocket(h.PrivateDir)}},
		Target: &libvirtxml.DomainSerialTarget{Port: new(uint(0))},
	}
	if h.ConsoleLog != "" {
		s.Log = &libvirtxml.DomainChardevLog{File: h.ConsoleLog, Append: "on"}
	}
	return []libvirtxml.DomainSerial{s}
}

// consoles says that the first serial port is the guest's console.
func consoles() []libvirtxml.DomainConsole {
	return []libvirtxml.DomainConsole{{
		Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
		Target: &libvirtxml.DomainConsoleTarget{Type: "serial", Port: new(uint(0))},
	}}
}
