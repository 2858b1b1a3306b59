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
// names. Apply makes what is set in an object so and leaves the rest to others;
// [Configuration] says what counts as set. [WriteStatus] is for controllers.
//
// What users do with VMs beside that are the verbs of [VirtualMachines] and [Instances],
// of the API group subresources.kubevirt.io: starting and stopping, pausing, what the
// guest's agent reports, and streams as net.Conn: the serial console, the screen and the
// ports of a guest.
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
// Traps: a stream that is not read is ended by the other side after some time. An object that Update writes must hold all that was read; a client that
// is older than the API server drops the fields that it does not know. Use Patch
// or Apply where both may meet.
package client
