// Package cni says by annotations of a pod which networks Multus attaches to it, and reads
// what Multus has attached.
//
// [Selection] are the annotations that the pod of a VMI needs. [Links] are the names that
// its networks then have in the pod: the annotations request them, so they are known
// before the pod exists. [ParseStatus] reads the annotation that Multus writes when it has
// attached a pod, and [Interfaces] are the interfaces of the VMI that it names.
//
// Both annotations are of the NetworkAttachmentDefinition standard, version 1. CNI's own
// types describe the results of plugins, which no pod has.
//
// [Definitions] are the NetworkAttachmentDefinitions that the VMI names, of which only the
// resource that [ResourceAnnotation] names matters: the pod asks for it.
//
// It computes; it touches nothing. What a definition configures is read by Multus, from
// the namespace that the VMI names, as for every other pod.
//
// Traps: whoever may update a pod may write its status annotation. Nothing that binds a
// guest to a network reads it: the links in the pod's network namespace are read instead.
package cni
