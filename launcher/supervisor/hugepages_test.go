package supervisor

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// withHugePages lets processes have n huge pages of 2 MiB more until the test ends. The
// kernel takes them from the free memory when a process maps them.
func withHugePages(t *testing.T, n int) {
	t.Helper()
	testenv.Root(t)
	const limit = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages"
	before, err := os.ReadFile(testenv.File(t, limit))
	require.NoError(t, err)
	had, err := number(limit)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(limit, fmt.Append(nil, had+n), 0o644))
	t.Cleanup(func() { require.NoError(t, os.WriteFile(limit, before, 0o644)) })
}

// pageSizes are the sizes of the pages of each mapping of the process that is size
// kilobytes large.
func pageSizes(t *testing.T, pid, size int) []string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	require.NoError(t, err)
	var all []string
	is := false
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "Size":
			is = value == fmt.Sprintf("%d kB", size)
		case "KernelPageSize":
			if is {
				all = append(all, value)
			}
		}
	}
	return all
}

func TestTheMemoryOfAGuestIsHugePagesOfTheNUMANodesOfItsCPUs(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	withHugePages(t, 16)
	p := newPod(t, bootable(), "CPUS=0-1")
	v := instance()
	v.Spec.Domain.Memory.Hugepages = &vmi.Hugepages{PageSize: "2Mi"}
	v.Spec.Domain.CPU = &vmi.CPU{Sockets: 2, DedicatedCPUPlacement: true, NUMA: &vmi.NUMA{GuestMappingPassthrough: &vmi.NUMAGuestMappingPassthrough{}}}
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
	require.Equal(t, []string{"2048 kB"}, pageSizes(t, p.process("qemu-system-x86_64"), 32<<10))

	d := p.running()
	nodes := map[int]bool{}
	for id := range 2 {
		nodes[hostCPU("/sys", id).Node] = true
	}
	require.Len(t, d.CPU.Numa.Cell, len(nodes), "as many memory nodes as the CPUs have")
	var memory uint
	for _, c := range d.CPU.Numa.Cell {
		memory += c.Memory
	}
	require.EqualValues(t, 32<<10, memory)
}
