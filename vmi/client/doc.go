// Package client reads and writes objects of the kinds of package vmi, and of any
// other kind, through the Kubernetes API.
//
// [New] makes a [Client] from the configuration that every client-go program
// has; [Of] makes of it [Objects], which read and write the objects of one kind of any
// API group in one namespace, by the kind's definition: group, version, path and scope
// follow from it. [Client.VirtualMachineInstances] and its siblings are short for that.
// Errors are those of k8s.io/apimachinery/pkg/api/errors.
//
// There are three ways to change an object. Update replaces it, and fails with
// a conflict if the object was written in between. Patch changes what the patch
// names. Apply makes what is set in a configuration so and leaves the rest to others:
// package vmi/applyconfiguration has the configurations. [WriteStatus] is for controllers.
//
// What users do with VMs besides are the verbs of [VirtualMachines] and
// [VirtualMachineInstances], of the API group subresources.kubevirt.io: starting and stopping, pausing, what the
// guest's agent reports, and streams as net.Conn: the serial console, the screen and the
// ports of a guest.
//
// Read of a stream returns io.EOF when the other side has closed it, and an error that wraps
// io.ErrUnexpectedEOF when it was cut: by the guest's end, by another client of the same
// console, or by a part of the cluster that was replaced. It is not opened again by itself.
// Close waits some seconds at most until what was written before has arrived, and says if
// that is not known. All methods may be called from any goroutine.
//
// [WaitForPhase] waits for a VMI, [WaitFor] for anything else. Package
// informer keeps caches, package fake is an API server for tests.
//
// The package is an edge: it touches the API server and nothing else. It does
// not decide, default or validate.
//
// What is stored may be more than the Go type of its kind can hold: an object that
// another version wrote, or that was stored while another schema was in force. Such
// an object does not keep a client from the others: it is decoded in part, marked
// (vmi.Unreadable), and named by the error of a read ([Objects]).
//
// Traps: a stream that is not read is ended by the other side after some time. An object
// that Update writes must hold all that was read; a client that is older than the API
// server drops the fields that it does not know. Use Patch or Apply where both may meet.
package client
