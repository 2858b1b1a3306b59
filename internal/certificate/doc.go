// Package certificate makes and renews the certificate of a server and the
// authority that its clients trust, so that both may be short-lived.
//
// [Policy.Renew] is all of it: it takes what there is, the time, and returns what
// there should be and when to look again. What is not due stays as it is, so any
// number of processes may share one [Bundle] and get the same result.
//
// An authority is followed by the next without a gap. The next is trusted, beside
// the one before, for a while before anything is signed by it:
//
//	authority 1   ├──────────────────────────────────┤
//	authority 2                          ├──────────────────────────────────┤
//	certificate   ├─ by 1 ─┼─ by 1 ─┼─ by 1 ─┼─ by 2 ─┼ …
//	                                     └ trusted, and signs nothing yet
//
// The key of an authority is dropped as soon as the next one is made: the
// certificate that bridges the time in between is signed in the same step.
//
// The package computes with a time that it is given and reads random numbers. It
// stores nothing and serves nothing.
package certificate
