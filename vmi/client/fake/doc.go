// Package fake is an API server in memory, for tests of programs that use the kinds of
// package vmi.
//
// [New] makes a [Server] that serves the kinds of the table in vmi/kinds and holds some
// objects. [Serving] makes one that serves further kinds too. [Server.Config] is for its
// clients: those of package client, and any other that takes a rest.Config. No port is
// opened. The clients, informers and waits in a test are the real ones, and so are their
// requests:
//
//	c, err := client.New(fake.New(vmitest.New()).Config())
//
// The server keeps resource versions, generations and UIDs, and answers conflicts. It
// selects by label and field, and watches from any version. It has the subresources status
// and scale, and holds back deletion for finalizers. It merges what is applied by the
// rules of server-side apply. The definition of the kind decides all of this. It answers
// the verbs of the API group subresources.kubevirt.io by the rules of package
// internal/vmi/verb, as that API does. Start and stop write to the VM what the real ones
// write, and pause writes the condition. Its guests echo what they get, by their consoles,
// screens (after the greeting of RFB) and ports. Their agents, if AgentConnected, report
// what is in the VMI's status. [Server.Disconnect] and [Server.Expire] are the faults that
// a client must survive.
//
// It answers discovery, so a RESTMapper, a manager of controller-runtime, a dynamic client
// and kubectl work with it. kubectl needs httptest.NewServer, since a Server is an
// http.Handler. Bodies are JSON or YAML, as custom resources are: protobuf is refused with
// 415, and [Server.Config] asks for JSON. A path that it does not serve is answered with
// an error that names the path. It is not NotFound, so that it does not pass for an object
// that is not there.
//
// It does not default, validate, prune or authorize. It runs no VMI, even after a start,
// and deletes nothing that a deleted object owned. A test does what controllers do:
// [Server.Add] adds what they would create. Unknown fields are refused where a request
// asks for that (fieldValidation Strict, as kubectl does).
//
// The package is an edge, and does not import package client.
package fake
