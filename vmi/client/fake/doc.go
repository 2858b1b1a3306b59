// Package fake is an API server in memory that serves the kinds of package vmi,
// for the tests of those who program against them.
//
// [New] makes a [Server] that holds some objects; [Server.Config] is how clients
// reach it: those of package client, and any other that takes a rest.Config. No
// port is opened. The clients, informers and waits in a test are the real ones,
// and so is what goes over the wire:
//
//	c, err := client.New(fake.New(vmitest.New()).Config())
//
// The server keeps resource versions, generations, UIDs and conflicts, selects
// by label and field, watches from any version, has the subresources status and
// scale, holds back deletion for finalizers, and merges what is applied by the
// rules of server-side apply and of the lists in package vmi. [Server.Disconnect]
// and [Server.Expire] are the faults that a client must survive.
//
// It does not default, validate, prune or authorize, makes no machine run and
// deletes nothing that is owned by what is deleted: a test plays the controllers
// itself.
//
// The package is an edge beside package client, which it does not import.
package fake
