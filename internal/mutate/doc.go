// Command mutate tries the proofs of package internal/proof: it takes a field out of the
// programs, runs the test that sees the field's effect, and requires that the test fails.
//
//	go run ./internal/mutate [-fields REGEXP] [-tests REGEXP]
//
// A field is taken out by go's -overlay, in what is compiled for the test and in what the test
// compiles itself, as the images of a cluster. It has no JSON name, so that it is in no object
// that is read or written, and copies of objects do not have it; what writes it, writes it no
// more: the programs one of a status, and the test's package any other. The API server still
// knows it.
// Each test runs once as it is first, and must pass. A test that skips here is said to, and
// proves nothing on this host; one that goes through its fields itself is not run again.
//
// Its own tests are those that every change needs: each proof names an assertion that is in
// its test. It runs for hours with clusters: see the target test-proofs of the Makefile.
package main
