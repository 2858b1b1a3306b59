// Package testlog reads what `go test -json` writes: it prints what a person reads of it,
// and says which tests took longest.
//
// [Print] prints the lines of `go test` without -v: one for each package, and before that
// of a package that failed all that its failed tests wrote. It notes how long each test
// took, in lines that [Slowest] reads, so that one list can be made of several runs.
//
// It is core: it reads and writes what it is given.
package testlog
