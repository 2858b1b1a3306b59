package process

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
)

// QEMU is the process ID of a domain's QEMU.
func (d *Daemon) QEMU(domain string) (int, error) {
	b, err := os.ReadFile(d.folder("run/libvirt/qemu/run/" + domain + ".pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// QEMUMessages are the last lines that a domain's QEMU wrote to its log, on one
// line. Empty: it wrote none, or there is no log.
func (d *Daemon) QEMUMessages(domain string) string {
	return lastLines(d.folder("cache/libvirt/qemu/log/" + domain + ".log"))
}

// lastLines are the last lines of QEMU's in its log. Those of libvirt, QEMU's
// command line for one, are left out.
func lastLines(path string) string {
	const most, lines = 4 << 10, 4
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, most)
	n, err := f.ReadAt(b, max(0, info.Size()-most))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	var last []string
	for line := range strings.Lines(string(b[:n])) {
		line = strings.TrimSpace(line)
		if strings.HasSuffix(line, ` \`) || strings.HasSuffix(line, "-msg timestamp=on") {
			last = nil // the command line ends here or later
			continue
		}
		if line != "" && !strings.Contains(line, ": shutting down, reason=") {
			last = append(last, line)
		}
	}
	return strings.Join(last[max(0, len(last)-lines):], "; ")
}
