// Package cluster runs real Kubernetes clusters on this machine.
package cluster
