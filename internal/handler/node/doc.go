// Package node marks a node as one that can run VMIs.
//
// [Heartbeat.Run] keeps the label kubevirt.io/schedulable, by which launcher pods
// are scheduled, and the annotation kubevirt.io/heartbeat, by which
// virt-controller sees that the node's handler works. Both are one patch, once a
// minute and when the answer changes. At an orderly end the label becomes false:
// no pod shall be scheduled to a node without a handler. Guests that run are not
// affected by that. Further annotations, as that of the handler's certificate, are
// written with them. When Podvisor is uninstalled, which [Removal] finds out, label
// and annotation are removed.
//
// The package is an edge: it touches the node object, and reads what says that
// Podvisor is uninstalled. Its caller decides whether the node is schedulable.
package node
