// Package node tells the cluster that a node can run machines.
//
// [Heart.Run] keeps the label kubevirt.io/schedulable, by which launcher pods
// find their nodes, and the annotation kubevirt.io/heartbeat, by which
// virt-controller sees that the node's handler is alive. Both are one patch, once
// a minute and when the answer changes. At an orderly end the label becomes
// false: no pod shall come to a node where nobody takes care of it. Machines that
// run are not touched by that.
//
// The package is an edge: it touches the node object. Whether the node is
// schedulable is its user's to say.
package node
