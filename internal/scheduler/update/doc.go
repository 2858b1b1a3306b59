// Package update decides which VMIs get the launcher of this version while they run, after
// an upgrade.
//
// A VMI whose launcher is outdated has the label kubevirt.io/outdatedLauncherImage. The
// configuration of the cluster says what may be done with it: nothing, a migration, or an
// eviction. [Decide] chooses for all VMIs of the cluster together, since the limits of
// migrations and the batches of evictions are the cluster's. It makes a migration only where
// there is a place for it that no other migration waits for. An eviction is for a VMI that cannot move.
//
// It computes; it touches nothing.
//
// Trap: an eviction may be refused, as of a VMI that may only migrate. Then others are asked
// for before it, and it is asked for again in a later batch.
package update
