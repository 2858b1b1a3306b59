// Package controller is virt-handler's loop: it observes the VMIs of one node and
// their launchers, asks handler.Decide, and acts.
//
// [New] makes a [Controller] and [Controller.Run] runs it. A VMI is reconciled when
// the API server or its launcher reports a change. The session with a launcher is a
// goroutine per VMI that starts when the VMI is handed over and follows the
// launcher's states until the domain has ended; everything else is done by a few
// workers, which a launcher can hold for handler.AnswerTimeout per action.
//
// A launcher that hangs keeps its socket open. A session therefore asks for the
// state every handler.HeartbeatPeriod, and a request that is not answered, or a
// stream that does not bring what the answer says, breaks the connection. Connecting
// again is tried with growing delays of up to a second.
//
// It is a controller: it joins the API, the control protocol and the network edges,
// and decides nothing.
//
// While KubeVirt itself is installed in the cluster, nothing is done.
//
// Traps: nothing is concluded before the cache has been filled. When a Controller
// ends, guests run on; the next one continues from their launchers' states.
package controller
