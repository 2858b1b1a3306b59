// Package instance decides what the cluster side does for a virtual machine
// instance: when its pod is made, when it is handed to the node, and when it is
// gone.
//
// [Decide] turns what was [Observed] into a plan. It is called after every
// change, remembers nothing, and has nothing to do when everything is as it
// should be: a plan that was carried out, observed again, gives the empty plan.
//
// [Eviction] says whether the pod of a machine may be evicted.
//
// The node's side, from Scheduled to the end, is package handler. This package
// computes; it touches nothing.
//
// Trap: Observed.Pod = nil must mean that the pod does not exist. A cache that
// has not seen it yet is not enough once the machine's phase says that there was
// one.
package instance
