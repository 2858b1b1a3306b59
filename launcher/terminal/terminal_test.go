package terminal

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pair is both ends of a new terminal: the one that a user has, and the one that a
// program has.
func pair(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = user.Close(), program.Close() })
	return user, program
}

func TestATerminalPassesOnEveryByte(t *testing.T) {
	user, program := pair(t)
	terminal, err := Open(program)
	require.NoError(t, err)
	require.NotNil(t, terminal)
	all := "\x03\x04\x11\x12\x13\x15\x1a\x1c\x7f\r\n\x1b[A\xff"
	_, err = user.WriteString(all)
	require.NoError(t, err)
	typed := make([]byte, len(all))
	_, err = io.ReadFull(terminal, typed)
	require.NoError(t, err)
	require.Equal(t, all, string(typed), "no byte is a signal, an edit of the line or flow control")
	const lines = "a\nb\r\n\tc"
	_, err = io.WriteString(terminal.Guest(), lines)
	require.NoError(t, err)
	shown := make([]byte, len(lines))
	_, err = io.ReadFull(user, shown)
	require.NoError(t, err)
	require.Equal(t, lines, string(shown), "nothing is echoed, and no line end is changed")
}

func TestATerminalIsGivenBackAsItWas(t *testing.T) {
	_, program := pair(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	terminal, err := Open(program)
	require.NoError(t, err)
	raw, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	require.NotEqual(t, before, raw)
	require.NoError(t, terminal.Close())
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestTheLogAndTheGuestShareATerminalLineByLine(t *testing.T) {
	user, program := pair(t)
	terminal, err := Open(program)
	require.NoError(t, err)
	for _, w := range []struct {
		out  io.Writer
		text string
	}{
		{terminal.Log(), "{1}\n"}, {terminal.Log(), "{2}\n"}, {terminal.Guest(), "hello\r\n"}, {terminal.Guest(), "log"}, {terminal.Guest(), "in: "},
		{terminal.Guest(), ""}, {terminal.Log(), "{3}\n"}, {terminal.Guest(), "root\r\n"}, {terminal.Log(), "{4}\n"},
	} {
		n, err := io.WriteString(w.out, w.text)
		require.NoError(t, err)
		require.Equal(t, len(w.text), n)
	}
	const want = "{1}\n{2}\n\rhello\r\nlogin: \r\n{3}\n\rroot\r\n{4}\n"
	shown := make([]byte, len(want))
	_, err = io.ReadFull(user, shown)
	require.NoError(t, err)
	require.Equal(t, want, string(shown))
}

func TestATerminalWhoseOtherEndIsGoneEnds(t *testing.T) {
	user, program := pair(t)
	terminal, err := Open(program)
	require.NoError(t, err)
	require.NoError(t, user.Close())
	_, err = terminal.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = terminal.Guest().Write([]byte("x"))
	require.Error(t, err)
}

func TestAFileIsNoTerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	terminal, err := Open(f)
	require.NoError(t, err)
	require.Nil(t, terminal)
}
