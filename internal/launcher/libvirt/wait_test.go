package libvirt

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The procedures of libvirt's main program that a daemon answers before it is asked about
// a domain.
const (
	mainProgram     = 0x20008086
	procedureOpen   = 1
	procedureLookup = 23
	procedureAuth   = 66
)

// lateDaemon is a daemon that answers with zeros, and a question about a domain only
// after the folder release exists. It calls asked before it waits for that.
//
// The folder is no synchronization for the race detector: an answer that comes after
// the caller has gone is not ordered after what the caller did.
type lateDaemon struct {
	socket, release string
	asked           func()
}

func newLateDaemon(t *testing.T, asked func()) *lateDaemon {
	t.Helper()
	dir := t.TempDir()
	d := &lateDaemon{socket: filepath.Join(dir, "s"), release: filepath.Join(dir, "release"), asked: asked}
	l, err := net.Listen("unix", d.socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for d.answer(conn) == nil {
		}
	}()
	return d
}

// answer answers one request: its length, and program, version, procedure, type, serial
// and status.
func (d *lateDaemon) answer(conn net.Conn) error {
	const words, reply, zeros = 7, 1, 512
	var header [words]uint32
	if err := binary.Read(conn, binary.BigEndian, &header); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, conn, int64(header[0])-4*words); err != nil {
		return err
	}
	if program, procedure := header[1], header[3]; program != mainProgram ||
		procedure != procedureOpen && procedure != procedureLookup && procedure != procedureAuth {
		d.asked()
		for missing := true; missing; time.Sleep(time.Millisecond) {
			_, err := os.Stat(d.release)
			missing = err != nil
		}
	}
	header[0], header[4] = 4*words+zeros, reply
	return binary.Write(conn, binary.BigEndian, struct {
		Header [words]uint32
		Zeros  [zeros]byte
	}{Header: header})
}

func TestAnAnswerThatComesTooLateIsNobodys(t *testing.T) {
	const name = "default_vm"
	for _, tt := range []struct {
		name string
		ask  func(context.Context, *Connection) error
	}{
		{"bytes read", func(ctx context.Context, c *Connection) error { _, err := c.BytesRead(ctx, name); return err }},
		{"status", func(ctx context.Context, c *Connection) error { _, err := c.Status(ctx, name); return err }},
		{"description", func(ctx context.Context, c *Connection) error { _, err := c.Describe(ctx, name); return err }},
		{"size of a disk", func(ctx context.Context, c *Connection) error { _, err := c.BlockSize(ctx, name, "vda"); return err }},
		{"begin of a migration", func(ctx context.Context, c *Connection) error {
			_, _, err := c.MigrateBegin(ctx, name, Migration{})
			return err
		}},
		{"preparation of a migration", func(ctx context.Context, c *Connection) error {
			_, err := c.MigratePrepare(ctx, name, Migration{}, "", nil)
			return err
		}},
		{"migration", func(ctx context.Context, c *Connection) error {
			_, err := c.MigratePerform(ctx, name, Migration{}, nil)
			return err
		}},
		{"finish of a migration", func(ctx context.Context, c *Connection) error {
			_, err := c.MigrateFinish(ctx, name, Migration{}, nil, Moved)
			return err
		}},
		{"job", func(ctx context.Context, c *Connection) error { _, err := c.Job(ctx, name); return err }},
		{"statistics", func(ctx context.Context, c *Connection) error { _, err := c.Stats(ctx, name); return err }},
		{"dirty rate", func(ctx context.Context, c *Connection) error { _, _, err := c.DirtyRate(ctx, name); return err }},
		{"disk errors", func(ctx context.Context, c *Connection) error { _, err := c.DiskErrors(ctx, name); return err }},
		{"screenshot", func(ctx context.Context, c *Connection) error { return c.Screenshot(ctx, name, "file") }},
		{"agent", func(ctx context.Context, c *Connection) error { _, err := c.AgentVersion(ctx, name); return err }},
		{"processors", func(ctx context.Context, c *Connection) error { _, err := c.Processors(ctx, "x86_64"); return err }},
		{"machine types", func(ctx context.Context, c *Connection) error { _, err := c.MachineTypes(ctx, "x86_64"); return err }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			d := newLateDaemon(t, cancel)
			c, err := Dial(t.Context(), d.socket)
			require.NoError(t, err)
			defer c.Close()
			err = tt.ask(ctx, c)
			require.NoError(t, os.Mkdir(d.release, 0o700))
			require.ErrorIs(t, err, context.Canceled)
			for len(c.calls) > 0 { // no synchronization either
				time.Sleep(time.Millisecond)
			}
		})
	}
}

func TestADaemonThatEndsWithItsLastAnswerLeavesNoSession(t *testing.T) {
	for range 50 {
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		require.NoError(t, err)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			d := lateDaemon{asked: func() {}}
			for range 2 { // it is asked for the kinds of authentication, and to open
				if d.answer(conn) != nil {
					return
				}
			}
		}()
		c, err := Dial(t.Context(), socket)
		require.NoError(t, err)
		select {
		case <-c.Lost():
		case <-time.After(time.Minute):
			require.FailNow(t, "the session is not lost")
		}
		require.NoError(t, l.Close())
	}
}
