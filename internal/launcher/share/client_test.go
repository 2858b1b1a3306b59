package share_test

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/share"
)

// Operations of FUSE.
const (
	opLookup, opForget, opGetattr, opSetattr, opReadlink, opSymlink = 1, 2, 3, 4, 5, 6
	opMknod, opMkdir, opUnlink, opRmdir, opRename, opLink           = 8, 9, 10, 11, 12, 13
	opOpen, opRead, opWrite, opRelease, opFsync                     = 14, 15, 16, 18, 20
	opSetxattr, opGetxattr, opInit, opOpendir, opReaddir            = 21, 22, 26, 27, 28
	opCreate, opFallocate, opRename2                                = 35, 43, 45
)

const rootNode = 1

// Where things are in the memory of the test's guest, which begins at 0 for it and at
// inQEMU for QEMU.
const (
	memorySize = 8 << 20
	inQEMU     = 0x7000_0000
	ringSize   = 8
	available  = 0x1000
	usedRing   = 0x2000
	requests   = 0x10000
	answers    = 0x400000
)

// client is a guest that sends FUSE requests to a server through the second of its queues, and
// the QEMU that connects it.
type client struct {
	t      *testing.T
	conn   *net.UnixConn
	memory []byte
	file   int
	kick   int
	call   int
	unique uint64
}

