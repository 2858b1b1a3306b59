package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/storage"
)

// persistent is a disk of size bytes in the folder dir of a claim.
func persistent(dir string, size int64) storage.Attachment {
	return storage.Attachment{Name: "data", Path: filepath.Join(dir, "disk.img"), Format: storage.Raw, SizeBytes: size, Source: storage.Persistent{}}
}

func TestAPersistentDiskIsMadeSparseIfNothingIsThere(t *testing.T) {
	dir := t.TempDir()
	a := persistent(dir, 1<<30)
	require.NoError(t, Make(t.Context(), a))
	var s unix.Stat_t
	require.NoError(t, unix.Stat(a.Path, &s))
	require.EqualValues(t, 1<<30, s.Size)
	require.Less(t, s.Blocks*512, int64(1<<20))
	require.EqualValues(t, 0o660, s.Mode&0o777)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing else is left in the claim")
}

func TestAPersistentDiskThatCannotBeMadeIsTheSameErrorEachTime(t *testing.T) {
	a := persistent(filepath.Join(t.TempDir(), "missing"), 4096)
	first := Make(t.Context(), a)
	require.ErrorIs(t, first, fs.ErrNotExist)
	require.EqualError(t, Make(t.Context(), a), first.Error())
}

func TestAPersistentDiskIsNeverReplaced(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, path string){
		"a file with content":       func(t *testing.T, p string) { require.NoError(t, os.WriteFile(p, []byte("content"), 0o600)) },
		"a file larger than wanted": func(t *testing.T, p string) { require.NoError(t, os.WriteFile(p, make([]byte, 8192), 0o600)) },
		"an empty file":             func(t *testing.T, p string) { require.NoError(t, os.WriteFile(p, nil, 0o600)) },
		"a link to nowhere":         func(t *testing.T, p string) { require.NoError(t, os.Symlink("nowhere", p)) },
		"a directory":               func(t *testing.T, p string) { require.NoError(t, os.Mkdir(p, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a := persistent(dir, 4096)
			before(t, a.Path)
			was := state(t, a.Path)
			require.NoError(t, Make(t.Context(), a))
			require.Equal(t, was, state(t, a.Path))
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 1)
		})
	}
}

// state is everything about what is at path, without following a link, that a
// write would change.
func state(t *testing.T, path string) string {
	t.Helper()
	var s unix.Stat_t
	require.NoError(t, unix.Lstat(path, &s))
	content, _ := os.ReadFile(path)
	return fmt.Sprint(s.Ino, s.Mode, s.Size, s.Mtim, s.Ctim, string(content))
}

func TestAPersistentDiskIsNeverReplacedByALaterMakerInARace(t *testing.T) {
	for round := range 100 {
		dir := t.TempDir()
		path := persistent(dir, 0).Path
		var all sync.WaitGroup
		begin := make(chan struct{})
		for n := range 8 {
			all.Go(func() {
				<-begin
				require.NoError(t, Make(t.Context(), persistent(dir, int64(n+1)*4096)))
			})
		}
		var ino uint64
		var size int64
		all.Go(func() { // a guest that writes as soon as there is a disk
			<-begin
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			for errors.Is(err, fs.ErrNotExist) {
				f, err = os.OpenFile(path, os.O_RDWR, 0)
			}
			require.NoError(t, err)
			defer f.Close()
			var s unix.Stat_t
			require.NoError(t, unix.Fstat(int(f.Fd()), &s))
			ino, size = s.Ino, s.Size
			_, err = f.WriteAt([]byte("guest"), 0)
			require.NoError(t, err)
		})
		close(begin)
		all.Wait()

		var s unix.Stat_t
		require.NoError(t, unix.Stat(path, &s))
		require.Equal(t, ino, s.Ino, "round %d: the file was replaced", round)
		require.Positive(t, size, "round %d: the file appeared before it had its size", round)
		require.Equal(t, size, s.Size, "round %d: the size changed", round)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "guest", string(content[:5]), "round %d: the content was written over", round)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 1, "round %d", round)
	}
}

func TestAFileThatComesWhileAPersistentDiskIsMadeStays(t *testing.T) {
	for round := range 100 {
		dir := t.TempDir()
		path := persistent(dir, 0).Path
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 4 {
			all.Go(func() {
				<-begin
				require.NoError(t, Make(t.Context(), persistent(dir, 1<<20)))
			})
		}
		var wrote bool
		all.Go(func() { // an importer that fills the claim
			<-begin
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return
			}
			require.NoError(t, err)
			_, err = f.Write([]byte("imported"))
			require.NoError(t, errors.Join(err, f.Close()))
			wrote = true
		})
		close(begin)
		all.Wait()
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		if wrote {
			require.Equal(t, "imported", string(content), "round %d", round)
		} else {
			require.Len(t, content, 1<<20, "round %d", round)
		}
	}
}

func TestAFileIsMovedOnlyToANameThatIsFree(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	require.NoError(t, os.WriteFile(from, []byte("new"), 0o600))
	require.NoError(t, os.WriteFile(to, []byte("old"), 0o600))
	require.ErrorIs(t, moveOnce(from, to), fs.ErrExist)
	content, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, "old", string(content))
}

func TestAPersistentDiskIsNotMadeWhereItsClaimIsNotMounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not-mounted")
	require.ErrorIs(t, Make(t.Context(), persistent(dir, 4096)), fs.ErrNotExist)
	_, err := os.Lstat(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestAPersistentDiskHasASize(t *testing.T) {
	a := persistent(t.TempDir(), 0)
	require.ErrorContains(t, Make(t.Context(), a), "make disk of volume data at "+a.Path+": size of 0 bytes")
}

func TestWhatAProcessLeftThatDiedIsRemoved(t *testing.T) {
	dir := t.TempDir()
	a := persistent(dir, 4096)
	left := filepath.Join(dir, newPrefix(a.Path)+"123")
	others := []string{".disk.img-backup", ".other-123", "data"}
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	require.NoError(t, os.Truncate(left, 1<<30))
	for _, name := range others {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	made, err := os.OpenFile(filepath.Join(dir, newPrefix(a.Path)+"456"), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer made.Close()
	require.NoError(t, lock(made)) // as by another process that makes the disk now
	require.NoError(t, Make(t.Context(), a))
	for _, name := range append(others, "disk.img", filepath.Base(made.Name())) {
		require.FileExists(t, filepath.Join(dir, name))
	}
	require.NoFileExists(t, left)
}
