// Package version says what a program was built from. [Of] is the main function: it
// takes what was linked into the program, as images have it, or else what Go wrote
// into it, as "go install" and "go build" do. A program that imports the module has the
// version of that module.
//
// Builds whose result must not depend on a checkout say -buildvcs=false, and then link
// what [Info.Flags] returns.
package version
