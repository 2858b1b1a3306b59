package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// passt is the program of this name behind one interface: what the guest sends is
// sent by this user.
type passt struct {
	address netip.AddrPort // where QEMU connects to
	ended   chan struct{}  // is closed at the end
}

// passt opens the network of an interface, until ctx is done or QEMU ends.
//
// QEMU and passt have the same protocol, and libvirt 9.0 of Debian has only one way to
// ask QEMU for it: a TCP connection. Its server is here, on loopback, takes one
// connection of a process of this user, and hands it to passt.
func (h *host) passt(ctx context.Context, program, name string, forwards []forward) (*passt, error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	p := &passt{address: l.Addr().(*net.TCPAddr).AddrPort(), ended: make(chan struct{})}
	// The gateway would be loopback, where services trust this host.
	args := []string{"--foreground", "--quiet", "--no-map-gw", "--fd", "3"}
	for _, a := range nameServers(resolvers) {
		args = append(args, "--dns", a.String())
	}
	for _, f := range forwards {
		args = append(args, f.arguments()...)
		fmt.Fprintln(h.notes, "run-vmi:", f)
	}
	go func() {
		defer close(p.ended)
		defer context.AfterFunc(ctx, func() { l.Close() })()
		conn, err := accept(l)
		if err == nil {
			l.Close()
			err = serve(ctx, conn, program, args)
		}
		if err != nil && ctx.Err() == nil {
			h.log.WarnContext(ctx, "the guest's network has ended", "interface", name, "err", err)
		}
	}()
	return p, nil
}

// serve runs passt on the connection until QEMU closes it.
func serve(ctx context.Context, conn *net.TCPConn, program string, args []string) error {
	f, err := conn.File()
	conn.Close()
	if err != nil {
		return err
	}
	defer f.Close()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{f}, &said
	err = cmd.Start()
	f.Close()
	if err == nil {
		err = cmd.Wait()
	}
	// It ends so where QEMU has closed the connection too, and says then nothing.
	if why := complaint(said.String()); err != nil && why != "" {
		return fmt.Errorf("passt: %w: %s", err, why)
	}
	return nil
}

// complaint is the last line of what passt says, without those about the system's log,
// which a container does not have.
func complaint(said string) string {
	why := ""
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "to syslog") {
			why = line
		}
	}
	return why
}

// accept returns the first connection of a process of this user. Others could be of any
// user of this host.
func accept(l *net.TCPListener) (*net.TCPConn, error) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		uid, err := owner(c)
		if err == nil && uid == os.Geteuid() {
			return c, nil
		}
		c.Close()
	}
}

// owner is the user of the process at the other end of a connection on loopback.
func owner(c *net.TCPConn) (int, error) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	own, other := inProc(c.RemoteAddr()), inProc(c.LocalAddr())
	for s := bufio.NewScanner(f); s.Scan(); {
		// Number, local address, remote address, state, queues, timer, retransmissions, user.
		if words := strings.Fields(s.Text()); len(words) > 7 && words[1] == own && words[2] == other {
			return strconv.Atoi(words[7])
		}
	}
	return 0, errors.New("the other end is not on this host")
}

// inProc is an IPv4 address as /proc/net/tcp has it: its four bytes as a number of the
// processor.
func inProc(a net.Addr) string {
	at := a.(*net.TCPAddr).AddrPort()
	b := at.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(b[:]), at.Port())
}
