// Package admission serves the webhooks of Podvisor. It completes an object that is
// written, and refuses one with faults. It judges the evictions of launcher pods and the
// deletion of Podvisor.
//
// [Webhooks] is an HTTP handler with two webhooks. [DefaultsPath] adds what the user left
// out, so that all readers see the same. [ValidationPath] refuses an object that cannot
// work, with all of its faults. [Evictions] refuses the eviction of a pod whose VMI must
// not end by it. [Uninstalls] refuses the deletion of Podvisor itself while there are
// VMIs. [Owned] refuses what virt-controller creates and no user asks for. [Certificates]
// keeps the certificate of the webhooks. It writes into the webhook configurations which
// authority to trust, and at which secret path evictions and deletions are reviewed. All
// replicas share both in a Secret.
//
// No work of users depends on the webhooks. While none answers, objects are stored as they
// were written, and virt-controller completes and validates them before it acts. Evictions
// are allowed. So the API server goes on without an answer (failurePolicy Ignore), and
// does not wait long. Only the deletion of Podvisor, and what virt-controller itself
// creates, need one.
//
// What is wrong with an object and what completes it are decided by the row of its kind
// (vmi/kinds), as the cluster is configured. Defaults of fields that are not served are
// not stored (vmi/served). What may be evicted is decided by scheduler/instance. The
// package is a controller: it joins these with the clients of the API.
//
// Traps: what was written is stored as it was written. 1024Mi stays 1024Mi, and a list
// gets no more elements and no more fields in them. So a manifest can be applied again
// while no webhook answers, and a reader of a VMI must complete it. An update of a spec
// that means the same is made to be no update.
package admission
