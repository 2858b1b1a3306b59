package libvirt_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
)

// confined is the first argument of a test binary that is to run the program of the others
// with what the seccomp profile RuntimeDefault refuses to a container without capabilities.
const confined = "confined"

func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != confined {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, confine(os.Args[2:]))
	os.Exit(1)
}

// confine runs a program that cannot make or enter namespaces, nor mount.
func confine(command []string) error {
	runtime.LockOSThread()
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	const number, flags = 0, 16 // in struct seccomp_data: nr, args[0]
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(a uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: a}
	}
	const refused, missing = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM), unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	filter := []unix.SockFilter{load(number)}
	for call, a := range map[uint32]uint32{
		unix.SYS_UNSHARE: refused, unix.SYS_SETNS: refused, unix.SYS_MOUNT: refused, unix.SYS_UMOUNT2: refused, unix.SYS_PIVOT_ROOT: refused,
		unix.SYS_CLONE3: missing, // its flags are in memory, and who calls it calls clone then
	} {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: call}, answer(a))
	}
	const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_CLONE},
		load(flags), unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: namespaces}, answer(refused),
		answer(unix.SECCOMP_RET_ALLOW))
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); e != 0 {
		return fmt.Errorf("install the filter: %w", e)
	}
	return syscall.Exec(path, command, os.Environ())
}

// libvirt 11.3 starts passt for an interface by itself. passt makes a user namespace
// for itself before anything else and mounts in it, with every option that it has.
func TestPasstDoesNotStartWhereAPodRuns(t *testing.T) {
	testenv.Program(t, "passt")
	self, err := os.Executable()
	require.NoError(t, err)
	pod, _ := networktest.Pod(t)
	const nic = `<interface type="user"><backend type="passt"/><mac address="52:54:00:00:00:01"/><model type="virtio"/></interface>`

	d := newDaemonIn(t, pod)
	require.Equal(t, "passt", d.start(nic).described().Devices.Interfaces[0].Backend.Type, "on a host it serves")

	c := newDaemonIn(t, pod, self, confined)
	c.start("") // QEMU and libvirt run as they do in a pod
	require.NoError(t, c.Destroy(t.Context(), name))
	var x libvirtxml.Domain
	require.NoError(t, x.Unmarshal(c.domain(nic, "")))
	err = c.Create(t.Context(), &x)
	require.ErrorContains(t, err, "passt")
	require.Regexp(t, "(?i)operation not permitted", err.Error())
}
