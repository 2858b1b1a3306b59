// Package supervisor is virt-launcher: the first process of a machine's pod.
//
// [Supervisor.Run] starts the private libvirt daemon and keeps it running,
// serves the control protocol, makes the disks and the domain when the handler
// wants them, copies the guest's serial console to a writer, and asks the guest
// to power off when its context ends. It observes, asks launcher.Decide and
// acts; what is decided where is said there. As the first process it also reaps
// whatever is left behind by others.
//
// It is a controller: it joins launcher, domain, libvirt, control, storage and
// network.
//
// Traps: a process that runs as PID 1 must not wait for any child, or os/exec
// loses its own: see reaper.go. libvirt tells how a transient domain ended once,
// in an event; if the daemon is away at that moment, QEMU's exit status says it.
// QEMU stops when its console log is a full pipe: see console.go. libvirt 9.0
// crashes when the user that it runs as has no line in /etc/passwd, so the image
// has one.
package supervisor
