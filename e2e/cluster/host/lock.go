package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Hold takes the lock on a file for as long as this process lives. It fails if
// another process has it.
func Hold(path string) error {
	// The descriptor stays open on purpose: closing any descriptor of the file
	// in this process would give the lock back.
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return nil
}

// Holder returns the process that holds the lock on a file, as the caller's
// process namespace names it; 0 means that none does. The kernel keeps the
// lock as long as the process lives, so the answer is never about another
// process that came to have the same number.
func Holder(path string) (int, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("ask for the lock on %s: %w", path, err)
	}
	if lock.Type == unix.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}
