// Package races finds the reports of Go's race detector in what the containers of nodes
// write.
//
// A log is opened when it is first seen and read to its end even after it was removed, so
// that what a pod writes while it is deleted counts.
//
// It is an edge: it reads the folders of the kubelet's logs.
package races
