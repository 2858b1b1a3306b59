// Package fake is an API server in memory, for tests of programs that use the kinds
// of package vmi.
//
// [New] makes a [Server] that serves the kinds of the table in vmi/kinds and holds
// some objects, [Serving] one that serves further kinds too; [Server.Config] is for
// its clients: those of package client, and any other that takes a rest.Config. No
// port is opened. The clients, informers and waits in a test are the real ones,
// and so are their requests:
//
//	c, err := client.New(fake.New(vmitest.New()).Config())
//
// The server keeps resource versions, generations, UIDs and conflicts, selects
// by label and field, watches from any version, has the subresources status and
// scale, holds back deletion for finalizers, and merges what is applied by the
// rules of server-side apply, all by the definition of the kind.
// It answers the verbs of the API group subresources.kubevirt.io by the rules of package
// internal/vmi/verb, as that API does: start and stop write to the VM what the real ones write, pause
// writes the condition.
// Its guests send back what they get, by their consoles, screens (after the greeting of RFB)
// and ports; their agents, if AgentConnected, report what is in the VMI's status.
// [Server.Disconnect] and [Server.Expire] are the faults that a client must survive.
//
// It answers discovery, so a RESTMapper, a manager of controller-runtime, a dynamic client and
// kubectl work with it (kubectl over httptest.NewServer: a Server is an http.Handler).
// Bodies are JSON or YAML, as custom resources are: protobuf is refused with 415, and
// [Server.Config] asks for JSON. A path that it does not serve is answered with an error that
// names the path and is not NotFound: it must not pass for an object that is not there.
//
// It does not default, validate, prune or authorize, runs no VMI, also not after a start,
// and deletes nothing that is owned by a deleted object: a test does the controllers'
// writes itself. Unknown fields are refused where a request asks for that (fieldValidation
// Strict, as kubectl does).
//
// The package is an edge beside package client, which it does not import.
package fake
