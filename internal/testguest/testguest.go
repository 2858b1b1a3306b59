// Package testguest is a guest for tests with a real QEMU: a boot sector that is up as
// soon as the firmware has loaded it, in a second also without KVM. testdata/guest.s says
// what it does.
package testguest

import _ "embed"

// Up is what the guest writes first to its serial port.
const Up = "test guest is up"

//go:embed testdata/guest.bin
var sector []byte

// Disk is a raw disk of 1 MiB that boots the guest.
func Disk() []byte {
	disk := make([]byte, 1<<20)
	copy(disk, sector)
	disk[510], disk[511] = 0x55, 0xaa
	return disk
}
