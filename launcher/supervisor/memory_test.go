package supervisor

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	overhead "github.com/podvisor/podvisor/scheduler/pod"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// used is the memory of a process in bytes, without the guest's.
type used struct {
	// resident is all that is in memory; own is what the kernel cannot drop: not what
	// is read from files.
	resident, own int64
}

// memory is the memory of the pod's processes by their names.
func (p *pod) memory(guest int64) map[string]used {
	p.Helper()
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.launcher))
	require.NoError(p, err)
	processes, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(p, err)
	all := map[string]used{}
	for _, process := range processes {
		if in, err := os.Readlink(filepath.Join(process, "ns/pid")); err != nil || in != namespace {
			continue
		}
		name, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			continue // it has ended
		}
		u := sum(p.T, filepath.Join(process, "smaps"), guest)
		before := all[strings.TrimSpace(string(name))]
		all[strings.TrimSpace(string(name))] = used{before.resident + u.resident, before.own + u.own}
	}
	return all
}

// sum adds up the mappings of a process but for that of the guest's memory, which is
// known by its size.
func sum(t *testing.T, smaps string, guest int64) (u used) {
	t.Helper()
	f, err := os.Open(smaps)
	if err != nil {
		return used{}
	}
	defer f.Close()
	isGuest := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, rest, _ := strings.Cut(lines.Text(), ":")
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch n := kib << 10; {
		case key == "Size":
			isGuest = n == guest
		case isGuest:
		case key == "Rss":
			u.resident += n
		case key == "Anonymous":
			u.own += n
		}
	}
	return u
}

// uses requires that the processes use no more memory beside the guest's than the pod
// asks for. With -v it shows the figures that scheduler/pod and
// docs/cpu-and-memory.md state.
func (p *pod) uses(g overhead.Guest) {
	p.Helper()
	memory := p.memory(g.Memory.Value())
	var own int64
	for _, process := range slices.Sorted(maps.Keys(memory)) {
		u := memory[process]
		p.Logf("%s: %.1f MB resident, of which %.1f are not of files", process, float64(u.resident)/1e6, float64(u.own)/1e6)
		own += u.own
	}
	require.Positive(p, memory["qemu-system-x86"].own)
	asked := overhead.Overhead(g)
	p.Logf("%.1f MB in all that are not of files, %.1f asked for", float64(own)/1e6, float64(asked.Value())/1e6)
	require.Less(p, own, asked.Value())
}

// partBytes is what these parts of a VMI need.
func partBytes(names ...string) map[string]int64 {
	all := map[string]int64{}
	for _, t := range vmi.Traits() {
		if slices.Contains(names, t.Part) {
			all[t.Part] = t.MemoryBytes
		}
	}
	return all
}

func TestThePodAsksForTheMemoryThatItsProcessesUse(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	memory := *instance().Spec.Domain.Memory.Guest
	p.uses(overhead.Guest{Memory: memory, VCPUs: 1, Emulated: true, PartBytes: partBytes("devices.autoattachGraphicsDevice")})
	require.Less(t, p.memory(memory.Value())["libvirtd"].own, int64(7_500_000), "what libvirt has freed is not kept")
}
