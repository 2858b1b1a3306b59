package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/podvisor/podvisor/storage"
)

// Make makes the file of an attachment from its source. A file that is ephemeral
// is made in any case and replaces one that is there; a [storage.Persistent] is
// made only if nothing is at its path, whatever else makes it at the same time, and a
// [storage.Grown] is extended.
// An attachment without a source is left as it is. When ctx ends, so does the
// program that makes the file. Errors name the volume and the path.
func Make(ctx context.Context, a storage.Attachment) error {
	var err error
	switch s := a.Source.(type) {
	case nil:
		return nil
	case storage.Persistent:
		err = createOnce(a.Path, a.SizeBytes)
	case storage.Grown:
		err = grow(a.Path, a.SizeBytes)
	case storage.Overlay:
		err = create(ctx, a, "-F", string(s.Base.Format), "-b", s.Base.Path, "-u")
	case storage.Blank:
		err = create(ctx, a)
	case storage.Seed:
		err = seeded(a.Path, s)
	case storage.Folder:
		err = folder(a.Path, s)
	default:
		err = fmt.Errorf("unknown source %T", s)
	}
	if err != nil {
		return fmt.Errorf("make disk of volume %s at %s: %w", a.Name, a.Path, err)
	}
	return nil
}

// Limits of qemu-img, which writes a few tables.
const (
	createTimeout  = time.Minute
	maxOutput      = 4 << 10
	outputDeadline = 5 * time.Second
)

// create runs qemu-img create. The format and size of a backing file are
// arguments: with -u qemu-img does not open it.
func create(ctx context.Context, a storage.Attachment, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(a.Path), 0o755); err != nil {
		return err
	}
	args = append([]string{"create", "-q", "-f", string(a.Format)}, args...)
	cmd := exec.CommandContext(ctx, "qemu-img", append(args, a.Path, strconv.FormatInt(a.SizeBytes, 10))...)
	var stderr head
	cmd.Stderr, cmd.WaitDelay = &stderr, outputDeadline
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("qemu-img create: %w: %s", err, bytes.TrimSpace(stderr))
	}
	return nil
}

// head keeps the beginning of what is written to it.
type head []byte

func (h *head) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), maxOutput-len(*h))]...)
	return len(p), nil
}
