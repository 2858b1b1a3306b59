package share_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/share"
	"github.com/podvisor/podvisor/internal/testenv"
)

// outside makes a folder with a file secret, and a folder to be shared beside it.
func outside(t *testing.T) (top, shared string) {
	t.Helper()
	top = folderWith(t, map[string]string{"outside/secret": "secret", "shared/dir/plain": "plain", "shared/file": "x"})
	return top, filepath.Join(top, "shared")
}

func TestAttackANameIsNoPath(t *testing.T) {
	t.Parallel()
	top, shared := outside(t)
	g := mounted(t, share.Config{Folder: shared})
	dir := g.found(rootNode, "dir")
	for _, name := range []string{"", ".", "..", "../outside/secret", "../../outside", "/etc/passwd", "dir/plain", "./file"} {
		for what, do := range map[string]func() syscall.Errno{
			"lookup": func() syscall.Errno { _, errno := g.node(dir, name); return errno },
			"create": func() syscall.Errno { _, _, errno := g.create(dir, name, unix.O_RDWR, 0o600); return errno },
			"mkdir": func() syscall.Errno {
				_, errno := g.request(opMkdir, dir, append(words(0o700, 0), text(name)...))
				return errno
			},
			"mknod": func() syscall.Errno {
				_, errno := g.request(opMknod, dir, append(words(unix.S_IFREG|0o600, 0, 0, 0), text(name)...))
				return errno
			},
			"symlink": func() syscall.Errno { _, errno := g.request(opSymlink, dir, text(name, "target")); return errno },
			"link": func() syscall.Errno {
				_, errno := g.request(opLink, dir, append(longs(g.found(rootNode, "file")), text(name)...))
				return errno
			},
			"unlink": func() syscall.Errno { _, errno := g.request(opUnlink, dir, text(name)); return errno },
			"rmdir":  func() syscall.Errno { _, errno := g.request(opRmdir, dir, text(name)); return errno },
			"rename from": func() syscall.Errno {
				_, errno := g.request(opRename, dir, append(longs(rootNode), text(name, "x")...))
				return errno
			},
			"rename to": func() syscall.Errno {
				_, errno := g.request(opRename, rootNode, append(longs(dir), text("file", name)...))
				return errno
			},
		} {
			require.NotZero(t, do(), "%s %q", what, name)
		}
	}
	content, err := os.ReadFile(filepath.Join(top, "outside/secret"))
	require.NoError(t, err)
	require.Equal(t, "secret", string(content))
	require.FileExists(t, filepath.Join(shared, "file"))
	require.FileExists(t, filepath.Join(shared, "dir/plain"))
}

func TestAttackALinkIsNotFollowed(t *testing.T) {
	t.Parallel()
	top, shared := outside(t)
	require.NoError(t, os.Symlink(filepath.Join(top, "outside"), filepath.Join(shared, "away")))
	require.NoError(t, os.Symlink("../outside/secret", filepath.Join(shared, "secret")))
	g := mounted(t, share.Config{Folder: shared})
	for _, name := range []string{"away", "secret"} {
		link := g.found(rootNode, name)
		_, errno := g.open(opOpen, link, unix.O_RDONLY)
		require.Equal(t, syscall.ELOOP, errno)
		_, errno = g.open(opOpendir, link, 0)
		require.Equal(t, syscall.ENOTDIR, errno)
		_, errno = g.node(link, "secret")
		require.Equal(t, syscall.ENOTDIR, errno)
		require.NotZero(t, g.setattr(link, 1<<3, 0, 0), "truncate")
		require.NotZero(t, g.setattr(link, 1, 0, 0o777), "chmod")
		_, _, errno = g.create(rootNode, name, unix.O_RDWR, 0o600)
		require.Equal(t, syscall.ELOOP, errno)
		_, errno = g.request(opLink, rootNode, append(longs(link), text("hard")...))
		require.NotZero(t, errno)
	}
	content, err := os.ReadFile(filepath.Join(top, "outside/secret"))
	require.NoError(t, err)
	require.Equal(t, "secret", string(content))
}

