package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// ErrUnsafe is wrapped by errors about something in the place of a launcher's
// socket that is not one. A retry helps only if the pod changes it.
var ErrUnsafe = errors.New("not a launcher's socket")

// Pods is the kubelet's folder of pods. It is safe for concurrent use.
type Pods struct{ dir *os.File }

// Open opens the kubelet's folder of pods, usually /var/lib/kubelet/pods.
func Open(dir string) (*Pods, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Pods{os.NewFile(uintptr(fd), dir)}, nil
}

// Close closes the folder. Connections stay open.
func (p *Pods) Close() error { return p.dir.Close() }

// Dial connects to the launcher of the pod with this UID. The error wraps
// [os.ErrNotExist] if the pod has no socket yet or is gone, and [ErrUnsafe] if
// what is there must not be connected to.
func (p *Pods) Dial(ctx context.Context, podUID string) (net.Conn, error) {
	c, err := p.dial(ctx, podUID)
	if err != nil {
		return nil, fmt.Errorf("connect to the launcher of pod %s: %w", podUID, err)
	}
	return c, nil
}

// Exists reports whether the kubelet has a folder of the pod with this UID. It makes one
// before it starts anything of the pod, and removes it when the runtime runs none of the
// pod's containers any more and its volumes are unmounted, also after a restart.
func (p *Pods) Exists(podUID string) (bool, error) {
	if !plainUID(podUID) {
		return false, fmt.Errorf("%w: %q is not the UID of a pod", ErrUnsafe, podUID)
	}
	var st unix.Stat_t
	switch err := unix.Fstatat(int(p.dir.Fd()), podUID, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, &os.PathError{Op: "stat", Path: podUID, Err: err}
	}
	return true, nil
}

// Launchers are the UIDs of the pods with a launcher's socket. Whether it answers is not
// known.
func (p *Pods) Launchers() ([]types.UID, error) {
	// The descriptor only names the folder, and one that is read has a place of its own.
	dir, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(p.dir.Fd())))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []types.UID
	for _, name := range all {
		if s, _, err := p.open(name); err == nil {
			out = append(out, types.UID(name))
			_ = s.Close() // nothing was written
		}
	}
	return out, nil
}

func (p *Pods) dial(ctx context.Context, podUID string) (net.Conn, error) {
	s, owner, err := p.open(podUID)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	// The path in /proc leads to the object that was checked.
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(int(s.Fd())))
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err // without the path: its number is another each time
	}
	if err != nil {
		return nil, err
	}
	if err := checkPeer(c.(*net.UnixConn), owner); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// open resolves the pod's socket and returns its owner.
func (p *Pods) open(podUID string) (s *os.File, owner uint32, err error) {
	if !plainUID(podUID) {
		return nil, 0, fmt.Errorf("%w: %q is not the UID of a pod", ErrUnsafe, podUID)
	}
	name := path.Join(podUID, "volumes/kubernetes.io~empty-dir", vmi.SocketsVolume, vmi.LauncherSocket)
	fd, err := unix.Openat2(int(p.dir.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.ENOTDIR):
		return nil, 0, fmt.Errorf("%w: %s leads elsewhere: %w", ErrUnsafe, name, err)
	case err != nil:
		return nil, 0, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, 0, errors.Join(&os.PathError{Op: "stat", Path: name, Err: err}, f.Close())
	}
	if err := check(&st); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%w: %s %w", ErrUnsafe, name, err), f.Close())
	}
	return f, st.Uid, nil
}

// check returns why a file cannot be a launcher's socket.
func check(st *unix.Stat_t) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return errors.New("is no socket")
	case st.Nlink != 1:
		return errors.New("has another hard link")
	case st.Uid == 0:
		return errors.New("belongs to root")
	}
	return nil
}

// plainUID reports whether a UID is a single name, without a meaning to the file
// system.
func plainUID(uid string) bool {
	if uid == "" || len(uid) > 64 {
		return false
	}
	for _, c := range []byte(uid) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' {
			return false
		}
	}
	return true
}

// checkPeer returns why the process that listens is not the socket's owner.
func checkPeer(c *net.UnixConn, owner uint32) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		peer, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return fmt.Errorf("read the credentials of the listener: %w", err)
	}
	if !same(peer.Uid, owner) {
		return fmt.Errorf("%w: user %d listens on a socket of user %d", ErrUnsafe, peer.Uid, owner)
	}
	return nil
}

// userNamespaceSize is how many IDs the kubelet gives a pod with a user
// namespace of its own: a range that begins at a multiple of it.
const userNamespaceSize = 1 << 16

// same reports whether the user of the process is the owner of the file. In a pod
// with a user namespace of its own the file has the ID within the namespace,
// because the volume is mounted with mapped IDs, and the process has the node's.
func same(peer, owner uint32) bool {
	return owner != 0 && (peer == owner || peer >= userNamespaceSize && peer%userNamespaceSize == owner)
}
