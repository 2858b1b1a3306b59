package simulate

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/vmi"
)

// listen listens in the folder, which it makes, as the user of launchers: a handler refuses a
// socket of root, and one that another user listens on.
func listen(dir string) (net.Listener, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chown(dir, vmi.RuntimeUID, vmi.RuntimeUID); err != nil {
		return nil, err
	}
	// The path may be longer than the address of a socket can be.
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() { _ = unix.Close(d) }()
	path := fmt.Sprintf("/proc/self/fd/%d/%s", d, vmi.LauncherSocket)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), vmi.LauncherSocket)
	defer func() { _ = f.Close() }()
	err = asRuntimeUser(func() error {
		return errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, unix.SOMAXCONN))
	})
	if err != nil {
		return nil, err
	}
	l, err := net.FileListener(f)
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the number may be another folder's by then
	}
	return l, err
}

// asRuntimeUser calls f on a thread that is the user of launchers meanwhile.
func asRuntimeUser(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		const keep = ^uintptr(0)
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, vmi.RuntimeUID, keep); e != 0 {
			done <- os.NewSyscallError("setresuid", e)
			return
		}
		done <- f()
	}()
	return <-done
}