func TestAttackAFolderBecomesALinkWhileItIsUsed(t *testing.T) {
	t.Parallel()
	top, shared := outside(t)
	g := mounted(t, share.Config{Folder: shared})
	// Another writer of the volume replaces the folder by a link to one outside of it,
	// and back, as fast as it can.
	dir, link := filepath.Join(shared, "dir"), filepath.Join(shared, "link")
	require.NoError(t, os.Symlink(filepath.Join(top, "outside"), link))
	require.NoError(t, os.WriteFile(filepath.Join(shared, "dir/secret"), []byte("plain"), 0o600))
	var stop atomic.Bool
	var swapped atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; !stop.Load(); swapped.Add(1) {
			_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	}()
	read := 0
	for began := time.Now(); time.Since(began) < time.Second || (read == 0 || swapped.Load() == 0) && time.Since(began) < time.Minute; {
		id, errno := g.node(rootNode, "dir")
		if errno != 0 {
			continue
		}
		file, errno := g.node(id, "secret")
		if errno != 0 {
			continue
		}
		handle, errno := g.open(opOpen, file, unix.O_RDONLY)
		require.Zero(t, errno)
		got, errno := g.read(opRead, file, handle, 0, 100)
		require.Zero(t, errno)
		require.Equal(t, "plain", string(got))
		_, _ = g.request(opRelease, file, append(longs(handle), make([]byte, 16)...))
		read++
	}
	stop.Store(true)
	<-done
	require.Positive(t, swapped.Load())
	require.Positive(t, read, "the folder was seen as itself at times")
}

func TestAttackNothingIsMadeThatHasAnEffectOutside(t *testing.T) {
	t.Parallel()
	_, shared := outside(t)
	g := mounted(t, share.Config{Folder: shared})
	for name, kind := range map[string]uint32{"block": unix.S_IFBLK, "character": unix.S_IFCHR} {
		_, errno := g.request(opMknod, rootNode, append(words(kind|0o666, uint32(unix.Mkdev(1, 3)), 0, 0), text(name)...))
		require.Equal(t, syscall.EPERM, errno, name)
	}
	_, errno := g.request(opRename2, rootNode, append(append(longs(rootNode), words(4, 0)...), text("file", "other")...))
	require.Equal(t, syscall.EINVAL, errno, "a rename that leaves a device node")
	file := g.found(rootNode, "file")
	for _, mode := range []uint32{0o4755, 0o2755, 0o6755} {
		require.Equal(t, syscall.EPERM, g.setattr(file, 1, 0, mode))
	}
	_, _, errno = g.create(rootNode, "program", unix.O_RDWR, 0o6755)
	require.Zero(t, errno)
	info, err := os.Stat(filepath.Join(shared, "program"))
	require.NoError(t, err)
	require.Zero(t, info.Mode()&(os.ModeSetuid|os.ModeSetgid))
	for _, attribute := range []string{"trusted.overlay.opaque", "security.capability", "user.name"} {
		_, errno := g.request(opSetxattr, file, append(words(1, 0), text(attribute, "x")...))
		require.NotZero(t, errno, attribute)
		require.Empty(t, listed(t, filepath.Join(shared, "file")))
	}
	require.NoError(t, unix.Mkfifo(filepath.Join(shared, "pipe"), 0o600))
	_, errno = g.open(opOpen, g.found(rootNode, "pipe"), unix.O_RDONLY)
	require.Equal(t, syscall.EPERM, errno, "the server does not wait for a pipe")
}

