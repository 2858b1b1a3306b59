package socket

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
)

const uid = "0e3f8a52-9c1b-4b5e-8f6d-2a7c4d9e1f00"

// pod is the folder of a pod as the kubelet makes it.
type pod struct {
	root, volumes, sockets, socket string
}

func newPod(t *testing.T) pod {
	testenv.Root(t)
	root, err := os.MkdirTemp("", "pods") // short: a unix socket's path is
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	require.NoError(t, os.Chmod(root, 0o755))
	volumes := filepath.Join(root, uid, "volumes/kubernetes.io~empty-dir")
	sockets := filepath.Join(volumes, vmi.SocketsVolume)
	require.NoError(t, os.MkdirAll(sockets, 0o755))
	require.NoError(t, os.Chmod(sockets, 0o777))
	return pod{root, volumes, sockets, filepath.Join(sockets, vmi.LauncherSocket)}
}

// listen makes a socket that the user owns and this process, that is root,
// listens on.
func listen(t *testing.T, path string, owner int) {
	l, err := bind(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	require.NoError(t, os.Chown(path, owner, owner))
}

// bind listens on a path that may be longer than a socket's address.
func bind(path string) (net.Listener, error) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path)))
	if err == nil {
		l.(*net.UnixListener).SetUnlinkOnClose(false) // the number may be another folder's by then
	}
	return l, err
}

func TestAPodIsThereAsLongAsTheKubeletHasItsFolder(t *testing.T) {
	p := newPod(t)
	pods, err := Open(p.root)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pods.Close()) })
	there, err := pods.Exists(uid)
	require.NoError(t, err)
	require.True(t, there, "also without a socket")
	all, err := pods.Launchers()
	require.NoError(t, err)
	require.Empty(t, all)
	listen(t, p.socket, 107)
	for range 2 {
		all, err = pods.Launchers()
		require.NoError(t, err)
		require.Equal(t, []types.UID{uid}, all)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(p.root, uid)))
	there, err = pods.Exists(uid)
	require.NoError(t, err)
	require.False(t, there)
	for _, wrong := range []string{"", "..", "../" + uid, uid + "/volumes"} {
		_, err = pods.Exists(wrong)
		require.ErrorIs(t, err, ErrUnsafe, wrong)
	}
}

// helperSocket names the socket that a helper process shall listen on.
const helperSocket = "TEST_LISTEN_ON"

func TestMain(m *testing.M) {
	if path := os.Getenv(helperSocket); path != "" {
		l, err := bind(path)
		if err != nil {
			panic(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			panic(err)
		}
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello"))
			_ = c.Close()
		}
	}
	os.Exit(m.Run())
}

// listenAs starts a process of the user that listens.
func listenAs(t *testing.T, path string, user uint32) {
	t.Helper()
	// The link leads to this program without a look at the folders on the way,
	// which the user may not enter.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{helperSocket + "=" + path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		st, err := os.Stat(path)
		return err == nil && st.Mode().Perm() == 0o666
	}, time.Minute, 5*time.Millisecond)
}

func dial(t *testing.T, p pod, uid string) error {
	t.Helper()
	pods, err := Open(p.root)
	require.NoError(t, err)
	defer pods.Close()
	c, err := pods.Dial(t.Context(), uid)
	if err == nil {
		defer c.Close()
		b := make([]byte, 5)
		_, err = c.Read(b)
		require.NoError(t, err)
		require.Equal(t, "hello", string(b))
	}
	return err
}

func TestALauncherIsReached(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	listenAs(t, p.socket, vmi.RuntimeUID)
	require.NoError(t, dial(t, p, uid))
}

func TestALauncherOnAVolumeInMemoryIsReached(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	require.NoError(t, unix.Mount("tmpfs", p.sockets, "tmpfs", 0, "mode=1777"))
	t.Cleanup(func() { _ = unix.Unmount(p.sockets, unix.MNT_DETACH) })
	listenAs(t, p.socket, vmi.RuntimeUID)
	require.NoError(t, dial(t, p, uid))
}

// To connect to a socket needs the right to write to it, and is no write to its mount. The
// handler has a read-only mount of the kubelet's folder, to which the volumes in memory of
// later pods are propagated, as the container runtime makes it.
func TestALauncherIsReachedByAReadOnlyMount(t *testing.T) {
	for _, inMemory := range []bool{false, true} {
		t.Run(map[bool]string{false: "on the disk", true: "in memory"}[inMemory], func(t *testing.T) {
			p := newPod(t)
			mounted := t.TempDir()
			for _, m := range []struct {
				from, at string
				flags    uintptr
			}{
				{p.root, p.root, unix.MS_BIND},
				{"", p.root, unix.MS_SHARED},
				{p.root, mounted, unix.MS_BIND | unix.MS_REC},
				{"", mounted, unix.MS_SLAVE | unix.MS_REC},
				{"", mounted, unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY},
			} {
				require.NoError(t, unix.Mount(m.from, m.at, "", m.flags, ""))
				if m.from != "" {
					t.Cleanup(func() { _ = unix.Unmount(m.at, unix.MNT_DETACH) })
				}
			}
			if inMemory {
				require.NoError(t, unix.Mount("tmpfs", p.sockets, "tmpfs", 0, "mode=1777"))
			}
			listenAs(t, p.socket, vmi.RuntimeUID)
			require.ErrorIs(t, os.WriteFile(filepath.Join(mounted, "file"), nil, 0o600), unix.EROFS)
			p.root = mounted
			require.NoError(t, dial(t, p, uid))
		})
	}
}

