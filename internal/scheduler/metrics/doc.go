// Package metrics turns VMs, VMIs and migrations into series, as dashboards written for
// KubeVirt know them.
//
// [VM.Series], [Instance.Series] and [Fleet.Series] read what virt-controller has of the
// objects, by the tables in vm.go, instance.go and fleet.go. [Phases] and [Moved] are what a
// change of phase adds to histograms.
//
// It computes; it touches nothing. scheduler/controller serves the series.
//
// Trap: virt-controller keeps of an object in its caches what is read. What a table reads
// must be kept: a test compares the series of whole objects with those of kept ones.
package metrics
