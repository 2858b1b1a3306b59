package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
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
	hash, err := s.hashes.of(t.Context(), base)
	require.NoError(t, err)
	require.Equal(t, "sha256:6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d", hash)
	s.facts = &facts{desired: &protocol.Desired{Instance: vmitest.New(vmitest.WithContainerDisk("root", "image"))}}
	files := filepath.Join(dir, "files")
	require.NoError(t, os.WriteFile(files, []byte("files"), 0o600))
	own := map[string]domain.Disk{
		"cd":      {Attachment: storage.Attachment{Name: "cd", Path: files, SizeBytes: 5, Source: storage.Folder{}}},
		"claimed": {Attachment: storage.Attachment{Name: "claimed", SizeBytes: 512, Source: storage.Overlay{Base: storage.Image{Path: base}}}},
		"root":    {Attachment: storage.Attachment{Name: "root", SizeBytes: 512, Source: storage.Overlay{Base: storage.Image{Path: base}}}},
		"empty":   {Attachment: storage.Attachment{SizeBytes: 1024, Source: storage.Blank{}}},
		"claim":   {Attachment: storage.Attachment{SizeBytes: 4096}},
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
		"a hash that is not known":       {root(&protocol.MigrationBacking{SizeBytes: 5}), protocol.ReasonContainerDiskChanged, "its content is sha256:6105"},
		"a file in the same claim":       {[]protocol.MigrationDisk{{Name: "claimed", SizeBytes: 512, Copied: true, Backing: &protocol.MigrationBacking{SizeBytes: 5}}}, "", ""},
		"files that are sent":            {[]protocol.MigrationDisk{{Name: "cd", SizeBytes: 9, Content: []byte{1}}}, "", ""},
		"the same files, which are many": {[]protocol.MigrationDisk{{Name: "cd", SizeBytes: 5, Backing: &protocol.MigrationBacking{SizeBytes: 5, Hash: "sha256:3d7db37d08f9140fd09f12b9621cd0954b6d56a9d2f357fb2c7f5d62636d2fd1"}}}, "", ""},
		"other files, which are many":    {[]protocol.MigrationDisk{{Name: "cd", SizeBytes: 5, Backing: &protocol.MigrationBacking{SizeBytes: 5, Hash: "sha256:0"}}}, protocol.ReasonDiskDiffers, "volume cd has other files here"},
		"a claim is not sent":            {[]protocol.MigrationDisk{{Name: "claim", SizeBytes: 4096, Content: []byte{1}}}, protocol.ReasonDiskDiffers, "is no disk of the pod here"},
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

func TestAnImageThatTheGuestReadsIsAsItWasWhereItRan(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o644))
		return path
	}
	image := append(make([]byte, 64<<10), "the secret as it was"...)
	there := file("there", image)
	content, err := pack(there, 1<<10)
	require.NoError(t, err)
	require.Less(t, len(content), 1<<10)
	none, err := pack(there, 20)
	require.NoError(t, err)
	require.Nil(t, none, "it is larger")
	_, err = pack(filepath.Join(dir, "missing"), 1<<10)
	require.ErrorIs(t, err, os.ErrNotExist)

	for name, own := range map[string]string{"of the same size": strings.Repeat("x", len(image)), "shorter": "x", "longer": strings.Repeat("x", len(image)+1)} {
		disks := []protocol.MigrationDisk{{Name: "other"}, {Name: "cd", SizeBytes: int64(len(image)), Content: content}}
		here := map[string]domain.Disk{"cd": {Attachment: storage.Attachment{Path: file("here", []byte(own)), SizeBytes: int64(len(own)), Source: storage.Folder{}}}}
		require.NoError(t, hide(disks, here))
		require.NoError(t, unpack(disks, here), name)
		got, err := os.ReadFile(here["cd"].Path)
		require.NoError(t, err)
		require.Equal(t, image, got, name)
		require.EqualValues(t, len(image), here["cd"].SizeBytes, name)
		require.Equal(t, storage.Folder{}, here["cd"].Source, "it can move on")
		info, err := os.Stat(here["cd"].Path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		disks[1].SizeBytes--
		require.ErrorContains(t, unpack(disks, here), "write the image of volume cd: its content has another size")
	}
}

