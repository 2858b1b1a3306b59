package link

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/network/frame"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// Announce makes known to the networks of a bound pod that the guest is there now: cfg is
// the plan that was applied, and reported are the interfaces of the VMI's status, see
// [frame.Announcements]. It takes 0.8 s. An interface that does not carry frames keeps
// none of the others from being announced.
func Announce(ctx context.Context, ns *os.File, cfg network.Config, reported []vmi.InterfaceStatus) error {
	frames := frame.Announcements(cfg.Filters, reported)
	if len(frames) == 0 {
		return nil
	}
	for _, pause := range frame.Pauses() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		if err := within(ns, func() error { return send(redirect, frames) }); err != nil {
			return fmt.Errorf("announce the guest: %w", err)
		}
	}
	return nil
}

// holdPeriod is the time between two frames by which a guest holds its ports.
const holdPeriod = 50 * time.Millisecond

// Hold keeps the ports of switches by which the guest of a bound pod is reached, while others
// send from its MAC addresses as well: cfg is the plan that was applied. It sends what [frame.Ports]
// says until ctx ends, which is no error. A link that cannot be opened is named then, and keeps
// none of the others from it.
func Hold(ctx context.Context, ns *os.File, cfg network.Config) error {
	frames := frame.Ports(cfg.Filters)
	if len(frames) == 0 {
		return nil
	}
	var all senders
	defer func() { all.close() }()
	err := within(ns, func() (err error) {
		all, err = open(redirect, frames)
		return err
	})
	every := time.NewTicker(holdPeriod)
	defer every.Stop()
	for more := len(all) > 0; more; {
		if failed := all.send(); failed != nil {
			err = errors.Join(err, failed)
			break
		}
		select {
		case <-ctx.Done():
			more = false
		case <-every.C:
		}
	}
	if err != nil {
		return fmt.Errorf("hold the ports of the guest: %w", err)
	}
	return nil
}

// resetRounds is how often the peers of connections are asked, and resetPause the time
// between: longer than the time for which a host does not answer such a segment again
// (net.ipv4.tcp_invalid_ratelimit).
const (
	resetRounds = 3
	resetPause  = 600 * time.Millisecond
)

// mostReset is how many connections are ended that nothing is sent on.
const mostReset = 1 << 16

// Reset ends the connections of a guest that has left the pod: cfg is the plan that was
// applied, whose address translation must have been removed. What the guest's peers send
// to the pod is for the pod itself from then on, which answers it with a reset of TCP or
// an error of ICMP. Peers that send nothing are made to, see [frame.Probes]. That takes
// 1.2 s and has to end before the pod loses its links.
func Reset(ctx context.Context, ns *os.File, cfg network.Config) error {
	uplinks := translated(cfg)
	if len(uplinks) == 0 {
		return nil
	}
	var probes []frame.Frame
	err := within(ns, func() error {
		all, err := connections(cfg)
		if err != nil {
			return err
		}
		for _, l := range uplinks {
			probes = append(probes, frame.Probes(l, all)...)
		}
		return netlink.ConntrackTableFlush(netlink.ConntrackTable)
	})
	if err != nil {
		return fmt.Errorf("forget the connections of the guest: %w", err)
	}
	for n := range resetRounds {
		if err := within(ns, func() error { return send(redirectNeighbour, probes) }); err != nil {
			return fmt.Errorf("end the connections of the guest: %w", err)
		}
		if len(probes) == 0 || n == resetRounds-1 {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(resetPause):
		}
	}
	return nil
}

// translated are the links by which the pod sends what it translates for guests.
func translated(cfg network.Config) []string {
	var out []string
	for _, l := range cfg.Links {
		if l.Kind == network.Uplink && l.Master == "" && slices.ContainsFunc(cfg.NAT, func(n network.NAT) bool { return interfaceOf(cfg, n.Link) == l.Interface }) {
			out = append(out, l.Name)
		}
	}
	return out
}

func interfaceOf(cfg network.Config, link string) string { return interfaces(cfg)[link] }

