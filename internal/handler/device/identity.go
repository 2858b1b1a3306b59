package device

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// identity distinguishes a socket from a later one of the same name.
type identity struct {
	inode   uint64
	changed unix.Timespec
}

// identify returns the identity of the socket at path. Anything else is an error.
func identify(path string) (identity, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return identity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK { // a link is not followed
		return identity{}, fmt.Errorf("%s is not a socket", path)
	}
	return identity{st.Ino, st.Ctim}, nil
}

// still says that the same socket is at the path.
func (i identity) still(path string) bool {
	now, err := identify(path)
	return err == nil && now == i
}
