// Package client reads and writes objects of the kinds of package vmi, and of any other
// kind, through the Kubernetes API.
//
// [New] makes a [Client] from the configuration that every client-go program has. [Of]
// makes [Objects] of it, which read and write the objects of one kind in one namespace.
// The kind may be of any API group: its definition has group, version, path and scope.
// [Client.VirtualMachineInstances] and its siblings are short for that. Errors are those
// of k8s.io/apimachinery/pkg/api/errors.
//
// There are three ways to change an object. Update replaces it, and fails with a conflict
// if the object was written in between. Patch changes what the patch names. Apply makes
// what is set in a configuration so and leaves the rest to others: package
// vmi/applyconfiguration has the configurations. [WriteStatus], [ReplaceStatus] and
// [WriteMetadata] are for controllers.
//
// [VirtualMachines] and [VirtualMachineInstances] also have the verbs of the API group
// subresources.kubevirt.io. They start, stop and pause guests, and return what the guest's
// agent reports. They open streams as net.Conn: the serial console, the screen and the
// ports of a guest.
//
// Read of a stream returns io.EOF when the other side has closed it, and an error that
// wraps io.ErrUnexpectedEOF when it was cut. The guest's end cuts it, and so does its move to
// another node, another client of the same console, or the replacement of a component. It is
// not opened again by itself. Close waits some seconds at most until what was written before has arrived, and
// says if that is not known. All methods may be called from any goroutine.
//
// [WaitForPhase] waits for a VMI, [WaitFor] for anything else. Package informer keeps
// caches, package fake is an API server for tests.
//
// The package is an edge: it touches the API server and nothing else. It does not decide,
// default or validate.
//
// What is stored may be more than the Go type of its kind can hold. Another version may
// have written it, or another schema may have been in force. Such an object does not keep
// a client from the others. It is decoded in part, marked (vmi.Unreadable), and named by
// the error of a read ([Objects]).
//
// Traps: a stream that is not read is ended by the other side after some time. An object
// that Update writes must hold all that was read. A client that is older than the API
// server drops the fields that it does not know. Use Patch or Apply where both may meet.
package client
