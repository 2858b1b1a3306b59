// Package migration decides what is to be done for a VirtualMachineInstanceMigration: when it
// begins, what its phases say, what the handlers of both nodes are asked to do, and how it ends.
//
// [Decide] is a function of what was observed. [Eligible] says whether only the queue keeps a
// migration from its beginning, and [MayBegin] is the queue: who has a place is decided for all
// migrations of the cluster together, so it is asked under one lock. The package computes; it
// touches nothing.
//
// The guest is the handlers' and the launchers': this package hands the VMI over to both nodes
// and observes in its status where the guest runs. Nothing here decides that a guest whose
// memory was sent runs on at its source.
//
// Trap: the phases follow from status.migrationState of the VMI and lag behind it. Several
// transitions that are true at once are one write, with a timestamp of each phase.
package migration
