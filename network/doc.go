// Package network plans how a machine's interfaces are connected to the
// networks of its pod.
package network
