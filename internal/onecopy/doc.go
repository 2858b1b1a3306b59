// Package onecopy tests that a guest that moves runs once, whatever fails meanwhile: never two
// of its copies, and never none that is not lost.
//
// It joins the decisions of all processes, as they are: those of scheduler/migration,
// scheduler/instance, handler and launcher. The API server, the calls between the processes
// and the steps that a launcher does with libvirt are models, which lose answers, refuse, and
// are killed at any step. A walk is a text of bytes, each of which chooses the next event, so
// that the fuzzer finds further ones.
//
// The package computes; it touches nothing. The processes themselves are tried in e2e.
package onecopy
