// Package fault sweeps the components through faults: each is injected at every step of a
// trace, one at a time, and what the trace ends with must be what it ends with without faults.
//
// The programs are those of the images, unchanged, and the API server is a real one. A [Proxy]
// between the two counts the steps: requests, events of watches, and reviews. At one of them
// it injects a fault of one [Kind]. Nodes, the scheduler and the garbage collector are played
// by the tests, so that a point takes a second or two, and points run beside each other: the
// proxy confines a component to one namespace.
//
// virt-controller is tried with played launchers and handlers: a VMI is migrated, and leaves its
// node again when its pod is evicted, and a pool changes the template of its VMs. virt-handler is tried beside a virt-controller and a
// virt-handler of another node without faults: its launchers are processes, each with a network
// namespace in which it binds the pod's network. A VMI is migrated to the other node and back:
// between such handlers a migration may fail, and is then made again, but its guest runs in one
// pod at a time and is not lost.
//
// A point is a component, a kind of fault and a step. TestPoints runs some, chosen by
// -seed, and all of them with -whole; or the one of -component, -kind and -step, which is the
// command that a failure prints. Nothing is tried twice.
//
// What is done and what is required are two functions: trace and oracle. At any time a claim
// has one writer: the processes of launchers are counted when they begin and when they end. A feature adds to
// the trace the objects and changes that it brings, and to the oracle what is compared
// of them. The names of the steps and how many there are at least are in testdata: fewer is a failure.
package fault
