package probe

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/storage"
)

// deviceBlocks are the blocks of a block device. What can be discarded is not known
// where sysfs does not have the device.
func deviceBlocks(f *os.File, s unix.Stat_t) (storage.Blocks, error) {
	logical, err := unix.IoctlGetInt(int(f.Fd()), unix.BLKSSZGET)
	if err != nil {
		return storage.Blocks{}, &os.PathError{Op: "get the block size of", Path: f.Name(), Err: err}
	}
	physical, err := unix.IoctlGetInt(int(f.Fd()), unix.BLKPBSZGET)
	if err != nil {
		return storage.Blocks{}, &os.PathError{Op: "get the physical block size of", Path: f.Name(), Err: err}
	}
	return storage.Blocks{LogicalBytes: int64(logical), PhysicalBytes: int64(physical), DiscardBytes: discardBytes(s.Rdev)}, nil
}

// discardBytes is the discard granularity of a device. A partition has that of its
// disk.
func discardBytes(device uint64) int64 {
	dir := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(device), unix.Minor(device))
	for _, queue := range []string{"/queue", "/../queue"} {
		b, err := os.ReadFile(dir + queue + "/discard_granularity")
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err == nil {
			return n
		}
	}
	return 0
}
