// Package handler decides what a node does for one VirtualMachineInstance (VMI).
//
// [Pods] says which pods a VMI has on this node, and what each is for it: the VMI runs in
// one, or moves to it. [Decide] is the main function. It is given the VMI as the API has
// it, one of these pods and the [Session] with the launcher in it, and returns a
// [Plan]: the actions to take, the status that the VMI shall have, and the events
// that go with it. [protocol.State.Sanitized] limits what a launcher reports before it is
// observed.
//
// It does not create or delete pods, judge a pod that is gone (virt-controller
// observes the pod and does), or start a guest (the launcher does).
//
// A launcher that does not answer is reported after [SilenceDelay]. What follows
// depends on what is certain. If the phase is still Scheduled, no guest was ever
// reported to run, and the VMI fails at [StartDeadline]; virt-controller ends the
// pod of a failed VMI, so that the guest does not run afterwards whatever the
// launcher did. If the phase is Running, the guest may run on as long as the
// pod's container does, whose process 1 the launcher is: the VMI stays Running
// with Ready False, and it fails when virt-controller observes that the pod has
// ended. KubeVirt fails such a VMI after three minutes; that would end a guest
// that works.
//
// It computes; it touches nothing. handler/controller observes and acts.
//
// Trap: nothing is remembered between two decisions but what [Observed] holds,
// and all of that is read again after a restart. A handler that is killed at any
// instruction and started again puts the same Desired once more, to the same
// effect, and writes no status that is there already.
package handler
