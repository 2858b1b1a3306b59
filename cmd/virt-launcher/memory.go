package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher/supervisor"
)

// memoryLimit is the memory for which garbage is collected, in bytes: about what the
// pod asks for the launcher.
const memoryLimit = 24 << 20

func limitMemory() { debug.SetMemoryLimit(memoryLimit) }

// saveMemory keeps the memory of a launcher small while its guest runs.
func saveMemory(c *supervisor.Config) {
	limitMemory()
	c.Started = func() { time.AfterFunc(settled, giveBack) }
}

// settled is how long after its start a guest is left alone: what follows its start, such as
// the first reports, is over then.
const settled = time.Second

// giveBack gives memory back to the node that only the start of a guest needs: what the
// heap has free, and the pages of the program itself. The kernel maps a page of the program
// again when it is used, mostly without reading it.
func giveBack() {
	debug.FreeOSMemory()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		if start, size, ok := readOnly(line, program); ok {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, size, unix.MADV_DONTNEED) // after an error they stay
		}
	}
}

// readOnly is the place of a mapping of the program that nothing can write to, in a line of
// /proc/self/maps: instructions or constants. It is not ok for all others.
func readOnly(line, program string) (start, size uintptr, ok bool) {
	f := strings.Fields(line)
	if len(f) != 6 || f[5] != program || strings.Contains(f[1], "w") {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(f[0], "-")
	a, errA := strconv.ParseUint(from, 16, 64)
	b, errB := strconv.ParseUint(to, 16, 64)
	return uintptr(a), uintptr(b - a), errA == nil && errB == nil && a < b
}
