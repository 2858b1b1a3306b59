package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

func TestADiskThatIsCopiedAsAWholeIsMadeEmpty(t *testing.T) {
	as := emptied([]protocol.MigrationDisk{{Name: "seed", Copied: true, SizeBytes: 4096}, {Name: "files", Copied: true, SizeBytes: 8192}, {Name: "cd", SizeBytes: 4096}, {Name: "root", Copied: true, SizeBytes: 1 << 20}})
	for name, source := range map[string]storage.Source{"seed": storage.Blank{}, "files": storage.Blank{}, "cd": storage.Seed{}, "root": storage.Overlay{}, "other": storage.Folder{}} {
		from := source
		switch name {
		case "seed":
			from = storage.Seed{}
		case "files":
			from = storage.Folder{}
		}
		require.Equal(t, source, as(storage.Attachment{Name: name, Source: from}).Source, name)
	}
	require.EqualValues(t, 8192, as(storage.Attachment{Name: "files", Source: storage.Folder{}}).SizeBytes)
}

func TestTheDisksOfAGuestThatMovesAreComparedWithThoseHere(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "base")
	require.NoError(t, os.WriteFile(base, []byte("image"), 0o600))
	s := &Supervisor{hashes: hashes{logger: slog.New(slog.DiscardHandler), run: func(do func(context.Context)) { go do(t.Context()) }}}
	hash := s.hashes.of(t.Context(), base)
	require.Equal(t, "sha256:6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d", hash)
	own := map[string]domain.Disk{
		"root":  {Attachment: storage.Attachment{SizeBytes: 512, Source: storage.Overlay{Base: storage.Image{Path: base}}}},
		"empty": {Attachment: storage.Attachment{SizeBytes: 1024, Source: storage.Blank{}}},
		"claim": {Attachment: storage.Attachment{SizeBytes: 4096}},
	}
	root := func(b *protocol.MigrationBacking) []protocol.MigrationDisk {
		return []protocol.MigrationDisk{{Name: "root", SizeBytes: 512, Copied: true, Backing: b}}
	}
	for name, tt := range map[string]struct {
		disks  []protocol.MigrationDisk
		reason string
		says   string
	}{
		"the same":                       {root(&protocol.MigrationBacking{SizeBytes: 5, Hash: hash}), "", ""},
		"a hash that is not known":       {root(&protocol.MigrationBacking{SizeBytes: 5}), "", ""},
		"another hash":                   {root(&protocol.MigrationBacking{SizeBytes: 5, Hash: "sha256:0"}), protocol.ReasonContainerDiskChanged, "its content is sha256:6105"},
		"another size":                   {root(&protocol.MigrationBacking{SizeBytes: 6, Hash: hash}), protocol.ReasonContainerDiskChanged, "it has 5 bytes here and 6 there"},
		"no backing file there":          {root(nil), protocol.ReasonContainerDiskChanged, "only one of them has one"},
		"an empty disk of the same size": {[]protocol.MigrationDisk{{Name: "empty", SizeBytes: 1024, Copied: true}}, "", ""},
		"an empty disk of another size":  {[]protocol.MigrationDisk{{Name: "empty", SizeBytes: 512, Copied: true}}, protocol.ReasonDiskDiffers, "has 1024 bytes here and 512"},
		"a claim has grown":              {[]protocol.MigrationDisk{{Name: "claim", SizeBytes: 512}}, "", ""},
		"a claim is not copied":          {[]protocol.MigrationDisk{{Name: "claim", SizeBytes: 4096, Copied: true}}, protocol.ReasonDiskDiffers, "is no disk of the pod here"},
		"a disk that is not here":        {[]protocol.MigrationDisk{{Name: "new"}}, protocol.ReasonDiskDiffers, "is not in this pod"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.compare(t.Context(), tt.disks, own)
			if tt.reason == "" {
				require.NoError(t, err)
				return
			}
			var refused *vmi.Refusal
			require.ErrorAs(t, err, &refused)
			require.Equal(t, tt.reason, refused.Reason)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestPostCopyIsRefusedUnlessQEMUMayHandlePageFaults(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	missing, device, on, off := filepath.Join(dir, "missing"), file("device", ""), file("on", "1\n"), file("off", "0\n")
	require.NoError(t, postCopyFault(device, off))
	require.NoError(t, postCopyFault(missing, on))
	for _, s := range []string{off, missing} {
		var refused *vmi.Refusal
		require.ErrorAs(t, postCopyFault(missing, s), &refused)
		require.Equal(t, protocol.ReasonNoPostCopy, refused.Reason)
		require.Contains(t, refused.Message, "no such file or directory")
	}
}

func TestAGateHandsOutEachConnectionOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gate")
	require.NoError(t, os.WriteFile(path, nil, 0o600), "left by another")
	g, err := openGate(path)
	require.NoError(t, err)
	ended, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = g.next(ended)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, g.carried(t.Context()), "someone has asked")
	for i := range 3 {
		inner, err := net.Dial("unix", path)
		require.NoError(t, err)
		outer, err := g.next(t.Context())
		require.NoError(t, err)
		_, err = fmt.Fprint(inner, i)
		require.NoError(t, err)
		b := make([]byte, 1)
		_, err = outer.Read(b)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), string(b))
		require.NoError(t, inner.Close())
		require.NoError(t, outer.Close())
	}
	g.close()
	_, err = g.next(t.Context())
	require.ErrorContains(t, err, "sends nothing more")
	_, err = (*gate)(nil).next(t.Context())
	require.ErrorContains(t, err, "has not begun")
}
