// Package process runs what the first process of a launcher's pod has to run
// beside its own work: it reaps ([Reaper]) and keeps the private libvirt daemon
// running ([Daemon]).
//
// It is an edge: it touches processes and the daemon's files.
//
// Traps: a process that runs as PID 1 must not wait for any child, or os/exec
// loses its own; the [Reaper] knows which are not its. libvirt 9.0 crashes when the
// user that it runs as has no line in /etc/passwd, so the image has one.
package process
