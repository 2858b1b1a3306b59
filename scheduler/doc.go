// Package scheduler is the vocabulary of the cluster side: what a decision about
// an object can ask for.
//
// A [Plan] is a list of actions in the order in which they are to be done, and
// the time after which to decide again. It is the same for all kinds;
// [WriteStatus] has the kind's type as parameter. The packages below decide
// (scheduler/instance) and render (scheduler/pod); scheduler/controller observes
// and acts. The package computes; it touches nothing.
//
// Trap: an executor stops at the first action that does not succeed. A plan is
// made for one observation and is never repeated: observe again instead.
package scheduler