// A pod that has the claim too may leave anything in it.
func TestAttackWhatAPodLeavesInTheFolder(t *testing.T) {
	t.Parallel()
	testenv.Root(t)
	_, shared := outside(t)
	require.NoError(t, unix.Mknod(filepath.Join(shared, "device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))) // zeros
	require.NoError(t, unix.Mknod(filepath.Join(shared, "socket"), unix.S_IFSOCK|0o666, 0))
	// Deeper than a path may be long.
	const depth = 40
	name := strings.Repeat("n", 255)
	at, err := unix.Open(shared, unix.O_PATH|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	for range depth {
		require.NoError(t, unix.Mkdirat(at, name, 0o777))
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(at))
		at = next
	}
	require.NoError(t, unix.Close(at))

	g := mounted(t, share.Config{Folder: shared})
	for _, name := range []string{"device", "socket"} {
		_, errno := g.open(opOpen, g.found(rootNode, name), unix.O_RDONLY)
		require.Equal(t, syscall.EPERM, errno, name)
	}
	node := uint64(rootNode)
	for range depth {
		node = g.found(node, name)
	}
	_, handle, errno := g.create(node, name, unix.O_RDWR, 0o600)
	require.Zero(t, errno)
	require.NotZero(t, handle)
	_, errno = g.node(node, name+"n")
	require.Equal(t, syscall.ENAMETOOLONG, errno)
}

// listed are the extended attributes of a file.
func listed(t *testing.T, path string) string {
	t.Helper()
	b := make([]byte, 1000)
	n, err := unix.Listxattr(path, b)
	require.NoError(t, err)
	return string(b[:n])
}

func TestAttackAReadOnlyFolderIsNotChanged(t *testing.T) {
	t.Parallel()
	_, shared := outside(t)
	g := mounted(t, share.Config{Folder: shared, ReadOnly: true})
	file, dir := g.found(rootNode, "file"), g.found(rootNode, "dir")
	for _, flags := range []uint32{unix.O_WRONLY, unix.O_RDWR, unix.O_RDONLY | unix.O_TRUNC} {
		_, errno := g.open(opOpen, file, flags)
		require.Equal(t, syscall.EROFS, errno)
	}
	handle, errno := g.open(opOpen, file, unix.O_RDONLY)
	require.Zero(t, errno)
	require.NotZero(t, g.write(file, handle, 0, "y"))
	_, errno = g.request(opFallocate, file, append(longs(handle, 0, 1<<20), words(0, 0)...))
	require.NotZero(t, errno)
	require.Equal(t, syscall.EROFS, g.setattr(file, 1<<3, 0, 0))
	require.Equal(t, syscall.EROFS, g.setattr(file, 1, 0, 0o777))
	_, _, errno = g.create(rootNode, "new", unix.O_RDWR, 0o600)
	require.Equal(t, syscall.EROFS, errno)
	for op, body := range map[uint32][]byte{
		opMkdir: append(words(0o700, 0), text("new")...), opMknod: append(words(unix.S_IFREG|0o600, 0, 0, 0), text("new")...),
		opSymlink: text("new", "target"), opLink: append(longs(file), text("new")...), opUnlink: text("file"), opRmdir: text("dir"),
		opRename: append(longs(dir), text("file", "new")...),
	} {
		_, errno := g.request(op, rootNode, body)
		require.Equal(t, syscall.EROFS, errno, "operation %d", op)
	}
	content, err := os.ReadFile(filepath.Join(shared, "file"))
	require.NoError(t, err)
	require.Equal(t, "x", string(content))
}

func TestAttackAGuestKeepsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprint("f", i)] = ""
	}
	g := mounted(t, share.Config{Folder: folderWith(t, files), MaxNodes: 20, MaxOpen: 5})
	var known []uint64
	for i := range 50 {
		id, errno := g.node(rootNode, fmt.Sprint("f", i))
		if errno != 0 {
			require.Equal(t, syscall.ENFILE, errno)
			continue
		}
		known = append(known, id)
	}
	require.Len(t, known, 19, "and the root")
	for i := range 8 {
		_, errno := g.open(opOpen, known[0], unix.O_RDONLY)
		require.Equal(t, i >= 5, errno == syscall.ENFILE)
	}
	_, _ = g.request(opForget, known[1], longs(1))
	g.found(rootNode, "f49") // what the guest forgets makes room
	_, _ = g.request(opForget, known[2], longs(1<<40))
	_, _ = g.request(opForget, rootNode, longs(1<<40))
	g.found(rootNode, "f0")
}

