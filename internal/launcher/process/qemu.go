package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// QEMU is the process ID of a domain's QEMU.
func (d *Daemon) QEMU(domain string) (int, error) {
	const most = 32
	f, err := regular(d.folder("run/libvirt/qemu/run/" + domain + ".pid"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// regular opens a file that whatever runs in the pod can replace. It follows no link, and
// does not wait for the other end of a FIFO.
func regular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	i, err := f.Stat()
	if err == nil && !i.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file but %s", path, i.Mode().Type())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// QEMUStopped reports whether a signal has stopped the QEMU of the domain, which does
// nothing until SIGCONT. libvirt waits for such a QEMU and does not say so.
func (d *Daemon) QEMUStopped(domain string) (bool, error) {
	pid, err := d.QEMU(domain)
	if err != nil {
		return false, err
	}
	s, ok := statusOf(pid)
	if !ok {
		return false, fmt.Errorf("QEMU of the domain %s: %w", domain, unix.ESRCH)
	}
	return s.state == 'T', nil
}

// QEMUMessages are the last lines that a domain's QEMU wrote to its log, on one
// line. Empty: it wrote none, or there is no log.
func (d *Daemon) QEMUMessages(domain string) string {
	return lastLines(d.logOf(domain))
}

// ended is in the line with which libvirt ends the log of a QEMU that is gone, before
// the name of the reason (virDomainShutoffReason).
const ended = ": shutting down, reason="

// QEMUReason is why libvirt says in the log that the domain's QEMU ended, as virsh
// domstate --reason says it: "shutdown" if the guest powered off, "destroyed",
// "crashed" and others. Empty: libvirt has not said that it ended.
func (d *Daemon) QEMUReason(domain string) string {
	_, line, _ := strings.Cut(lastOf(d.logOf(domain)), ended)
	return strings.TrimSpace(line)
}

func (d *Daemon) logOf(domain string) string {
	return d.folder("cache/libvirt/qemu/log/" + domain + ".log")
}

// lastOf is the last line of a log. Empty: there is none.
func lastOf(path string) string {
	lines := strings.Split(strings.TrimSpace(tail(path)), "\n")
	return lines[len(lines)-1]
}

// tail is the end of a file, as far as it can be read.
func tail(path string) string {
	const most = 4 << 10
	f, err := regular(path)
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
	return string(b[:n])
}

// lastLines are the last lines of QEMU's in its log. Those of libvirt, QEMU's
// command line for one, are left out.
func lastLines(path string) string {
	const lines = 4
	var last []string
	for line := range strings.Lines(tail(path)) {
		line = strings.TrimSpace(line)
		if strings.HasSuffix(line, ` \`) || strings.HasSuffix(line, "-msg timestamp=on") {
			last = nil // the command line ends here or later
			continue
		}
		if line != "" && !strings.Contains(line, ended) {
			last = append(last, line)
		}
	}
	return strings.Join(last[max(0, len(last)-lines):], "; ")
}
