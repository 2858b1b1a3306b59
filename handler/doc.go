// Package handler decides what a node does for one VirtualMachineInstance (VMI).
//
// [Pods] says which pods a VMI has on this node, and what each is for it: the VMI runs in
// one, or moves to it. [Decide] is the main function. It gets the VMI as the API has it,
// one of these pods and the [Session] with the launcher in it. It returns a [Plan]: the
// actions to take, the desired status of the VMI, and its events.
// [protocol.State.Sanitized] limits what a launcher reports before it is observed.
//
// It neither creates nor deletes pods, nor judges a pod that is gone: virt-controller does
// that. It starts no guest: the launcher does.
//
// A launcher that does not answer is reported after [SilenceDelay]. What follows depends
// on what is certain. If the phase is still Scheduled, no guest was ever reported to run,
// and the VMI fails at [StartDeadline]. virt-controller ends the pod of a failed VMI, so
// no guest runs afterwards, whatever the launcher did. If the phase is Running, the guest
// may run on as long as the pod's container does, whose process 1 is the launcher. The VMI
// stays Running with Ready False. It fails when virt-controller observes that the pod has
// ended. KubeVirt fails such a VMI after three minutes; that would end a guest that works.
//
// It computes; it touches nothing. handler/controller observes and acts.
//
// Trap: nothing is remembered between two decisions but what [Observed] holds, and all of
// that is read again after a restart. A handler that is killed at any instruction and
// started again sends the same Desired once more, to the same effect. It writes no status
// that is there already.
package handler
