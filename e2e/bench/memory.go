package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

// memory measures what the processes of the VMI's pod use, in bytes of PSS:
// pages that several processes share count in part for each.
func (b *Bench) memory(ctx context.Context, v *vmi.VirtualMachineInstance, s *sample) error {
	pod, err := b.podOf(ctx, v)
	if err != nil {
		return err
	}
	script := `for p in /proc/[0-9]*; do grep -qs ` + string(pod.UID) + ` $p/cgroup || continue
		echo "$(tr '\0' ' ' < $p/cmdline | cut -d' ' -f1) $(sed -n 's/^Pss: *\([0-9]*\) kB/\1/p' $p/smaps_rollup)"; done`
	out, err := b.Cluster.Node(v.Status.NodeName).Command(ctx, "sh", "-c", script).Output()
	if err != nil {
		return fmt.Errorf("measure the memory on %s: %w", v.Status.NodeName, err)
	}
	for line := range strings.Lines(string(out)) {
		name, size, ok := strings.Cut(strings.TrimSpace(line), " ")
		kib, err := strconv.ParseInt(size, 10, 64)
		if !ok || err != nil {
			continue
		}
		switch {
		case strings.Contains(name, "virt-launcher"):
			s.launcher += kib << 10
		case strings.Contains(name, "libvirtd"):
			s.daemon += kib << 10
		case strings.Contains(name, "qemu"):
			s.qemu += kib << 10
		}
	}
	return nil
}
