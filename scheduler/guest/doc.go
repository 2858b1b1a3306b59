// Package guest is the way from virt-controller to the launchers of VMIs: calls with a limit
// of time, and streams.
//
// [Guests] is the one value for the verbs of users (scheduler/subresource) and for the loops
// (scheduler/controller). An observation asks by [Guests.Call], and so does an action. No
// kind dials a node itself.
//
// What a loop must expect of a call:
//
//   - Every error is a [*vmi.Refusal]: its [vmi.Finding] can be a condition as it is.
//   - RefusedNotFound: no launcher of the VMI runs on its node. Asking again is of use only
//     when the VMI has changed.
//   - RefusedUnavailable: the handler or the launcher did not answer in time. Whether the
//     call was done is not known. A call that is [Guests.Idempotent] is made again in the next pass
//     and changes nothing if it was done. Another is not made again.
//   - A call takes a worker of the loop as long as [Guests.Limit] says, at most.
//
// The package is an edge: it touches the nodes, through [Nodes].
package guest