// serve serves a folder and returns the socket.
func serve(t *testing.T, c share.Config) string {
	t.Helper()
	c.Socket = filepath.Join(t.TempDir(), "s.sock")
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- share.Serve(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	limited, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	_, err := share.Watch(limited, ctx, c.Socket)
	require.NoError(t, err)
	return c.Socket
}

// connect connects a guest that has mounted nothing yet.
func connect(t *testing.T, socket string) *client {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	g := &client{t: t, conn: conn}
	g.file, err = unix.MemfdCreate("memory", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	require.NoError(t, unix.Ftruncate(g.file, memorySize))
	g.memory, err = unix.Mmap(g.file, 0, memorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	g.kick, err = unix.Eventfd(0, unix.EFD_CLOEXEC)
	require.NoError(t, err)
	g.call, err = unix.Eventfd(0, unix.EFD_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = unix.Munmap(g.memory)
		for _, fd := range []int{g.file, g.kick, g.call} {
			_ = unix.Close(fd)
		}
	})
	require.Equal(t, uint64(1<<30|1<<32), g.ask(1))
	require.Equal(t, uint64(1|1<<3), g.ask(15))
	g.post(16, longs(1<<3))
	require.Equal(t, uint64(2), g.ask(17))
	g.acknowledged(5, append(words(1, 0), longs(0, memorySize, inQEMU, 0)...), g.file)
	g.startQueue(0)
	return g
}

// startQueue starts the queue of requests at a place in its rings.
func (g *client) startQueue(base uint32) {
	g.acknowledged(8, words(1, ringSize))
	g.acknowledged(10, words(1, base))
	g.acknowledged(9, append(words(1, 0), longs(inQEMU, inQEMU+usedRing, inQEMU+available, 0)...))
	g.acknowledged(13, longs(1), g.call)
	g.acknowledged(12, longs(1), g.kick)
	g.acknowledged(18, words(1, 1))
}

// mounted is a guest that has mounted the folder.
func mounted(t *testing.T, c share.Config) *client {
	t.Helper()
	g := connect(t, serve(t, c))
	g.mount()
	return g
}

func (g *client) mount() {
	g.t.Helper()
	_, errno := g.request(opInit, 0, append(words(7, 38, 128<<10, 0), make([]byte, 48)...))
	require.Zero(g.t, errno)
}

func words(all ...uint32) (out []byte) {
	for _, w := range all {
		out = binary.NativeEndian.AppendUint32(out, w)
	}
	return out
}

func longs(all ...uint64) (out []byte) {
	for _, w := range all {
		out = binary.NativeEndian.AppendUint64(out, w)
	}
	return out
}

func text(all ...string) (out []byte) {
	for _, s := range all {
		out = append(append(out, s...), 0)
	}
	return out
}

// post sends a message of QEMU.
func (g *client) post(request uint32, payload []byte, fds ...int) {
	g.send(request, 1, payload, fds...)
}

func (g *client) send(request, flags uint32, payload []byte, fds ...int) {
	g.t.Helper()
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err := g.conn.WriteMsgUnix(append(words(request, flags, uint32(len(payload))), payload...), rights, nil)
	require.NoError(g.t, err)
}

// ask sends a message of QEMU that has an answer.
func (g *client) ask(request uint32) uint64 {
	g.t.Helper()
	g.post(request, nil)
	return g.answer()
}

func (g *client) answer() uint64 {
	g.t.Helper()
	b := make([]byte, 20)
	for n := 0; n < len(b); {
		m, err := g.conn.Read(b[n:])
		require.NoError(g.t, err)
		n += m
	}
	return binary.NativeEndian.Uint64(b[12:])
}

// acknowledged sends a message of QEMU that has to succeed.
func (g *client) acknowledged(request uint32, payload []byte, fds ...int) {
	g.t.Helper()
	g.send(request, 1|8, payload, fds...)
	require.Zero(g.t, g.answer(), "request %d", request)
}

// word is a word of the memory that the server changes too.
func (g *client) word(at int) *uint32 { return (*uint32)(unsafe.Pointer(&g.memory[at])) }

// descriptor writes a descriptor of the queue.
func (g *client) descriptor(i int, address uint64, size uint32, flags, next uint16) {
	d := binary.LittleEndian.AppendUint64(nil, address)
	d = binary.LittleEndian.AppendUint32(d, size)
	d = binary.LittleEndian.AppendUint16(d, flags)
	copy(g.memory[16*i:], binary.LittleEndian.AppendUint16(d, next))
}

// submit makes the chain that begins with descriptor 0 available, and returns how often
// the server had answered before.
func (g *client) submit() uint32 {
	g.t.Helper()
	used := atomic.LoadUint32(g.word(usedRing)) >> 16
	head := atomic.LoadUint32(g.word(available)) >> 16
	binary.LittleEndian.PutUint16(g.memory[available+4+2*(int(head)%ringSize):], 0)
	atomic.StoreUint32(g.word(available), (head+1)<<16)
	_, err := unix.Write(g.kick, longs(1))
	require.NoError(g.t, err)
	return used
}

// request sends a request of FUSE and returns the answer.
func (g *client) request(op uint32, node uint64, body []byte) ([]byte, syscall.Errno) {
	g.t.Helper()
	g.unique++
	in := words(uint32(40+len(body)), op)
	in = append(in, longs(g.unique, node)...)
	in = append(append(in, words(0, 0, 0, 0)...), body...)
	copy(g.memory[requests:], in)
	g.descriptor(0, requests, uint32(len(in)), 1, 1)
	g.descriptor(1, answers, 64<<10, 2, 0)
	before := g.submit()
	for end := time.Now().Add(time.Minute); atomic.LoadUint32(g.word(usedRing))>>16 == before; time.Sleep(50 * time.Microsecond) {
		require.True(g.t, time.Now().Before(end), "the server does not answer operation %d", op)
	}
	if op == opForget { // it has no answer
		return nil, 0
	}
	size := binary.LittleEndian.Uint32(g.memory[usedRing+4+8*(int(before)%ringSize)+4:])
	require.GreaterOrEqual(g.t, size, uint32(16))
	out := append([]byte(nil), g.memory[answers:answers+size]...)
	require.Equal(g.t, g.unique, binary.NativeEndian.Uint64(out[8:]))
	return out[16:], syscall.Errno(-int32(binary.NativeEndian.Uint32(out[4:])))
}

// node looks an entry up.
func (g *client) node(parent uint64, name string) (uint64, syscall.Errno) {
	g.t.Helper()
	out, errno := g.request(opLookup, parent, text(name))
	if errno != 0 {
		return 0, errno
	}
	return binary.NativeEndian.Uint64(out), 0
}

// found looks an entry up that is there.
func (g *client) found(parent uint64, name string) uint64 {
	g.t.Helper()
	id, errno := g.node(parent, name)
	require.Zero(g.t, errno, name)
	return id
}

// open opens a node.
func (g *client) open(op uint32, node uint64, flags uint32) (uint64, syscall.Errno) {
	g.t.Helper()
	out, errno := g.request(op, node, words(flags, 0))
	if errno != 0 {
		return 0, errno
	}
	return binary.NativeEndian.Uint64(out), 0
}

// read reads from an open file or lists an open folder.
func (g *client) read(op uint32, node, handle, offset uint64, size uint32) ([]byte, syscall.Errno) {
	g.t.Helper()
	return g.request(op, node, append(append(longs(handle, offset), words(size, 0)...), make([]byte, 16)...))
}

// write writes to an open file.
func (g *client) write(node, handle, offset uint64, data string) syscall.Errno {
	g.t.Helper()
	head := append(append(longs(handle, offset), words(uint32(len(data)), 0)...), make([]byte, 16)...)
	_, errno := g.request(opWrite, node, append(head, data...))
	return errno
}

// create makes and opens a file.
func (g *client) create(parent uint64, name string, flags, mode uint32) (node, handle uint64, errno syscall.Errno) {
	g.t.Helper()
	out, errno := g.request(opCreate, parent, append(words(flags, mode, 0, 0), text(name)...))
	if errno != 0 {
		return 0, 0, errno
	}
	return binary.NativeEndian.Uint64(out), binary.NativeEndian.Uint64(out[128:]), 0
}

// setattr sets the fields of a bit mask to a size or mode.
func (g *client) setattr(node uint64, valid uint32, size uint64, mode uint32) syscall.Errno {
	g.t.Helper()
	body := append(words(valid, 0), longs(0, size, 0, 0, 0, 0)...)
	_, errno := g.request(opSetattr, node, append(body, words(0, 0, 0, mode, 0, 0, 0, 0)...))
	return errno
}

// folderWith makes a folder with files.
func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}
