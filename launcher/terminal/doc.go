// Package terminal shares a terminal between the console of a guest and a log. The
// terminal is that of the launcher's container, by which a user types into the guest with
// kubectl attach. Or it is that of a program which shows a console.
//
// It is an edge: it touches a terminal.
//
// Traps: a raw terminal sends no signals, so that Ctrl-C is for the guest. A program that
// ends without [Terminal.Close] leaves the terminal raw.
package terminal
