package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
)

// ErrCrowded is wrapped by the error of [Observe] and the others about a namespace that has
// more than a pod's.
var ErrCrowded = errors.New("too many for the network namespace of a pod")

// most is how many links, ports, addresses, routes or neighbours of a namespace are read. To
// read a hundred thousand takes seconds and hundreds of megabytes.
const most = 4096

// dump calls each with every answer to a request for all of a kind in the namespace that
// the thread is in, until each fails, ctx ends, or there are too many. What is not read is
// left to the kernel: a tenant may have made any number, also since the last dump.
func dump(ctx context.Context, what string, request int, about nl.NetlinkRequestData, each func(syscall.NetlinkMessage) error) error {
	err := dumped(ctx, request, about, each)
	if err != nil {
		return fmt.Errorf("list %s: %w", what, err)
	}
	return nil
}

func dumped(ctx context.Context, request int, about nl.NetlinkRequestData, each func(syscall.NetlinkMessage) error) error {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer s.Close() // and the kernel stops
	timeout := nl.SocketTimeoutTv
	if end, ok := ctx.Deadline(); ok {
		timeout = unix.NsecToTimeval(max(time.Until(end), time.Millisecond).Nanoseconds())
	}
	if err := errors.Join(s.SetSendTimeout(&timeout), s.SetReceiveTimeout(&timeout)); err != nil {
		return err
	}
	req := nl.NewNetlinkRequest(request, unix.NLM_F_DUMP)
	req.AddData(about)
	if err := s.Send(req); err != nil {
		return err
	}
	for n := 0; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		messages, from, err := s.Receive()
		if err != nil {
			return err
		}
		if from.Pid != nl.PidKernel {
			continue
		}
		for _, m := range messages {
			switch {
			case m.Header.Flags&unix.NLM_F_DUMP_INTR != 0:
				return netlink.ErrDumpInterrupted
			case m.Header.Type == unix.NLMSG_DONE:
				return nil
			case m.Header.Type == unix.NLMSG_ERROR:
				return answered(m)
			}
			if n++; n > most {
				return fmt.Errorf("more than %d are %w", most, ErrCrowded)
			}
			if err := each(m); err != nil {
				return err
			}
		}
	}
}

// answered is the error in an answer of the kernel.
func answered(m syscall.NetlinkMessage) error {
	if len(m.Data) < 4 {
		return unix.EBADMSG
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
}

// attributes calls each with the attributes behind a header of so many bytes.
func attributes(data []byte, header int, each func(kind uint16, value []byte)) error {
	if len(data) < header {
		return unix.EBADMSG
	}
	all, err := nl.ParseRouteAttr(data[header:])
	if err != nil {
		return err
	}
	for _, a := range all {
		each(a.Attr.Type&nl.NLA_TYPE_MASK, a.Value)
	}
	return nil
}

// eachLink calls f with the links of the namespace or, of the family AF_BRIDGE, with its
// bridges and their ports.
func eachLink(ctx context.Context, family int, f func(netlink.Link) error) error {
	what := "links"
	if family == unix.AF_BRIDGE {
		what = "the ports of bridges"
	}
	return dump(ctx, what, unix.RTM_GETLINK, nl.NewIfInfomsg(family), func(m syscall.NetlinkMessage) error {
		l, err := netlink.LinkDeserialize(&unix.NlMsghdr{Type: m.Header.Type}, m.Data)
		if err != nil {
			return err
		}
		return f(l)
	})
}

// eachNeighbour calls f with the neighbours of the family or, of AF_BRIDGE, with the
// addresses behind the ports of bridges.
func eachNeighbour(ctx context.Context, family int, f func(*netlink.Neigh)) error {
	return dump(ctx, "neighbours", unix.RTM_GETNEIGH, &netlink.Ndmsg{Family: uint8(family)}, func(m syscall.NetlinkMessage) error {
		n, err := netlink.NeighDeserialize(m.Data)
		if err == nil {
			f(n)
		}
		return err
	})
}

// eachAddress calls f with the addresses of the family and the indexes of their links.
func eachAddress(ctx context.Context, family int, f func(index int, a netip.Prefix)) error {
	return dump(ctx, "addresses", unix.RTM_GETADDR, nl.NewIfAddrmsg(family), func(m syscall.NetlinkMessage) error {
		var address, local netip.Addr
		err := attributes(m.Data, unix.SizeofIfAddrmsg, func(kind uint16, value []byte) {
			switch kind {
			case unix.IFA_ADDRESS:
				address, _ = netip.AddrFromSlice(value)
			case unix.IFA_LOCAL:
				local, _ = netip.AddrFromSlice(value)
			}
		})
		if err != nil {
			return err
		}
		bits := int(m.Data[1])
		if local.IsValid() && local != address { // address is that of the peer
			address, bits = local, local.BitLen()
		}
		if p := netip.PrefixFrom(address, bits); p.IsValid() {
			f(int(binary.NativeEndian.Uint32(m.Data[4:])), p)
		}
		return nil
	})
}

// foundRoute is a route of a dump.
type foundRoute struct {
	network.Route
	index, priority, table int
	protocol               uint8
}

// eachRoute calls f with the routes of the family to a host or network, in all tables. Of a
// route with several ways there is the first one.
func eachRoute(ctx context.Context, family int, f func(foundRoute)) error {
	return dump(ctx, "routes", unix.RTM_GETROUTE, nl.NewIfInfomsg(family), func(m syscall.NetlinkMessage) error {
		if len(m.Data) < unix.SizeofRtMsg {
			return unix.EBADMSG
		}
		msg := nl.DeserializeRtMsg(m.Data)
		r := foundRoute{table: int(msg.Table), protocol: msg.Protocol}
		to := netip.IPv4Unspecified()
		if msg.Family == unix.AF_INET6 {
			to = netip.IPv6Unspecified()
		}
		err := attributes(m.Data, unix.SizeofRtMsg, func(kind uint16, value []byte) {
			switch kind {
			case unix.RTA_DST:
				to, _ = netip.AddrFromSlice(value)
			case unix.RTA_MULTIPATH:
				r.way(value)
			default:
				r.attribute(kind, value)
			}
		})
		if err != nil {
			return err
		}
		cloned := msg.Flags&unix.RTM_F_CLONED != 0
		r.Destination = netip.PrefixFrom(to, int(msg.Dst_len))
		if (msg.Family == unix.AF_INET || msg.Family == unix.AF_INET6) && msg.Type == unix.RTN_UNICAST && !cloned && r.Destination.IsValid() {
			f(r)
		}
		return nil
	})
}

func (r *foundRoute) attribute(kind uint16, value []byte) {
	number := func(to *int) {
		if len(value) >= 4 {
			*to = int(binary.NativeEndian.Uint32(value))
		}
	}
	switch kind {
	case unix.RTA_GATEWAY:
		if a, ok := netip.AddrFromSlice(value); ok {
			r.Gateway = a.Unmap()
		}
	case unix.RTA_OIF:
		number(&r.index)
	case unix.RTA_PRIORITY:
		number(&r.priority)
	case unix.RTA_TABLE:
		number(&r.table)
	}
}

// way reads the first of several ways.
func (r *foundRoute) way(ways []byte) {
	if len(ways) < unix.SizeofRtNexthop {
		return
	}
	length := min(max(int(binary.NativeEndian.Uint16(ways)), unix.SizeofRtNexthop), len(ways))
	r.index = int(int32(binary.NativeEndian.Uint32(ways[4:])))
	_ = attributes(ways[:length], unix.SizeofRtNexthop, r.attribute) // without one there is no gateway
}
