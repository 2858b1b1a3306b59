package process

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

func TestTheReaperTakesOrphansAndLeavesChildrenAlone(t *testing.T) {
	testenv.Program(t, "setsid")
	r, err := NewReaper()
	require.NoError(t, err)
	go r.Run(t.Context())

	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				if err := exec.Command("true").Run(); err != nil {
					t.Error("os/exec lost its child: ", err)
				}
			}
		})
	}
	for range 10 {
		// The shell leaves a process in a session of its own behind, which ends
		// when its input is closed.
		input, hold, err := os.Pipe()
		require.NoError(t, err)
		cmd := exec.Command("sh", "-c", "setsid sh -c 'read x; exit 7' <&3 >/dev/null 2>&1 & echo $!")
		cmd.ExtraFiles = []*os.File{input}
		out, err := cmd.Output()
		require.NoError(t, errors.Join(err, input.Close(), hold.Close()))
		pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
		require.NoError(t, err)
		s := <-r.Exited(pid)
		require.Equal(t, 7, s.ExitStatus())
	}
	all.Wait()
}
