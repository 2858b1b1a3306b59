// Package client reads and writes the kinds of package vmi through the
// Kubernetes API.
//
// [New] makes a [Client] from the configuration that every client-go program
// has; [Client.VirtualMachineInstances] reads and writes machines in one
// namespace, and [Client.Informer] keeps a cache of many. Both are client-go's
// own generic machinery at our types: errors are those of
// k8s.io/apimachinery/pkg/api/errors, caches those of k8s.io/client-go/tools/cache.
//
// The package is an edge: it touches the API server and nothing else. It does
// not decide, default or validate.
//
// Traps: objects from an informer's cache are shared; copy them (DeepCopy)
// before changing them. A cache is empty until it has synced; never conclude
// from an empty cache that something does not exist.
package client