// connections are those of TCP that the pod translates for its guests.
func connections(cfg network.Config) ([]frame.Connection, error) {
	pod := map[netip.Addr]bool{}
	for _, n := range cfg.NAT {
		for _, g := range n.Guests {
			for _, a := range g.Pod {
				pod[a] = true
			}
		}
	}
	var out []frame.Connection
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		all, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, err
		}
		for _, f := range all {
			tcp, ok := f.ProtoInfo.(*netlink.ProtoInfoTCP)
			if !ok || !lasts(tcp.State) {
				continue
			}
			// The first packet went to the pod, or the answers do.
			for _, t := range []struct{ from, to netip.AddrPort }{
				{addrPort(f.Forward.DstIP, f.Forward.DstPort), addrPort(f.Forward.SrcIP, f.Forward.SrcPort)},
				{addrPort(f.Reverse.DstIP, f.Reverse.DstPort), addrPort(f.Reverse.SrcIP, f.Reverse.SrcPort)},
			} {
				if pod[t.from.Addr()] && !pod[t.to.Addr()] && len(out) < mostReset {
					out = append(out, frame.Connection{Pod: t.from, Peer: t.to})
				}
			}
		}
	}
	return out, nil
}

// lasts says that a connection in this state of the kernel's tracking has two ends.
func lasts(state uint8) bool { return state >= 2 && state <= 6 } // SYN_RECV to LAST_ACK

func addrPort(ip []byte, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

// The functions of the kernel by which a program sends a frame by a link: as it is
// (bpf_redirect), or to the MAC address of the next hop of its packet
// (bpf_redirect_neigh, Linux 5.10).
const (
	redirect          = 23
	redirectNeighbour = 152
)

// send sends the frames by their links, from the namespace that the thread is in.
func send(by int32, frames []frame.Frame) error {
	all, err := open(by, frames)
	defer all.close()
	return errors.Join(err, all.send())
}

// senders send frames, each by its link.
type senders []sender

// sender sends its frames into a tap device.
type sender struct {
	link   string
	tap    int
	frames []frame.Frame
}

// open opens what sends the frames by their links, from the namespace that the thread is in.
// They come into the pod by a tap device that exists as long as it is open, and a program on it
// hands them to the link: so no packet socket is needed, for which the handler has no right,
// and no rule for what guests send is in their way. A link that fails is left out.
func open(by int32, frames []frame.Frame) (all senders, err error) {
	var faults []error
	for len(frames) > 0 {
		s := sender{link: frames[0].Link}
		var rest []frame.Frame
		for _, f := range frames {
			if f.Link == s.link {
				s.frames = append(s.frames, f)
			} else {
				rest = append(rest, f)
			}
		}
		if s.tap, err = openLink(by, s.link); err != nil {
			faults = append(faults, fmt.Errorf("link %s: %w", s.link, err))
		} else {
			all = append(all, s)
		}
		frames = rest
	}
	return all, errors.Join(faults...)
}

// openLink opens a tap device whose frames the link sends.
func openLink(by int32, link string) (tap int, err error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return -1, err
	}
	defer h.Close()
	to, err := h.LinkByName(link)
	if err != nil {
		return -1, err
	}
	program, err := load(handOver(by, to.Attrs().Index))
	if err != nil {
		return -1, fmt.Errorf("load the program into the kernel: %w", err)
	}
	defer unix.Close(program)
	fd, name, err := openTap()
	if err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	from, err := h.LinkByName(name)
	if err != nil {
		return -1, err
	}
	const noAddress = 1 // IN6_ADDR_GEN_MODE_NONE
	// A kernel without IPv6 gives the link no address either.
	_ = h.LinkSetIP6AddrGenMode(from, noAddress)
	if err := addFilter(h, from, program, "podvisor-send"); err != nil {
		return -1, err
	}
	if err := h.LinkSetUp(from); err != nil {
		return -1, fmt.Errorf("set up the tap device: %w", err)
	}
	return fd, nil
}

// send sends all frames once. It may be called in any namespace.
func (all senders) send() error {
	var faults []error
	for _, s := range all {
		for _, f := range s.frames {
			if _, err := unix.Write(s.tap, f.Bytes); err != nil {
				faults = append(faults, fmt.Errorf("link %s: write a frame: %w", s.link, err))
				break
			}
		}
	}
	return errors.Join(faults...)
}

func (all senders) close() {
	for _, s := range all {
		_ = unix.Close(s.tap)
	}
}

// openTap makes a tap device that is gone when it is closed.
func openTap() (fd int, name string, err error) {
	if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return -1, "", fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq("send%d")
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, "", fmt.Errorf("make tap device: %w", err)
	}
	return fd, req.Name(), nil
}

// handOver is the program that sends each frame by the link of that index.
func handOver(by int32, index int) program {
	return program{
		{op: moveValue, to: r1, value: int32(index)}, {op: moveValue, to: r2},
		{op: moveValue, to: r3}, {op: moveValue, to: r4},
		{op: callFunction, value: by}, {op: finish},
	}
}
