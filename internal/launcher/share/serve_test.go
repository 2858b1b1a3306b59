package share_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/share"
)

func TestAGuestReadsAndWritesTheFolder(t *testing.T) {
	t.Parallel()
	dir := folderWith(t, map[string]string{"greeting": "hello", "sub/deep": "x"})
	g := mounted(t, share.Config{Folder: dir})

	node := g.found(rootNode, "greeting")
	handle, errno := g.open(opOpen, node, unix.O_RDWR)
	require.Zero(t, errno)
	got, errno := g.read(opRead, node, handle, 1, 100)
	require.Zero(t, errno)
	require.Equal(t, "ello", string(got))
	require.Zero(t, g.write(node, handle, 5, ", world"))
	content, err := os.ReadFile(filepath.Join(dir, "greeting"))
	require.NoError(t, err)
	require.Equal(t, "hello, world", string(content))

	made, handle, errno := g.create(rootNode, "new", unix.O_RDWR|unix.O_EXCL, 0o640)
	require.Zero(t, errno)
	large := strings.Repeat("0123456789abcdef", 8<<10)
	require.Zero(t, g.write(made, handle, 0, large))
	require.Zero(t, g.setattr(made, 1<<3, 3, 0), "truncated")
	_, errno = g.request(opRename2, rootNode, append(append(longs(g.found(rootNode, "sub")), words(0, 0)...), text("new", "moved")...))
	require.Zero(t, errno)
	content, err = os.ReadFile(filepath.Join(dir, "sub/moved"))
	require.NoError(t, err)
	require.Equal(t, "012", string(content))
	info, err := os.Stat(filepath.Join(dir, "sub/moved"))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&^0o640)
}

func TestAGuestListsAFolderOfAnySize(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 300 {
		files[strings.Repeat("n", 50)+string(rune('a'+i%26))+strings.Repeat("m", i/26)] = ""
	}
	g := mounted(t, share.Config{Folder: folderWith(t, files)})
	handle, errno := g.open(opOpendir, rootNode, 0)
	require.Zero(t, errno)
	seen := map[string]string{}
	for offset := uint64(0); ; {
		b, errno := g.read(opReaddir, rootNode, handle, offset, 4096)
		require.Zero(t, errno)
		if len(b) == 0 {
			break
		}
		for len(b) > 0 {
			offset = binary.NativeEndian.Uint64(b[8:])
			n := int(binary.NativeEndian.Uint32(b[16:]))
			if name := string(b[24 : 24+n]); name != "." && name != ".." {
				seen[name] = ""
			}
			b = b[(24+n+7)/8*8:]
		}
	}
	require.Equal(t, files, seen)
}

func TestAGuestThatBootsAgainMountsAgain(t *testing.T) {
	t.Parallel()
	g := mounted(t, share.Config{Folder: folderWith(t, map[string]string{"file": "x"})})
	node := g.found(rootNode, "file")
	handle, errno := g.open(opOpen, node, unix.O_RDONLY)
	require.Zero(t, errno)

	g.post(11, words(1, 0)) // QEMU stops the queue when the guest resets
	require.Equal(t, uint64(1), g.answer()&0xffffffff)
	for i := range g.memory[:0x10000] {
		g.memory[i] = 0
	}
	g.startQueue(0)
	g.mount()
	_, errno = g.request(opGetattr, node, make([]byte, 16))
	require.Equal(t, syscall.ESTALE, errno, "what the guest knew before is forgotten")
	_, errno = g.read(opRead, rootNode, handle, 0, 10)
	require.Equal(t, syscall.EBADF, errno)
	g.found(rootNode, "file")
}

func TestTheNextConnectionIsServedWhenOneEnds(t *testing.T) {
	t.Parallel()
	socket := serve(t, share.Config{Folder: folderWith(t, map[string]string{"file": "x"})})
	for range 3 {
		g := connect(t, socket)
		g.mount()
		g.found(rootNode, "file")
		require.NoError(t, g.conn.Close())
	}
}

func TestTheEndOfAServerIsSeen(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s.sock")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	begin := func(ctx context.Context) {
		go func() { served <- share.Serve(ctx, share.Config{Socket: socket, Folder: "/"}) }()
	}
	begin(ctx)
	ended, err := share.Watch(t.Context(), t.Context(), socket)
	require.NoError(t, err)
	select {
	case <-ended:
		t.Fatal("the server ended by itself")
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	<-ended
	require.NoError(t, <-served)

	soon, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, err = share.Watch(soon, t.Context(), socket)
	require.ErrorContains(t, err, "connect to the server of "+socket)
	again, end := context.WithCancel(t.Context())
	begin(again)
	_, err = share.Watch(t.Context(), t.Context(), socket)
	require.NoError(t, err, "a server takes the place of one that ended")
	end()
	require.NoError(t, <-served)
}

func TestAFolderThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	err := share.Serve(t.Context(), share.Config{Socket: filepath.Join(t.TempDir(), "s.sock"), Folder: "/does/not/exist"})
	require.ErrorIs(t, err, os.ErrNotExist)
}
