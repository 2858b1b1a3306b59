package images

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// File types of a cpio entry's mode.
const (
	cpioFolder = 0o040000
	cpioFile   = 0o100000
	cpioLink   = 0o120000
)

// writeCPIO writes the tree in the format "newc", which the kernel unpacks as its
// first root.
func (t tree) writeCPIO(w io.Writer) error {
	var b bytes.Buffer
	entry := func(inode int, name string, mode int64, content []byte) {
		links := 1
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", inode, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
		b.WriteString(name)
		// Name and content end on multiples of four.
		b.Write(make([]byte, 1+(4-(b.Len()+1)%4)%4))
		b.Write(content)
		b.Write(make([]byte, (4-b.Len()%4)%4))
	}
	for i, name := range t.sorted() {
		n := t[name]
		switch name := strings.TrimPrefix(name, "/"); {
		case n.Folder:
			entry(i+1, name, cpioFolder|n.Mode, nil)
		case n.Link != "":
			entry(i+1, name, cpioLink|n.Mode, []byte(n.Link))
		default:
			entry(i+1, name, cpioFile|n.Mode, n.Content)
		}
	}
	entry(0, "TRAILER!!!", 0, nil)
	_, err := w.Write(b.Bytes())
	return err
}
