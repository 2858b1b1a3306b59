package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
)

// madeBy is a network namespace of a user namespace that the user made, who is root
// in it, and the process that is in both.
func madeBy(t *testing.T, user int) (ns, maker *os.File) {
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
	}, time.Minute, time.Millisecond)
	t.Cleanup(func() { ns.Close() })
	return ns, networktest.Process(t, c.Process.Pid)
}

func TestAttackByADescriptorOfAnotherKindOrOwner(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "net:[4026531840]")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	refused := func(t *testing.T, f *os.File, reason string) {
		began := time.Now()
		err := Check(f, nil)
		require.ErrorIs(t, err, ErrNamespace)
		require.ErrorContains(t, err, reason)
		require.Less(t, time.Since(began), time.Minute, "it is not waited for")
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
		ns, _ := madeBy(t, 1234)
		refused(t, ns, "it belongs to a user namespace that user 1234 made")
	})
}

// Root of a pod without a user namespace of its own is root of the node's, as the container
// runtime is.
func TestAttackByANamespaceThatRootOfAPodMade(t *testing.T) {
	ns, maker := madeBy(t, 0)
	_, _, other := networktest.UserPod(t, 1<<20)
	ended := exec.CommandContext(t.Context(), testenv.Program(t, "sleep"), "infinity")
	require.NoError(t, ended.Start())
	gone := networktest.Process(t, ended.Process.Pid)
	require.NoError(t, ended.Process.Kill())
	_ = ended.Wait()
	for name, tt := range map[string]struct {
		launcher *os.File
		reason   string
	}{
		"a launcher as most are":                 {networktest.Process(t, os.Getpid()), "that the launcher is not in"},
		"a launcher in a user namespace":         {other, "that the launcher is not in"},
		"a launcher that has ended":              {gone, "no such process"},
		"no launcher, as on an older kernel":     {nil, "need Linux 6.11"},
		"what is no process, as an older kernel": {ns, "need Linux 6.11"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(ns, tt.launcher)
			require.ErrorIs(t, err, ErrNamespace)
			require.ErrorContains(t, err, tt.reason)
		})
	}
	require.NoError(t, Check(ns, maker), "a launcher that is in it")
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
		require.NoError(t, Check(other, nil))
		require.ErrorIs(t, Check(node, nil), ErrNamespace)
		require.ErrorIs(t, Check(node, nil), errNode)
		if _, ok := sysctlIn(first); ok {
			require.ErrorIs(t, Check(first, nil), errNode)
		}
	})
	require.NoError(t, Check(pod, nil), "its link leads to another namespace than the caller's")
}

func sysctlIn(ns *os.File) (value string, ok bool) {
	_ = within(ns, func() error {
		value, ok = sysctl(firstOnly)
		return nil
	})
	return value, ok
}

func TestAPodWithAUserNamespaceOfItsOwnIsAPod(t *testing.T) {
	pod, _, launcher := networktest.UserPod(t, 1<<20)
	require.NoError(t, Check(pod, launcher))
}

// many calls add with the numbers of more things than are read, and has the program do what
// it returns.
func many(t *testing.T, pod *os.File, program string, add func(i int) string) int {
	t.Helper()
	number := most + 100
	if testenv.Long() {
		number = 100_000
	}
	batch := filepath.Join(t.TempDir(), "batch")
	f, err := os.Create(batch)
	require.NoError(t, err)
	for i := range number {
		_, err := f.WriteString(add(i))
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	networktest.In(t, pod, func() {
		out, err := exec.CommandContext(t.Context(), testenv.Program(t, program), "-batch", batch).CombinedOutput()
		require.NoError(t, err, string(out))
	})
	return number
}

// requireCrowded requires that f refuses so many things, and has read few of them.
func requireCrowded(t *testing.T, number int, f func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	err := f()
	runtime.ReadMemStats(&after)
	t.Logf("%d are refused after %s and %d KiB", number, time.Since(began), (after.TotalAlloc-before.TotalAlloc)>>10)
	require.ErrorIs(t, err, ErrCrowded)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most*16<<10), "no more than some KiB for each that is read")
}

func TestAttackByANamespaceWithManyLinks(t *testing.T) {
	for name, tt := range map[string]struct {
		before  []string // what is done once
		program string
		add     func(i int) string
	}{
		"links":     {nil, "ip", func(i int) string { return fmt.Sprintf("link add d%d type veth peer name e%d\n", i, i) }},
		"addresses": {nil, "ip", func(i int) string { return fmt.Sprintf("addr add 10.%d.%d.%d/32 dev eth0\n", i>>16, i>>8&255, i&255) }},
		"routes":    {nil, "ip", func(i int) string { return fmt.Sprintf("route add 11.%d.%d.%d/32 dev eth0\n", i>>16, i>>8&255, i&255) }},
		"addresses behind the port of a bridge": {
			[]string{"link add b0 type bridge", "link add p0 type veth peer name p1", "link set p0 master b0", "link add link p1 name m0 type macvlan"},
			"bridge", func(i int) string {
				return fmt.Sprintf("fdb add 02:00:00:%02x:%02x:%02x dev p0 master static\n", i>>16, i>>8&255, i&255)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod, _ := networktest.Pod(t)
			for _, c := range tt.before {
				networktest.IP(t, pod, c)
			}
			number := many(t, pod, tt.program, tt.add)
			requireCrowded(t, number, func() error { _, err := Observe(t.Context(), pod); return err })
			// What was made since Observe is not read either.
			requireCrowded(t, number, func() error { return Apply(t.Context(), pod, network.Config{}) })
		})
	}
}

func TestAttackByANamespaceWithManyNeighbours(t *testing.T) {
	pod, _ := networktest.DualPod(t)
	s, err := Observe(t.Context(), pod)
	require.NoError(t, err)
	number := many(t, pod, "ip", func(i int) string {
		return fmt.Sprintf("neigh add fd77::%x:%x lladdr 02:00:00:00:00:01 dev eth0 nud permanent\n", i>>16, i&0xffff)
	})
	requireCrowded(t, number, func() error { return FindRouter(t.Context(), pod, &s, "eth0") })
}

// A router that a tenant keeps silent is not waited for beyond the context.
func TestAttackASilentRouterIsNotWaitedForBeyondTheContext(t *testing.T) {
	pod, _ := networktest.DualPod(t)
	networktest.IP(t, pod, "-6 route replace default via fd77::1 dev eth0 onlink")
	s, err := Observe(t.Context(), pod)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	time.AfterFunc(50*time.Millisecond, func() { cancel(stopped) })
	require.ErrorIs(t, FindRouter(ctx, pod, &s, "eth0"), stopped)
	require.False(t, s.Links[1].RouterSilent, "it was not asked long enough")
	_, err = Observe(ctx, pod)
	require.ErrorIs(t, err, stopped)
	require.ErrorIs(t, Apply(ctx, pod, network.Config{}), stopped)
}

// One thread is in the namespace, and no caller could recover from a panic there.
func TestAPanicInANamespaceIsAnError(t *testing.T) {
	err := within(networktest.Namespace(t), func() error { panic("broken") })
	require.ErrorContains(t, err, "panic: broken")
	require.ErrorContains(t, err, "attack_test.go", "the stack says where")
}
