package link

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

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network/networktest"
)

// madeBy is a network namespace of a user namespace that the user made, who is root
// in it.
func madeBy(t *testing.T, user int) *os.File {
	t.Helper()
	testenv.Root(t)
	c := exec.CommandContext(t.Context(), testenv.Program(t, "unshare"), "--user", "--map-root-user", "--net", "sleep", "infinity")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	own, err := os.Stat(ownNamespace)
	require.NoError(t, err)
	var ns *os.File
	require.Eventually(t, func() bool {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.Process.Pid))
		if err != nil {
			return false
		}
		if at, err := f.Stat(); err == nil && !os.SameFile(own, at) {
			ns = f
			return true
		}
		_ = f.Close()
		return false
	}, 10*time.Second, time.Millisecond)
	t.Cleanup(func() { ns.Close() })
	return ns
}

func TestAttackByADescriptorOfAnotherKindOrOwner(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "net:[4026531840]")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	refused := func(t *testing.T, f *os.File, reason string) {
		began := time.Now()
		err := Check(f)
		require.ErrorIs(t, err, ErrNamespace)
		require.ErrorContains(t, err, reason)
		require.Less(t, time.Since(began), 5*time.Second)
		_ = f.Close()
	}
	for name, tt := range map[string]struct {
		open   func() (*os.File, error)
		reason string
	}{
		"a mount namespace":                   {func() (*os.File, error) { return os.Open("/proc/self/ns/mnt") }, "kind mnt"},
		"a process namespace":                 {func() (*os.File, error) { return os.Open("/proc/self/ns/pid") }, "kind pid"},
		"a user namespace":                    {func() (*os.File, error) { return os.Open("/proc/self/ns/user") }, "kind user"},
		"a regular file":                      {func() (*os.File, error) { return os.Create(filepath.Join(dir, "file")) }, "kind other"},
		"a fifo with a namespace's name":      {func() (*os.File, error) { return os.OpenFile(fifo, os.O_RDWR, 0) }, "kind other"},
		"a folder":                            {func() (*os.File, error) { return os.Open(dir) }, "kind other"},
		"a device":                            {func() (*os.File, error) { return os.Open(os.DevNull) }, "kind other"},
		"a socket":                            {socket, "kind socket"},
		"a process":                           {pidfd, ""},
		"a descriptor that is closed":         {closed, "no such file or directory"},
		"a file without access":               {func() (*os.File, error) { return openPath(dir) }, "kind other"},
		"the handler's own network namespace": {func() (*os.File, error) { return os.Open(ownNamespace) }, "own namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := tt.open()
			require.NoError(t, err)
			refused(t, f, tt.reason)
		})
	}
	t.Run("a namespace that a tenant made", func(t *testing.T) {
		refused(t, madeBy(t, 1234), "it belongs to a user namespace that user 1234 made")
	})
}

func socket() (*os.File, error) {
	l, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.File()
}

func pidfd() (*os.File, error) {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	return os.NewFile(uintptr(fd), "process"), err
}

func closed() (*os.File, error) {
	fd, err := unix.Dup(0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd+1000), "closed"), unix.Close(fd)
}

func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	return os.NewFile(uintptr(fd), path), err
}

func TestAttackByTheNetworkNamespaceOfTheNode(t *testing.T) {
	pod, node := networktest.Pod(t)
	other, _ := networktest.Pod(t)
	first, err := os.Open(ownNamespace)
	require.NoError(t, err)
	defer first.Close()
	networktest.In(t, pod, func() {
		require.NoError(t, Check(other))
		require.ErrorIs(t, Check(node), ErrNamespace)
		require.ErrorIs(t, Check(node), errNode)
		if _, ok := sysctlIn(first); ok {
			require.ErrorIs(t, Check(first), errNode)
		}
	})
	require.NoError(t, Check(pod), "its link leads to another namespace than the caller's")
}

func sysctlIn(ns *os.File) (value string, ok bool) {
	_ = within(ns, func() error {
		value, ok = sysctl(firstOnly)
		return nil
	})
	return value, ok
}

func TestAPodWithAUserNamespaceOfItsOwnIsAPod(t *testing.T) {
	pod, _ := networktest.UserPod(t, 1<<20)
	require.NoError(t, Check(pod))
}

func TestAttackByANamespaceWithManyLinks(t *testing.T) {
	number := most + 100
	if os.Getenv("ATTACKS") == "long" {
		number = 100_000
	}
	for name, add := range map[string]func(i int) string{
		"links":     func(i int) string { return fmt.Sprintf("link add d%d type veth peer name e%d\n", i, i) },
		"addresses": func(i int) string { return fmt.Sprintf("addr add 10.%d.%d.%d/32 dev eth0\n", i>>16, i>>8&255, i&255) },
		"routes":    func(i int) string { return fmt.Sprintf("route add 11.%d.%d.%d/32 dev eth0\n", i>>16, i>>8&255, i&255) },
	} {
		t.Run(name, func(t *testing.T) {
			pod, _ := networktest.Pod(t)
			batch := filepath.Join(t.TempDir(), "batch")
			f, err := os.Create(batch)
			require.NoError(t, err)
			for i := range number {
				_, err := f.WriteString(add(i))
				require.NoError(t, err)
			}
			require.NoError(t, f.Close())
			networktest.In(t, pod, func() {
				out, err := exec.CommandContext(t.Context(), testenv.Program(t, "ip"), "-batch", batch).CombinedOutput()
				require.NoError(t, err, string(out))
			})
			began := time.Now()
			_, err = Observe(pod)
			t.Logf("%d %s: refused after %s", number, name, time.Since(began))
			require.ErrorIs(t, err, ErrCrowded)
			require.Less(t, time.Since(began), 3*time.Second)
		})
	}
}