func TestAGuestDoesNotMoveWhoseImageWasNotCompared(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "base")
	runs := make(chan func(context.Context), 10)
	s := &Supervisor{hashes: hashes{logger: slog.New(slog.DiscardHandler), run: func(do func(context.Context)) { runs <- do }}}
	s.facts = &facts{desired: &protocol.Desired{Instance: vmitest.New(vmitest.WithContainerDisk("root", "image"))}}
	disk := domain.Disk{Attachment: storage.Attachment{Name: "root", SizeBytes: 512, Source: storage.Overlay{Base: storage.Image{Path: base}}}}
	refused := func(ctx context.Context, says string) {
		t.Helper()
		_, err := s.backing(ctx, disk)
		var r *vmi.Refusal
		require.ErrorAs(t, err, &r)
		require.Equal(t, protocol.ReasonContainerDiskNotCompared, r.Reason)
		require.ErrorContains(t, err, "volume root")
		require.ErrorContains(t, err, says)
	}
	late, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errHashLate)
	defer cancel()
	refused(late, "it was not read within 25s")

	(<-runs)(t.Context()) // there is no file
	go func() { (<-runs)(t.Context()) }()
	refused(t.Context(), "no such file")
	require.NoError(t, os.WriteFile(base, []byte("image"), 0o600))
	go func() { (<-runs)(t.Context()) }()
	b, err := s.backing(t.Context(), disk)
	require.NoError(t, err, "it is read again")
	require.NotEmpty(t, b.Hash)
	require.Empty(t, runs)
}

func TestAGuestDoesNotRunWhereTheLauncherWasStopped(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Supervisor{config: Config{Logger: slog.New(slog.DiscardHandler)}, facts: newFacts(), inner: ended}
	s.facts.stopBy = time.Now()
	s.moves.to = &arrival{uid: "m1", prepared: known(protocol.MigrationStep{})}
	finished, discarded, err := s.finishing(protocol.MigrationEnd{MigrationStep: protocol.MigrationStep{UID: "m1"}, Moved: true})
	require.NoError(t, err)
	require.Nil(t, finished)
	require.NotNil(t, discarded)
	s.work.Wait()
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

func TestTheTargetAnswersAsSoonAsTheGuestRuns(t *testing.T) {
	ended := func(err error) *once[protocol.MigrationStep] {
		o := known(protocol.MigrationStep{UID: "m1"})
		o.err = err
		return o
	}
	under := &once[protocol.MigrationStep]{done: make(chan struct{})}
	for name, tt := range map[string]struct {
		settings protocol.MigrationSettings
		event    libvirt.EventKind
		whole    *once[protocol.MigrationStep]
		err      error
	}{
		"the guest runs":                   {event: libvirt.Resumed, whole: under},
		"it does not, and libvirt fails":   {event: libvirt.Suspended, whole: ended(notMoved("m1")), err: notMoved("m1")},
		"it does not, and libvirt is done": {event: libvirt.Suspended, whole: ended(nil)},
		"it does not":                      {event: libvirt.Suspended, whole: under, err: context.Canceled},
		"a post-copy is under way":         {event: libvirt.Resumed, whole: under, settings: protocol.MigrationSettings{PostCopy: true}, err: context.Canceled},
		"a post-copy is over":              {event: libvirt.Resumed, whole: ended(nil), settings: protocol.MigrationSettings{PostCopy: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Supervisor{config: Config{Namespace: "ns", Name: "vm", Logger: slog.New(slog.DiscardHandler)}, facts: newFacts(), session: &session{ready: make(chan struct{})}}
			inner, cancel := context.WithCancel(t.Context())
			cancel()
			s.inner = inner
			a := &arrival{uid: "m1", settings: tt.settings}
			s.moves.to = a
			s.expect(a)
			s.happened(libvirt.Event{Domain: "other", Kind: libvirt.Resumed})
			for range 2 {
				s.happened(libvirt.Event{Domain: s.domainName(), Kind: tt.event})
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if errors.Is(tt.err, context.Canceled) {
				ctx = inner
			}
			step, err := a.answer(ctx, tt.whole)
			require.Equal(t, tt.err, err)
			if err == nil {
				require.Equal(t, protocol.MigrationStep{UID: "m1"}, step)
			}
		})
	}
}
