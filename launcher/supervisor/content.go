package supervisor

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
)

// isImage says that the disk is an image that the pod makes of files. The files may be others
// when it is made again: the guest that moves keeps the image that it has.
func isImage(a storage.Attachment) bool {
	switch a.Source.(type) {
	case storage.Seed, storage.Folder:
		return true
	}
	return false
}

// mostContent is how many bytes of the images that a guest only reads are sent with the
// description of its domain.
const mostContent = protocol.MaxMigration / 2

// errFull is the error of what does not fit into a [limitedBuffer].
var errFull = errors.New("it is too large")

// limitedBuffer is a buffer of at most so many bytes.
type limitedBuffer struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errFull
	}
	return b.Buffer.Write(p)
}

// pack returns the compressed content of a file if it has at most so many bytes, and nil
// otherwise.
func pack(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := &limitedBuffer{most: most}
	w, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(w, f)
	switch err = errors.Join(err, w.Close()); {
	case errors.Is(err, errFull):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("compress %s: %w", path, err)
	}
	return out.Bytes(), nil
}

// unpack replaces the images that were made here by those that the guest has, of which the
// content came.
func unpack(disks []protocol.MigrationDisk, attachments map[string]domain.Disk) error {
	for _, d := range disks {
		if len(d.Content) == 0 {
			continue
		}
		a := attachments[d.Name]
		if err := unpackTo(a.Path, d); err != nil {
			return fmt.Errorf("write the image of volume %s: %w", d.Name, err)
		}
		a.SizeBytes = d.SizeBytes
		attachments[d.Name] = a
	}
	return nil
}

func unpackTo(path string, d protocol.MigrationDisk) (err error) {
	r, err := gzip.NewReader(bytes.NewReader(d.Content))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := io.Copy(f, io.LimitReader(r, d.SizeBytes+1))
	if err == nil && n != d.SizeBytes {
		err = fmt.Errorf("its content has another size than %d bytes", d.SizeBytes)
	}
	return err
}
