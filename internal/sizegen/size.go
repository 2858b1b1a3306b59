package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

type (
	size        = instancetype.VirtualMachineClusterInstancetype
	sizeSpec    = instancetype.VirtualMachineInstancetypeSpec
	description = func(*sizeSpec)
)

// step is a size of a series.
type step struct {
	name   string
	cpus   uint32
	memory string
}

// The steps of several series. Each doubles the one before.
var (
	general = []step{
		{"nano", 1, "512Mi"}, {"micro", 1, "1Gi"}, {"small", 1, "2Gi"}, {"medium", 1, "4Gi"}, {"2xmedium", 2, "4Gi"},
		{"large", 2, "8Gi"}, {"xlarge", 4, "16Gi"}, {"2xlarge", 8, "32Gi"}, {"4xlarge", 16, "64Gi"}, {"8xlarge", 32, "128Gi"},
	}
	compute = []step{
		{"medium", 1, "2Gi"}, {"large", 2, "4Gi"}, {"xlarge", 4, "8Gi"}, {"2xlarge", 8, "16Gi"}, {"4xlarge", 16, "32Gi"}, {"8xlarge", 32, "64Gi"},
	}
	memory = []step{
		{"large", 2, "16Gi"}, {"xlarge", 4, "32Gi"}, {"2xlarge", 8, "64Gi"}, {"4xlarge", 16, "128Gi"}, {"8xlarge", 32, "256Gi"},
	}
	network = []step{
		{"medium", 4, "4Gi"}, {"large", 4, "8Gi"}, {"xlarge", 8, "16Gi"}, {"2xlarge", 16, "32Gi"}, {"4xlarge", 32, "64Gi"}, {"8xlarge", 64, "128Gi"},
	}
)

// series are what instance types are made of: each step with all of the descriptions. The
// suffix is that of the steps' names.
var series = []struct {
	name   string
	steps  []step
	suffix string
	all    []description
}{
	// Universal: a share of the node's CPUs, and all of the memory.
	{"u1", general, "", nil},
	// Overcommitted: half of the memory is not asked for.
	{"o1", slices.DeleteFunc(slices.Clone(general), func(s step) bool { return s.name == "2xmedium" }), "", []description{overcommitted}},
	// Dedicated: a CPU of the node for each processor.
	{"d1", general, "", []description{dedicated, threads}},
	// Compute: also the topology of the node's memory, in huge pages.
	{"cx1", compute, "", []description{dedicated, threads, topology, pages("2Mi")}},
	{"cx1", compute, "1gi", []description{dedicated, threads, topology, pages("1Gi")}},
	// Memory: much of it, in huge pages.
	{"m1", memory, "", []description{pages("2Mi")}},
	{"m1", memory, "1gi", []description{pages("1Gi")}},
	// Network: for guests that poll, as with DPDK. CRI-O reads the annotations.
	{"n1", network, "", []description{dedicated, pages("1Gi"), polling}},
}

func overcommitted(s *sizeSpec) { s.Memory.OvercommitPercent = 50 }

func dedicated(s *sizeSpec) {
	s.CPU.DedicatedCPUPlacement, s.CPU.IsolateEmulatorThread = new(true), new(true)
}

func threads(s *sizeSpec) { s.IOThreadsPolicy = new(vmi.IOThreadsAuto) }

func topology(s *sizeSpec) {
	s.CPU.NUMA, s.CPU.MaxSockets = &vmi.NUMA{GuestMappingPassthrough: &vmi.NUMAGuestMappingPassthrough{}}, new(s.CPU.Guest)
}

func pages(size string) description {
	return func(s *sizeSpec) { s.Memory.Hugepages = &vmi.Hugepages{PageSize: size} }
}

func polling(s *sizeSpec) {
	s.Annotations = map[string]string{
		"cpu-load-balancing.crio.io": "disable", "cpu-quota.crio.io": "disable", "irq-load-balancing.crio.io": "disable",
	}
}

// instancetypes are all steps of all series.
func instancetypes() []*size {
	var out []*size
	for _, r := range series {
		for _, s := range r.steps {
			t := &size{}
			t.Name = r.name + "." + s.name + r.suffix
			t.Labels = map[string]string{"instancetype.kubevirt.io/vendor": vendor}
			t.Spec.CPU.Guest, t.Spec.Memory.Guest = s.cpus, resource.MustParse(s.memory)
			for _, describe := range r.all {
				describe(&t.Spec)
			}
			out = append(out, t)
		}
	}
	return out
}

// vendor is whose objects these are.
const vendor = "podvisor.io"
