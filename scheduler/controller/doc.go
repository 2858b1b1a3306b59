// Package controller is virt-controller: the loop that makes a pod for each
// virtual machine instance and hands it to its node.
//
// [New] makes a [Controller] and [Controller.Run] runs it until its context
// ends. For each machine that changed, or whose pod did, it observes, lets
// package scheduler/instance decide, and acts. [Lead] runs it, or anything else,
// in one process of several.
//
// The package is a controller: it joins the cores below scheduler with the
// clients of the API. It holds nothing that matters; it may be killed at any
// time and be started again.
//
// Traps: several controllers at the same time do no harm, since the name of a
// pod follows from its machine and each status write carries a resourceVersion,
// but they cost writes that fail; use Lead. The informer of pods sees launcher
// pods only, so a pod that is missing in it may exist.
package controller
