// Package console carries a guest's serial console: a copy of what the guest
// writes for the log of the pod ([Log]), the connection of an interactive console
// ([Serial]), and the terminal of the launcher's container, by which a user types into
// the guest with kubectl attach ([Terminal]).
//
// It is an edge: it touches a pipe and a socket of QEMU's, and a terminal.
//
// Traps: QEMU stops the guest when the pipe of its log is full, so a [Log] must be
// open before the domain is created. QEMU serves one connection to the serial port
// at a time and answers nothing to others, so every connection must go
// through the one [Serial].
package console
