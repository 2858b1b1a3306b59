package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
)

// mostPicture is the largest picture of a screen, in bytes.
const mostPicture = 32 << 20

// openScreenshot returns a connection that brings a picture of the guest's screen and ends.
func (s *Supervisor) openScreenshot(ctx context.Context) (net.Conn, error) {
	file := filepath.Join(s.privateDir(), fmt.Sprintf("screenshot-%d.png", time.Now().UnixNano()))
	err := s.withGuest(ctx, func(ctx context.Context, c *libvirt.Connection) error { return c.Screenshot(ctx, s.domainName(), file) })
	f, openErr := os.Open(file)
	if openErr == nil {
		_ = os.Remove(file) // it is open
	}
	if err = errors.Join(err, openErr); err != nil {
		if openErr == nil {
			err = errors.Join(err, f.Close())
		}
		return nil, fmt.Errorf("take a picture of the screen: %w", err)
	}
	near, far := net.Pipe()
	go func() { // ends when the other end is closed
		defer f.Close()
		defer far.Close()
		_, _ = io.Copy(far, io.LimitReader(f, mostPicture))
	}()
	return near, nil
}
