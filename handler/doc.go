// Package handler decides what a node does for one of its machines.
//
// [Decide] is the whole of it: it is given a machine as the API has it, what
// the machine's launcher tells and what this handler has done for it so far, and
// it answers with a [Plan]: the actions to take, the status that the machine
// shall have, and the events that go with it.
//
// What it does not do: make pods, judge a pod or a launcher that is gone
// (virt-controller sees the pod and does), start a guest (the launcher does).
//
// It computes; it touches nothing. handler/controller observes and acts.
//
// Trap: nothing is remembered between two decisions but what [Observed] holds,
// and all of that is read again after a restart. A handler that dies at any
// instruction and comes back puts what is wanted once more, to the same effect,
// and writes nothing that is there already.
package handler
