package races

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity names a file, whatever its path is: the kubelet renames a log that is long.
func identity(info fs.FileInfo) string {
	s := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}