func TestAttackNonsenseInTheQueue(t *testing.T) {
	t.Parallel()
	socket := serve(t, share.Config{Folder: folderWith(t, map[string]string{"file": "x"})})
	for name, write := range map[string]func(*client){
		"a chain without an end":     func(g *client) { g.descriptor(0, requests, 100, 1, 0) },
		"memory that is not there":   func(g *client) { g.descriptor(0, 1<<40, 100, 0, 0) },
		"memory that ends too early": func(g *client) { g.descriptor(0, memorySize-10, 100, 0, 0) },
		"an address that overflows":  func(g *client) { g.descriptor(0, 1<<64-10, 100, 0, 0) },
		"a descriptor out of the table": func(g *client) {
			g.descriptor(0, requests, 40, 1, 9999)
		},
		"a large request": func(g *client) { g.descriptor(0, 0, memorySize, 0, 0) },
		"large room":      func(g *client) { g.descriptor(0, 0, memorySize, 2, 0) },
		"no request":      func(g *client) { g.descriptor(0, requests, 0, 0, 0) },
		"no room": func(g *client) {
			copy(g.memory[requests:], append(words(41, opLookup), append(longs(1, rootNode), make([]byte, 20)...)...))
			g.descriptor(0, requests, 45, 0, 0)
		},
	} {
		g := connect(t, socket)
		g.mount()
		write(g)
		g.submit()
		require.Equal(t, uint64(2), g.ask(17), name) // the server is there
		require.NoError(t, g.conn.Close())
	}
	g := connect(t, socket)
	g.mount()
	g.found(rootNode, "file")
}

func TestAttackMessagesThatNoQEMUSends(t *testing.T) {
	t.Parallel()
	socket := serve(t, share.Config{Folder: folderWith(t, map[string]string{"file": "x"})})
	small, err := unix.MemfdCreate("small", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(small)
	for name, send := range map[string]func(*client){
		"an unknown request":            func(g *client) { g.post(99, nil) },
		"a large one":                   func(g *client) { g.post(1, make([]byte, 4096)) },
		"a queue that is not there":     func(g *client) { g.post(8, words(7, 8)) },
		"a queue of an odd size":        func(g *client) { g.post(8, words(1, 7)) },
		"a short one":                   func(g *client) { g.post(9, words(1)) },
		"memory without a descriptor":   func(g *client) { g.post(5, append(words(1, 0), longs(0, memorySize, inQEMU, 0)...)) },
		"memory larger than its file":   func(g *client) { g.post(5, append(words(1, 0), longs(0, memorySize, inQEMU, 0)...), small) },
		"memory whose address overflow": func(g *client) { g.post(5, append(words(1, 0), longs(1<<63, 1<<63+1, inQEMU, 0)...), g.file) },
		"a kick without a descriptor":   func(g *client) { g.post(12, longs(1)) },
		"rings out of the memory": func(g *client) {
			g.post(9, append(words(1, 0), longs(inQEMU+memorySize-8, inQEMU+usedRing, inQEMU+available, 0)...))
		},
		"rings at an odd address": func(g *client) {
			g.post(9, append(words(1, 0), longs(inQEMU, inQEMU+usedRing+1, inQEMU+available+1, 0)...))
		},
	} {
		g := connect(t, socket)
		send(g)
		_, err := g.conn.Read(make([]byte, 1))
		require.Error(t, err, "%s: the connection ends", name)
	}
	g := connect(t, socket)
	g.mount()
	g.found(rootNode, "file")
}
