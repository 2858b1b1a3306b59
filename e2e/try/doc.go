// Package try boots the VMI of a manifest on this host, for those who have never seen one:
// it installs what is missing, builds examples/run-vmi and the demo guest, and shows the
// guest's console until the guest is off.
//
// [Run] is the function. What it installs of the distribution stays, and so do the built
// program and image in the user's cache; nothing else does. libvirt and QEMU run without
// root: where this process is root, as the user 65534, which has no rights.
//
// Trap: the guest is switched off by a signal that this process gets, except SIGKILL, which
// leaves libvirt, QEMU and their folder /tmp/try….
package try
