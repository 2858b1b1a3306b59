package vmi

// PullPolicy says when a node pulls a container image.
type PullPolicy string

// When an image is pulled.
const (
	PullAlways       PullPolicy = "Always"
	PullIfNotPresent PullPolicy = "IfNotPresent"
	PullNever        PullPolicy = "Never"
)
