// Package migration decides what is to be done for a VirtualMachineInstanceMigration. It says
// when it begins, what the handlers of both nodes are asked to do, and how it ends.
//
// [Decide] is a function of what was observed. [Eligible] says whether only the queue keeps a
// migration from its beginning. [MayBegin] is the queue. It gives the places to all migrations
// of the cluster together, so it is asked under one lock. The package computes; it touches
// nothing.
//
// The guest is the handlers' and the launchers'. This package hands the VMI over to both nodes,
// and observes in its status where the guest runs.
//
// Trap: the phases follow from status.migrationState of the VMI and lag behind it. Several
// transitions that are true at once are one write, with a timestamp of each phase.
package migration
