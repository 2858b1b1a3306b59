// Package instance decides what the cluster side does for a VirtualMachineInstance. It
// decides when its pod is made, when it is handed to the node, why it is not ready, and
// when it is gone.
//
// [Decide] turns what was [Observed] into a plan. It is called after every change and
// remembers nothing. It has nothing to do when everything is as it should be: after a plan
// was carried out, the next one is empty. [PodsByRole] says which of several pods a VMI
// runs in.
//
// [PodWaitsSilently] says of which pods the events are to be read, and [Silence] says
// when. What the kubelet cannot do before the first container is nowhere else.
//
// [Eviction] says whether a pod of a VMI may be evicted.
//
// The node's side, from Scheduled to the end, is package handler. This package computes;
// it touches nothing.
//
// Trap: that a pod, a node or a claim is missing from Observed must mean that it does not
// exist. A cache that has not seen it yet is not enough, except for the pod of a VMI that
// is not Scheduling yet.
package instance
