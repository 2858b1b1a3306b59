package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheConsoleIsCopiedToItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	out := &text{}
	c, err := openConsole(path, out)
	require.NoError(t, err)
	for _, words := range []string{"first\n", "second\n", "no end of line"} {
		// Like QEMU, which libvirt may start more than once.
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0)
		require.NoError(t, err)
		_, err = f.WriteString(words)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	<-c.close()
	require.Equal(t, "first\nsecond\nno end of line", out.String())
}

// stuck is a writer that takes nothing until it is let go.
type stuck struct {
	text
	free chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.free
	return s.text.Write(b)
}

func TestAConsoleThatNobodyReadsStopsNoGuest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	out := &stuck{free: make(chan struct{})}
	c, err := openConsole(path, out)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.SetWriteDeadline(time.Now().Add(time.Minute)))
	block := bytes.Repeat([]byte("x"), 64<<10)
	for range 3 * backlog / len(block) {
		_, err := f.Write(block)
		require.NoError(t, err, "the guest waits for nobody")
	}
	written := c.close()
	close(out.free)
	<-written
	require.Contains(t, out.String(), "bytes of the console are lost")
	require.Less(t, len(out.String()), 2*backlog+1000)
}

func TestTheConsoleIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	c, err := openConsole(path, &text{})
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe|0o600, info.Mode())
	<-c.close()
	_, err = openConsole(filepath.Join(path, "below"), &text{})
	require.ErrorIs(t, err, unix.ENOTDIR)
}
