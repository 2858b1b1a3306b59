// Package controller is virt-handler's loop: it observes the VMIs of one node and their
// launchers, asks handler.Decide, and acts.
//
// [New] makes a [Controller] and [Controller.Run] runs it. It watches the VMIs that run on
// the node and those that a migration moves to it. It has a session with the launcher in
// each of their pods there. A VMI is reconciled when the API server or a launcher of it
// reports a change. A session starts when the VMI is handed over, or moves to the pod. It
// follows the launcher's states until the domain has ended. Everything that waits for the
// launcher is done by the session's own goroutine, one task at a time. The workers, which
// all VMIs share, wait only for the API server.
//
// A tenant controls the launcher. What a session costs is limited: its states and tasks by
// time, its lines in the log, and the writes of the VMI's status. All VMIs of a namespace
// share these writes. A change of the phase is written at once; phases go forward only.
//
// A launcher that hangs keeps its socket open. A session therefore asks for the state
// every handler.HeartbeatPeriod. A request without an answer breaks the connection, and so
// does a stream that does not bring what the answer says. Connecting again is tried with
// growing delays of up to a second.
//
// [Controller.Pause] and [Controller.Unpause] make the calls of the launcher for who
// serves requests. They are not exposed on the network here.
//
// It is a controller: it joins the API, the control protocol and the network edges, and
// decides nothing.
//
// While KubeVirt itself is installed in the cluster, nothing is done.
//
// Traps: nothing is concluded before the cache has been filled. When a Controller ends,
// guests run on; the next one continues from their launchers' states.
package controller