func TestALauncherInAUserNamespaceIsReached(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	require.NoError(t, os.Chmod(p.sockets, 0o777))
	listenAs(t, p.socket, 70*userNamespaceSize+vmi.RuntimeUID)
	require.NoError(t, os.Chown(p.socket, vmi.RuntimeUID, vmi.RuntimeUID)) // as the mapped mount shows it
	require.NoError(t, dial(t, p, uid))
}

func TestAFailureThatRepeatsHasTheSameText(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	l, err := bind(p.socket)
	require.NoError(t, err)
	// Closing it would leave it open in a process that another test is starting.
	conn, err := l.(*net.UnixListener).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, conn.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_RDWR) }))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, os.Chown(p.socket, vmi.RuntimeUID, vmi.RuntimeUID))
	first := dial(t, p, uid)
	require.ErrorIs(t, first, unix.ECONNREFUSED)
	other, err := os.Open(os.DevNull) // the numbers of files that follow are others
	require.NoError(t, err)
	defer other.Close()
	require.EqualError(t, dial(t, p, uid), first.Error())
}

func TestAMissingSocketIsNotThereYet(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	require.ErrorIs(t, dial(t, p, uid), os.ErrNotExist)
	require.ErrorIs(t, dial(t, p, "11111111-2222-3333-4444-555555555555"), os.ErrNotExist)
}

func TestAttacksAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		uid    string
		attack func(*testing.T, pod)
	}{
		{"a symbolic link in the place of the socket", uid, func(t *testing.T, p pod) {
			target := filepath.Join(p.root, "host.sock")
			listen(t, target, vmi.RuntimeUID)
			require.NoError(t, os.Symlink(target, p.socket))
		}},
		{"a symbolic link to a socket beside it", uid, func(t *testing.T, p pod) {
			listen(t, filepath.Join(p.sockets, "other"), vmi.RuntimeUID)
			require.NoError(t, os.Symlink("other", p.socket))
		}},
		{"a symbolic link in the place of the volume", uid, func(t *testing.T, p pod) {
			elsewhere := filepath.Join(p.root, "elsewhere")
			require.NoError(t, os.Mkdir(elsewhere, 0o777))
			listen(t, filepath.Join(elsewhere, vmi.LauncherSocket), vmi.RuntimeUID)
			require.NoError(t, os.Remove(p.sockets))
			require.NoError(t, os.Symlink(elsewhere, p.sockets))
		}},
		{"a dangling symbolic link", uid, func(t *testing.T, p pod) {
			require.NoError(t, os.Symlink("/nosuch", p.socket))
		}},
		{"a link into /proc", uid, func(t *testing.T, p pod) {
			require.NoError(t, os.Symlink("/proc/self/fd/0", p.socket))
		}},
		{"a file in the place of the volume", uid, func(t *testing.T, p pod) {
			require.NoError(t, os.Remove(p.sockets))
			require.NoError(t, os.WriteFile(p.sockets, nil, 0o666))
		}},
		{"a FIFO", uid, func(t *testing.T, p pod) { require.NoError(t, unix.Mkfifo(p.socket, 0o666)) }},
		{"a regular file", uid, func(t *testing.T, p pod) { require.NoError(t, os.WriteFile(p.socket, nil, 0o666)) }},
		{"a folder", uid, func(t *testing.T, p pod) { require.NoError(t, os.Mkdir(p.socket, 0o777)) }},
		{"a device", uid, func(t *testing.T, p pod) {
			require.NoError(t, unix.Mknod(p.socket, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		}},
		{"a hard link to a socket of the node", uid, func(t *testing.T, p pod) {
			target := filepath.Join(p.root, "host.sock")
			listen(t, target, vmi.RuntimeUID)
			require.NoError(t, os.Link(target, p.socket))
		}},
		{"a socket of root", uid, func(t *testing.T, p pod) { listen(t, p.socket, 0) }},
		{"a socket that another user listens on", uid, func(t *testing.T, p pod) { listen(t, p.socket, vmi.RuntimeUID) }},
		{"a UID that leads upwards", "../" + uid, func(*testing.T, pod) {}},
		{"a UID that leads downwards", uid + "/volumes", func(*testing.T, pod) {}},
		{"the UID ..", "..", func(*testing.T, pod) {}},
		{"an absolute UID", "/etc", func(*testing.T, pod) {}},
		{"no UID", "", func(*testing.T, pod) {}},
		{"a UID with a NUL", "a\x00b", func(*testing.T, pod) {}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			tt.attack(t, p)
			require.ErrorIs(t, dial(t, p, tt.uid), ErrUnsafe)
		})
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		peer, owner uint32
		want        bool
	}{
		{"the owner listens", 107, 107, true},
		{"the owner listens in a user namespace", 4137549931, 107, true},
		{"root listens", 0, 107, false},
		{"another user listens", 108, 107, false},
		{"another user in a user namespace listens", 65536 + 108, 107, false},
		{"root owns", 0, 0, false},
		{"root in a user namespace is no owner either", 65536, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, same(tt.peer, tt.owner)) })
	}
}
