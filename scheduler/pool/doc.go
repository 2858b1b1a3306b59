// Package pool decides what is to be done for a VirtualMachinePool: which VMs are made,
// changed, restarted and deleted, and what its status says.
//
// [Decide] is a function of what was observed. A VM belongs to the pool that controls it,
// and to no other: one whose owner was removed goes on alone. The names of VMs are those of
// the pool and an ordinal, the lowest that is free. So a plan that is carried out twice, or
// decided from an old cache, makes no VM twice.
//
// Each template has a revision, and each VM the label of the one that it has. A VM that is
// off gets a new one at once. One that runs is changed and restarted when it has its turn. The
// first has it alone, and then as many at a time as may be unavailable. If one does not start,
// no other is restarted.
//
//	VM, its VMI                     unmanaged   opportunistic   proactive
//	outdated, off or failed         keep        change          change
//	outdated, runs                  keep        change          change in its turn
//	changed, its VMI is outdated    keep        keep            restart in its turn
//
// What a user does with a VM wins. One that is stopped is neither restarted nor replaced, and a
// run strategy that was changed is kept.
package pool
