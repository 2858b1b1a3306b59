package link

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// runKilled runs this test binary with the environment and the file as descriptor 3, and
// kills it when it begins the call number kill, counted from 0, of those that change a
// network namespace. It returns how many it has begun, and whether it was killed.
func runKilled(t *testing.T, environment []string, file *os.File, kill int) (calls int, killed bool) {
	t.Helper()
	// The kernel takes orders about a process from the thread alone that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	exe, err := os.Executable()
	require.NoError(t, err)
	p, err := os.StartProcess(exe, []string{exe}, &os.ProcAttr{
		Env: environment, Files: []*os.File{nil, os.Stdout, os.Stderr, file}, Sys: &unix.SysProcAttr{Ptrace: true},
	})
	require.NoError(t, err)
	var s unix.WaitStatus
	_, err = unix.Wait4(p.Pid, &s, 0, nil)
	require.NoError(t, err)
	require.NoError(t, unix.PtraceSetOptions(p.Pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL))
	require.NoError(t, unix.PtraceSyscall(p.Pid, 0))
	restarted := map[int]bool{}
	for {
		tid, err := unix.Wait4(-1, &s, unix.WALL|unix.WNOTHREAD, nil)
		require.NoError(t, err)
		if s.Exited() || s.Signaled() {
			if tid != p.Pid {
				continue
			}
			require.True(t, killed || s.ExitStatus() == 0, "the process ended with %v", s)
			return calls, killed
		}
		deliver := 0
		switch sig := s.StopSignal(); {
		case sig == unix.SIGTRAP|0x80:
			if !killed && changes(t, tid, restarted) {
				if calls == kill {
					killed = true
					require.NoError(t, unix.Kill(p.Pid, unix.SIGKILL))
				}
				calls++
			}
		case sig != unix.SIGTRAP && sig != unix.SIGSTOP:
			deliver = int(sig)
		}
		if err := unix.PtraceSyscall(tid, deliver); !killed && err != unix.ESRCH {
			require.NoError(t, err)
		}
	}
}

// changes says that the thread begins a call that can change a network namespace: a
// request by netlink that reads nothing alone, a request to a tap device, or a setting.
//
// A call that the kernel begins again by itself counts once: a setting of IPv6 is begun
// again for as long as another process has the kernel's lock of all links
// (restart_syscall in addrconf_sysctl_forward and its like). restarted has the threads
// whose next call is such a one.
func changes(t *testing.T, tid int, restarted map[int]bool) bool {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return false // the process was killed
	}
	if int64(r.Rax) != -int64(unix.ENOSYS) { // the call ends
		restarted[tid] = int64(r.Rax) == -restartNoIntr
		return false
	}
	if restarted[tid] {
		return false
	}
	switch r.Orig_rax {
	case unix.SYS_SENDTO:
		return asks(t, tid, uintptr(r.Rsi))
	case unix.SYS_SENDMSG:
		// struct msghdr has the address of its parts at 16, and they begin with theirs.
		parts := binary.NativeEndian.Uint64(peek(t, tid, uintptr(r.Rsi)+16))
		return asks(t, tid, uintptr(binary.NativeEndian.Uint64(peek(t, tid, uintptr(parts)))))
	case unix.SYS_IOCTL:
		return r.Rsi == unix.TUNSETIFF || r.Rsi == unix.TUNSETOWNER || r.Rsi == unix.TUNSETGROUP || r.Rsi == unix.TUNSETPERSIST
	case unix.SYS_WRITE:
		return r.Rdi > 2 && r.Rdx != 8 // the runtime of Go writes 8 bytes to wake itself
	}
	return false
}

// restartNoIntr is ERESTARTNOINTR of the kernel, which only a tracer sees.
const restartNoIntr = 513

// asks says that a message of netlink changes something.
func asks(t *testing.T, tid int, at uintptr) bool {
	header := peek(t, tid, at)
	kind, flags := binary.NativeEndian.Uint16(header[4:]), binary.NativeEndian.Uint16(header[6:])
	route := kind >= unix.RTM_BASE && kind < unix.RTM_MAX
	return flags&unix.NLM_F_DUMP != unix.NLM_F_DUMP && (!route || kind%4 != unix.RTM_GETLINK%4)
}

func peek(t *testing.T, tid int, at uintptr) []byte {
	b := make([]byte, 8)
	_, err := unix.PtracePeekData(tid, at, b)
	require.NoError(t, err)
	return b
}
