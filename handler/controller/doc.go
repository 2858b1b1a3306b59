// Package controller is the node agent's loop: it observes the machines of one
// node and their launchers, asks handler.Decide, and acts.
//
// [New] makes a [Controller] and [Controller.Run] runs it. A machine is looked
// at when the API server or its launcher says something new. The connection to a
// launcher is a goroutine per machine that begins when the machine is handed over
// and follows the launcher's states until the machine has ended; everything else
// is done by a few workers.
//
// It is a controller: it joins the API, the control protocol and the network
// edges, and decides nothing.
//
// While KubeVirt itself is installed in the cluster, nothing is done.
//
// Traps: nothing is concluded before the cache has been filled, and nothing at
// all from a launcher that does not answer. When a Controller ends, it leaves the
// machines as they are; the next one finds them by their launchers' states.
package controller
