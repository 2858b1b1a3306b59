package console

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestALogIsCopiedToItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	out := &text{}
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
	text
	free chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.free
	return s.text.Write(b)
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
	c, err := OpenLog(path, &text{})
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe|0o600, info.Mode())
	<-c.Close()
	_, err = OpenLog(filepath.Join(path, "below"), &text{})
	require.ErrorIs(t, err, unix.ENOTDIR)
}

// text is a buffer that may be read while it is written.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(b)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
