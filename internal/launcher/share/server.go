package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Config is what a server serves.
type Config struct {
	// Socket is the path of the socket that QEMU connects to. One that is there is
	// replaced. Required.
	Socket string
	// Folder is the folder that the guest sees. Required.
	Folder string
	// ReadOnly refuses whatever would change the folder.
	ReadOnly bool
	// MaxNodes is how many files and folders the guest may know at a time. 0:
	// [DefaultMaxNodes]. It is less if the process may open fewer files.
	MaxNodes int
	// MaxOpen is how many files and folders the guest may have open at a time. 0:
	// [DefaultMaxOpen].
	MaxOpen int
	// Logger logs connections and their ends. Nil: nothing is logged.
	Logger *slog.Logger
}

const (
	// DefaultMaxNodes is how many files and folders a guest knows at most. Each takes
	// about 1 kB of the process and its descriptor.
	DefaultMaxNodes = 50_000
	// DefaultMaxOpen is how many files and folders a guest has open at most.
	DefaultMaxOpen = 4096
	// spareFiles are descriptors for the process itself.
	spareFiles = 64
)

// alivePath is the path of a server's second socket. The server accepts connections on
// it and never ends them, so one that ends says that the server ended.
func alivePath(socket string) string { return strings.TrimSuffix(socket, ".sock") + ".up" }

// Serve serves a folder until ctx ends. One QEMU is served at a time; when its
// connection ends, the next one is. An error says why nothing can be served.
func Serve(ctx context.Context, c Config) error {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := c.limit(); err != nil {
		return err
	}
	root, err := unix.Open(c.Folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open folder %s: %w", c.Folder, err)
	}
	defer unix.Close(root)
	l, err := listen(c.Socket)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	alive, err := listen(alivePath(c.Socket)) // when QEMU can connect
	if err != nil {
		return err
	}
	defer alive.Close()
	go accept(alive, func(conn *net.UnixConn) { go hold(ctx, conn) })
	accept(l, func(conn *net.UnixConn) {
		c.Logger.Info("the guest is connected", "folder", c.Folder)
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
		err := newBackend(conn, func() *session { return newSession(root, c) }).serve()
		c.Logger.Info("the connection of the guest ended", "err", err)
	})
	return nil
}

// limit lowers the limits to what the process may open.
func (c *Config) limit() error {
	if c.MaxNodes == 0 {
		c.MaxNodes = DefaultMaxNodes
	}
	if c.MaxOpen == 0 {
		c.MaxOpen = DefaultMaxOpen
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	if room := int64(min(files.Cur, 1<<30)) - spareFiles; int64(c.MaxNodes+c.MaxOpen) > room {
		c.MaxOpen = min(c.MaxOpen, int(room/4))
		c.MaxNodes = int(room) - c.MaxOpen
	}
	if c.MaxNodes < 1 || c.MaxOpen < 1 {
		return fmt.Errorf("limit of open files: %d are too few to serve a folder", files.Cur)
	}
	return nil
}

// listen listens on a socket, in the place of one that a process before left.
func listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// accept serves connections one after the other, until l is closed.
func accept(l *net.UnixListener, serve func(*net.UnixConn)) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		serve(conn)
	}
}

// hold keeps a connection until the other end or ctx ends it.
func hold(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = io.Copy(io.Discard, conn)
}
