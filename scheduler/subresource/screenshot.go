package subresource

import (
	"context"
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// mostToShow is how long a screenshot may take.
const mostToShow = 10 * time.Second

// mostOfPicture is the largest screenshot, in bytes: an 8K screen in 24 bits, without
// compression, has fewer.
const mostOfPicture = 128 << 20

// screenshot sends the picture of the VMI's screen.
func (s *Server) screenshot(ctx context.Context, r *request, v *vmi.VirtualMachineInstance) error {
	leave, err := s.streams.take(key(v))
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, mostToShow)
	defer cancel()
	c, err := s.Guests.Stream(ctx, v, protocol.StreamScreenshot)
	if err != nil {
		return r.verb.Refused(v, err)
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	return sendPicture(r, v, c)
}

// sendPicture passes a PNG file on. What it is is checked before anything is sent.
func sendPicture(r *request, v *vmi.VirtualMachineInstance, from io.Reader) error {
	const magic = "\x89PNG\r\n\x1a\n"
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(from, head); err != nil {
		return r.verb.Refused(v, err)
	}
	if string(head) != magic {
		return apierrors.NewInternalError(errors.New("the launcher of VMI " + v.Name + " answers with no PNG file"))
	}
	r.w.Header().Set("Content-Type", "image/png")
	_, err := r.w.Write(head)
	if err == nil {
		_, err = io.CopyN(r.w, from, mostOfPicture)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		panic(errCut) // the client must not take a part for the whole
	}
	return errStreamed
}
