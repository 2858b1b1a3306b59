package host

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// holdEnv makes the test program hold a lock instead of testing.
const holdEnv = "PODVISOR_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		if err := Hold(path); err != nil {
			os.Exit(3)
		}
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

func TestHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := func() int {
		pid, err := Holder(path)
		require.NoError(t, err)
		return pid
	}
	hold := func() (int, <-chan syscall.WaitStatus) {
		pid, exit, err := theChildren().start([]string{os.Args[0]}, &syscall.ProcAttr{
			Env: []string{holdEnv + "=" + path}, Files: []uintptr{0, 1, 2},
		})
		require.NoError(t, err)
		return pid, exit
	}
	require.Zero(t, holder(), "a missing file has no holder")
	pid, exit := hold()
	require.Eventually(t, func() bool { return holder() == pid }, time.Minute, time.Millisecond)

	_, refused := hold()
	require.Equal(t, 3, (<-refused).ExitStatus(), "only one can hold it")
	require.Equal(t, pid, holder())

	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	<-exit
	require.Zero(t, holder(), "the lock ends with its holder")
}
