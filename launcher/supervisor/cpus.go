package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/vmi"
)

// maxCPU is the highest number of a CPU that is looked for.
const maxCPU = 1024

// hostCPUs are the CPUs that this process may use: those of the pod, where the kubelet
// gives it CPUs for itself.
func hostCPUs(sysfs string) ([]domain.HostCPU, error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, fmt.Errorf("ask the kernel which CPUs the pod has: %w", err)
	}
	var all []domain.HostCPU
	for id := range maxCPU {
		if allowed.IsSet(id) {
			all = append(all, hostCPU(sysfs, id))
		}
	}
	return all, nil
}

// hostCPU is where a CPU is in the node. What the kernel does not say is 0, or for the
// core the CPU itself: then it shares none.
func hostCPU(sysfs string, id int) domain.HostCPU {
	dir := filepath.Join(sysfs, "devices/system/cpu", "cpu"+strconv.Itoa(id))
	c := domain.HostCPU{ID: id, Core: id}
	if n, err := number(filepath.Join(dir, "topology/core_id")); err == nil {
		c.Core = n
	}
	if n, err := number(filepath.Join(dir, "topology/physical_package_id")); err == nil {
		c.Package = n
	}
	nodes, _ := filepath.Glob(filepath.Join(dir, "node[0-9]*")) // fails for a wrong pattern only
	for _, n := range nodes {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(n), "node")); err == nil {
			c.Node = n
		}
	}
	return c
}

// number is the number in a file of the kernel's.
func number(path string) (int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// memoryNodes are the NUMA nodes that this process may have memory of, by its status
// in /proc. A kernel that knows no NUMA nodes has node 0.
func memoryNodes(status string) ([]int, error) {
	data, err := os.ReadFile(status)
	if err != nil {
		return nil, fmt.Errorf("ask the kernel of which NUMA nodes the pod has memory: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if list, ok := strings.CutPrefix(line, "Mems_allowed_list:"); ok {
			return numbers(strings.TrimSpace(list))
		}
	}
	return []int{0}, nil
}

// numbers is a list of the kernel's, such as 0-2,5.
func numbers(list string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(list, ",") {
		first, last, several := strings.Cut(part, "-")
		if !several {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%q is no list of NUMA nodes: %w", list, err)
		}
		to, err := strconv.ParseUint(last, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%q is no list of NUMA nodes: %w", list, err)
		}
		for n := from; n <= to; n++ {
			all = append(all, int(n))
		}
	}
	return all, nil
}

// choosesMemory says that this process may choose of which NUMA node memory is, which
// a seccomp profile can forbid. It chooses the policy that it has, the default.
func choosesMemory() bool {
	_, _, fault := unix.Syscall(unix.SYS_SET_MEMPOLICY, unix.MPOL_DEFAULT, 0, 0)
	return fault == 0
}

// hostDevices are the variables of an environment that name devices of the node, and those
// that say which resource is whose.
func hostDevices(environment []string) map[string]string {
	all := map[string]string{}
	for _, e := range environment {
		name, value, _ := strings.Cut(e, "=")
		if slices.ContainsFunc([]string{domain.PCIVariable, domain.MDEVVariable, domain.NetworkVariable, vmi.NetworkResourceVariable},
			func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			all[name] = value
		}
	}
	return all
}
