package bench

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/vmi"
)

// place is where a VMI's QEMU runs: the process, as this host names it.
type place struct {
	proc string
}

// placeOf finds the QEMU of the VMI among the processes of this host.
func (b *Bench) placeOf(v *vmi.VirtualMachineInstance) (place, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return place{}, err
	}
	for _, p := range all {
		line, err := os.ReadFile(p + "/cmdline")
		if err == nil && bytes.Contains(line, fmt.Appendf(nil, "\x00guest=%s_%s,", v.Namespace, v.Name)) {
			return place{p}, nil
		}
	}
	return place{}, fmt.Errorf("no process of this host is the QEMU of %s/%s", v.Namespace, v.Name)
}

// dial connects to a socket that QEMU serves.
func (p place) dial(name string) (net.Conn, error) {
	found, err := filepath.Glob(p.proc + "/root/run/kubevirt-private/*/" + name)
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("find the socket %s: %d found: %w", name, len(found), err)
	}
	// A path of a socket may have 107 bytes.
	short := strings.TrimSuffix(found[0], "/"+name)
	d, err := os.Open(short)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	return net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name))
}

// serve answers what connects to the port of the VMI's pod, until the listener is closed.
func (p place) serve() (net.Listener, error) {
	type result struct {
		net.Listener
		error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread stays in the namespace, and ends with this function
		f, err := os.Open(p.proc + "/ns/net")
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		if err != nil {
			done <- result{nil, err}
			return
		}
		l, err := net.Listen("tcp4", ":"+port)
		done <- result{l, err}
	}()
	r := <-done
	if r.error != nil {
		return nil, fmt.Errorf("listen in a pod: %w", r.error)
	}
	go func() {
		for {
			c, err := r.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	return r.Listener, nil
}
