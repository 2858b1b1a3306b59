// Package supervisor is virt-launcher: the first process of a VMI's pod.
//
// [Supervisor.Run] starts the private libvirt daemon and serves the control protocol. It
// makes the disks and the domain when the handler desires them. It asks the guest to power
// off when its context ends. Its loop observes, calls launcher.Decide and executes the
// actions of the plan.
//
// It is a controller: it joins launcher, domain, libvirt, control, process, console,
// storage and network.
//
// Traps: libvirt reports how a transient domain ended once, in an event; if the session is
// lost at that moment, QEMU's exit status says it. A call to libvirt and the events that
// it causes come over two connections in any order. So the state is read again after a
// call, unless an event came meanwhile.
package supervisor
