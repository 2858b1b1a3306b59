// Command init is the whole of the demo guest above its kernel: process 1 of
// a small guest that shows, in a few lines on its serial console, that
// everything around it works.
//
// In the order of [guest.boot] it mounts the kernel's file systems, loads the
// drivers the guest has devices for, reads a NoCloud seed (a disk labelled
// cidata) or a ConfigDrive (labelled config-2), configures the network by DHCP or as the seed says, serves a page with
// its host name on port 80, runs the seed's commands, gives a root shell on the
// serial console, starts QEMU's agent where the guest has a channel for it, and
// powers off in order when the power button is pressed. Busybox does what it does
// well: DHCP, HTTP, the shell.
//
// It is no cloud-init: of #cloud-config it reads what the tests and the demo
// use (see [userData]) and ignores the rest with a line on the console.
//
// Every line it prints begins with "podvisor-guest: "; tests wait for them, so
// they are part of its interface:
//
//	podvisor-guest: eth0 has address 10.0.2.2/24 from 10.0.2.1
//	podvisor-guest: booted in 2.1 s
//	podvisor-guest: ready, serving HTTP on port 80 as demo
//	podvisor-guest: press Enter for a root shell
//	podvisor-guest: user-data finished
//	podvisor-guest: power button pressed, shutting down in order
//	podvisor-guest: powering off
//
// Traps: process 1 must reap the orphans of others without stealing the exit
// status of its own children, so nothing here may use os/exec; see [children].
// Debian's cloud kernel has no driver for AHCI, USB and e1000: disks and NICs of
// these kinds are not seen by this guest.
package main
