// Package replicaset decides what is to be done for a VirtualMachineInstanceReplicaSet:
// which VMIs are made, deleted, adopted and released, and what its status says.
//
// [Decide] is a function of what was observed. The names of the VMIs follow from the set.
// So a plan that is carried out twice, or decided from an old cache, makes no VMI twice.
// VMIs that ended are replaced. One that ended without ever running is replaced after a
// time that grows with each failure in a row. It stays until then, so that its status can
// be read.
package replicaset
