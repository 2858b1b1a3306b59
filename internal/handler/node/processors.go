package node

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// maxProcessors is how large the file about processors may be, in bytes.
const maxProcessors = 1 << 20

// ReadProcessors reads the file that says what processors guests can have.
func ReadProcessors(path string) (*protocol.Processors, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read what processors guests can have: %w", err)
	}
	defer f.Close()
	var p protocol.Processors
	if err := json.NewDecoder(io.LimitReader(f, maxProcessors)).Decode(&p); err != nil {
		return nil, fmt.Errorf("read what processors guests can have from %s: %w", path, err)
	}
	return &p, nil
}
