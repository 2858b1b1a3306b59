package kvm

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
)

// The launcher gets a signal at the end of each of its processes, and the kernel
// does not make a virtual machine while one is pending.
func TestASignalIsNoReasonNotToUseKVM(t *testing.T) {
	if _, err := os.Stat(device); err != nil {
		t.Skip("this node has no KVM")
	}
	testenv.Device(t, device)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, done := unix.Gettid(), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Tgkill(unix.Getpid(), thread, unix.SIGURG)
			}
		}
	}()
	defer close(done)
	for range 50 {
		require.NoError(t, probe(device, say, timeLimit))
	}
}
