package vmi

import "k8s.io/apimachinery/pkg/api/resource"

// ResourceName is something that pods ask for in amounts: cpu, memory, or a
// resource that a node or a device plugin offers.
type ResourceName string

// The resources that every node has.
const (
	ResourceCPU     ResourceName = "cpu"
	ResourceMemory  ResourceName = "memory"
	ResourceStorage ResourceName = "storage"
)

// ResourceList holds amounts of resources by name.
type ResourceList map[ResourceName]resource.Quantity

// QOSClass is a quality-of-service class: how soon a pod is killed when its node
// runs out of memory. It means what it means for pods.
type QOSClass string

// The quality-of-service classes, the first killed last.
const (
	QOSGuaranteed QOSClass = "Guaranteed"
	QOSBurstable  QOSClass = "Burstable"
	QOSBestEffort QOSClass = "BestEffort"
)
