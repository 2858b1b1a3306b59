// Package evacuation decides when a VMI is migrated because it has to leave its node.
//
// A VMI has to leave when status.evacuationNodeName is the node that it is on: the webhook
// for evictions writes it. It also has to when the node has the taint of nodes that are
// drained. [Decide] makes a migration of it. How many run at once, and what happens between one that
// fails and the next, is decided for migrations.
//
// It computes; it touches nothing.
//
// Trap: the name of the migration follows from the VMI and its last migration. So a plan
// that is made twice, by an old cache, makes one.
package evacuation
