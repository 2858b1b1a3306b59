package nsfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestADescriptorIsANetworkNamespaceOnlyIfTheKernelSaysSo(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "net:[4026531840]")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	for path, want := range map[string]string{
		"/proc/thread-self/ns/net": "", "/proc/self/ns/mnt": "kind mnt", "/proc/self/ns/user": "kind user",
		"/dev/null": "kind other", "/": "kind other", fifo: "kind other",
	} {
		f, err := os.OpenFile(path, unix.O_NONBLOCK, 0)
		require.NoError(t, err)
		defer f.Close()
		if want == "" {
			require.NoError(t, Network(int(f.Fd())))
			continue
		}
		require.ErrorContains(t, Network(int(f.Fd())), want)
	}
	events, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	require.NoError(t, err)
	require.Error(t, Network(events))
	require.NoError(t, unix.Close(events))
	require.Error(t, Network(-1))
}
