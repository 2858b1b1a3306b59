// Command entrygen writes the lists of what the module has several of: kinds of devices,
// kinds of volumes, bindings of interfaces, and kinds that are reconciled. Each is declared in a file of its own,
// with the marker +podvisor:entry, and is in the list of its package when this program
// has run. So a new one is a new file, and no list is written by hand.
//
// It runs in the folder of the module: see the target generate of the Makefile. Its test
// fails if a list is not up to date.
package main
