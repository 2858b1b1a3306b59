package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/podvisor/podvisor/storage"
)

// Make makes the file of an attachment from its source and replaces one that
// is there. An attachment without a source is left as it is. When ctx ends, so
// does the program that makes the file.
func Make(ctx context.Context, a storage.Attachment) error {
	if a.Source == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(a.Path), 0o755); err != nil {
		return err
	}
	var err error
	switch s := a.Source.(type) {
	case storage.Overlay:
		err = create(ctx, a, "-F", string(s.Base.Format), "-b", s.Base.Path, "-u")
	case storage.Blank:
		err = create(ctx, a)
	case storage.Seed:
		err = iso(a.Path, s)
	default:
		err = fmt.Errorf("nobody knows how to make it from a %T", s)
	}
	if err != nil {
		return fmt.Errorf("make disk %s: %w", a.Name, err)
	}
	return nil
}

// create runs qemu-img create. The format and size of a backing file are told
// rather than looked up: with -u qemu-img does not open it.
func create(ctx context.Context, a storage.Attachment, args ...string) error {
	args = append([]string{"create", "-q", "-f", string(a.Format)}, args...)
	cmd := exec.CommandContext(ctx, "qemu-img", append(args, a.Path, strconv.FormatInt(a.SizeBytes, 10))...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("qemu-img create: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
