package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// Screenshot has QEMU write the screen of the domain of this name to the file, as a
// PNG. The file is made by the user of QEMU, where QEMU sees the path, and replaces
// what is there.
//
// libvirt's own call sends the image as a stream, of which go-libvirt cannot find the
// end: it returns too early, or blocks the connection with what comes after it.
func (c *Connection) Screenshot(ctx context.Context, name, file string) error {
	command, err := json.Marshal(map[string]any{
		"execute": "screendump", "arguments": map[string]string{"filename": file, "format": "png"},
	})
	if err != nil {
		return fmt.Errorf("write the command for a screenshot of domain %s: %w", name, err)
	}
	const op = "take a screenshot of"
	answer, err := of(ctx, c, op, name, func(d golibvirt.Domain) (string, error) {
		return c.rpc.QEMUDomainMonitorCommand(d, string(command), 0)
	})
	if err != nil {
		return err
	}
	var said struct {
		Error *struct {
			Desc string `json:"desc"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(answer), &said); err != nil {
		return failure(op, name, err)
	}
	if said.Error != nil {
		return failure(op, name, errors.New(said.Error.Desc))
	}
	return nil
}
