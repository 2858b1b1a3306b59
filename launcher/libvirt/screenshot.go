package libvirt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// Screenshot is the screen of the domain of this name as an image, in PNG or PPM as
// QEMU likes. One that is larger than most, in bytes, is an error.
//
// go-libvirt returns an error of its decoder after the image has come completely: it
// looks for the type of the image in the last packet of the stream, where it is not.
// That error is dropped if there is an image. A writer that fails, or waits, blocks
// the whole connection; this one does neither.
func (c *Connection) Screenshot(ctx context.Context, name string, most int) ([]byte, error) {
	const op = "take a screenshot of"
	image := &bounded{most: most}
	err := c.with(ctx, op, name, func(d golibvirt.Domain) error {
		_, err := c.rpc.DomainScreenshot(d, image, 0, 0)
		if le := (golibvirt.Error{}); errors.As(err, &le) || image.size == 0 {
			return err
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case image.size == 0:
		return nil, failure(op, name, errors.New("it gave no image"))
	case image.size > most:
		return nil, failure(op, name, fmt.Errorf("the image has %d bytes, and at most %d are read", image.size, most))
	}
	return image.content.Bytes(), nil
}

// bounded keeps what is written to it up to a size, and counts the rest.
type bounded struct {
	most, size int
	content    bytes.Buffer
}

// Write implements io.Writer. It never fails.
func (b *bounded) Write(p []byte) (int, error) {
	b.size += len(p)
	if b.size <= b.most {
		b.content.Write(p)
	}
	return len(p), nil
}
