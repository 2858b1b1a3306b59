// Package serve answers the API server when an object of package vmi is written:
// it completes the object and says what is wrong with it.
//
// [Admission] is an HTTP handler with two webhooks. [DefaultsPath] adds what the
// user left out, so that everybody reads the same; [ValidationPath] refuses an
// object that cannot work, with all of its faults. [Evictions] is a third, which
// refuses the eviction of a pod whose machine must not end by it. [Certificates]
// keeps the certificate that the API server trusts, and tells the API server which
// to trust and at which secret path evictions are asked about; several processes
// share both in a Secret.
//
// Nothing depends on the webhooks: while nobody answers, objects are stored as
// they were written, and virt-controller completes and validates them before it
// acts; evictions go on. So the API server is told to go on without an answer
// (failurePolicy Ignore), and not to wait long.
//
// What is right and what is left out are decided by vmi/defaults and
// vmi/validate, as the cluster is configured; the file of each kind, for example
// instance.go, is where they are called. Which defaults are stored is the
// schema's to say, by the table of vmi/served. What may be evicted is decided by
// scheduler/instance. The package is a controller: it joins these with
// the API's clients.
//
// Traps: what was written is stored as it was written: 1024Mi stays 1024Mi, and a
// list gets no more elements and no more fields in them. So a manifest can be
// applied again while nobody answers, and who reads a machine must complete it.
// An update of a spec that means the same is made to be no update.
package serve
