// Package console carries a guest's serial console: a copy of what the guest
// writes for the log of the pod ([Log]), and the connection of an interactive console
// ([Serial]).
//
// It is an edge: it touches a pipe and a socket of QEMU's.
//
// Traps: QEMU stops the guest when the pipe of its log is full, so a [Log] must be
// open before the domain is created. QEMU serves one connection to the serial port
// at a time and answers nothing to others, so every connection must go
// through the one [Serial].
package console
