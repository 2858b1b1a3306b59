package console

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
)

func TestALogIsCopiedToItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	out := &testenv.Output{}
	c, err := OpenLog(path, out)
	require.NoError(t, err)
	for _, line := range []string{"first\n", "second\n", "no end of line"} {
		// Like QEMU, which libvirt may start more than once.
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0)
		require.NoError(t, err)
		_, err = f.WriteString(line)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	<-c.Close()
	require.Equal(t, "first\nsecond\nno end of line", out.String())
}

// stuck is a writer that takes nothing until free is closed.
type stuck struct {
	testenv.Output
	free chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.free
	return s.Output.Write(b)
}

func TestAWriterThatIsStuckStopsNoGuest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	out := &stuck{free: make(chan struct{})}
	c, err := OpenLog(path, out)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.SetWriteDeadline(time.Now().Add(time.Minute)))
	block := bytes.Repeat([]byte("x"), 64<<10)
	for range 3 * backlog / len(block) {
		_, err := f.Write(block)
		require.NoError(t, err, "the guest does not wait for the writer")
	}
	written := c.Close()
	close(out.free)
	<-written
	require.Contains(t, out.String(), "bytes of the console are lost")
	require.Less(t, len(out.String()), 2*backlog+1000)
}

func TestThePipeOfALogIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	c, err := OpenLog(path, &testenv.Output{})
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe|0o600, info.Mode())
	<-c.Close()
	_, err = OpenLog(filepath.Join(path, "below"), &testenv.Output{})
	require.ErrorIs(t, err, unix.ENOTDIR)
}
