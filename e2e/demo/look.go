package demo

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/podvisor/podvisor/vmi/client"
)

// looks is how long the console and the screen may take.
const looks = time.Minute

// typed are the lines that are typed at the console of the guest, a root shell. The last
// one writes to the guest's screen.
var typed = []string{"uname -sr", "uptime", "cat /www/hello.txt", "(uname -a; uptime) >/dev/tty1"}

// prompt ends the prompt of the guest's shell.
const prompt = ":/# "

// look opens the console and the screen of the VMI through the API server.
func (d *Demo) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, looks, fmt.Errorf("%s are over", looks))
	defer cancel()
	_, c, err := d.clients()
	if err != nil {
		return err
	}
	vmis := c.VirtualMachineInstances(namespace)
	d.title("The guest's console, through the API: go run ./examples/console " + name)
	shown, err := converse(ctx, vmis)
	if err != nil {
		return fmt.Errorf("open the console of %s: %w; it showed %q", name, err, shown)
	}
	d.text(shown)

	d.title("The guest's screen, through the API: .../virtualmachineinstances/" + name + "/vnc/screenshot")
	picture, err := vmis.Screenshot(ctx, name)
	if err != nil {
		return fmt.Errorf("take a screenshot of %s: %w", name, err)
	}
	size, err := png.DecodeConfig(bytes.NewReader(picture))
	if err != nil {
		return fmt.Errorf("the screenshot of %s is no PNG: %w", name, err)
	}
	if err := os.MkdirAll(filepath.Join(d.Root, filepath.Dir(pictureFile)), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.Root, pictureFile), picture, 0o644); err != nil { //nolint:gosec // it is to be looked at
		return err
	}
	d.text(fmt.Sprintf("%d x %d points, as a PNG in the file %s", size.Width, size.Height, pictureFile))
	return nil
}

// pictureFile is where the screenshot is, below the folder of the project.
const pictureFile = "_output/hello.png"

// converse types the lines at the console and returns what it showed. The next line is typed
// when the prompt is there.
func converse(ctx context.Context, vmis client.VirtualMachineInstances) (string, error) {
	var stream net.Conn
	for {
		var err error
		if stream, err = vmis.Console(ctx, name); err == nil {
			break
		}
		select { // the API server may not know the API yet
		case <-ctx.Done():
			return "", fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(time.Second):
		}
	}
	defer func() { _ = stream.Close() }() // the guest runs on
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	var shown strings.Builder
	b := make([]byte, 4096)
	// The shell starts at the first Enter.
	for _, line := range append([]string{""}, typed...) {
		if _, err := stream.Write([]byte(line + "\r")); err != nil {
			return clean(shown.String()), err
		}
		for from := shown.Len(); !strings.Contains(shown.String()[from:], prompt); {
			n, err := stream.Read(b)
			shown.Write(b[:n])
			if err != nil {
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				return clean(shown.String()), err
			}
		}
	}
	return clean(shown.String()), nil
}

// clean is the text without what moves the cursor, and without lines that are empty.
func clean(text string) string {
	text = strings.NewReplacer("\r", "", "\x1b[6n", "", "\x1b[J", "").Replace(text)
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			out.WriteString(line)
		}
	}
	return out.String()
}
