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

	"github.com/podvisor/podvisor/network"
)

// Times of the search for a router. The kernel sees the carrier of a new link after a
// second at most, looks for duplicates of its link-local address for two more before it
// answers, and repeats an unanswered question after a second: that is four, and as many
// again for what is lost.
const (
	routerTime = 8 * time.Second
	routerTick = 20 * time.Millisecond
	// routerStep is how much of that time passes at most between two questions. While the
	// process is stopped nothing is asked.
	routerStep = 5 * routerTick
	// hopDelay is how long the router may be silent at the link-local address that its MAC
	// makes before it is asked for another, and hopTick the time between two such questions.
	hopDelay = 500 * time.Millisecond
	hopTick  = 250 * time.Millisecond
)

// discard is the port of the datagrams that have the kernel look for a neighbour.
const discard = 9

// beyond is no address of any host: it is for documentation (RFC 3849).
var beyond = netip.MustParseAddr("2001:db8::")

// FindRouter looks for the router of IPv6 that the default route of the link of s with
// that name leads to, and sets its [network.Link.Router] and RouterMAC if the router
// answers at a link-local address: at the one that its MAC makes, as most links of Linux
// do, or at the one from which it says that a packet's hop limit is over. A bridge whose
// MAC changes while it comes up keeps the address of the one before. It sends datagrams,
// and waits for eight seconds, without those for which the process is stopped, if there is no
// answer. If it does not, RouterSilent is set.
// Without such a route, or if an advertisement of the network has brought it, or if the
// link is bound already, nothing is done.
func FindRouter(ctx context.Context, ns *os.File, s *network.State, name string) error {
	n := slices.IndexFunc(s.Links, func(l network.Link) bool { return l.Name == name && l.Up && l.Kind != string(network.Bridge) })
	if n < 0 {
		return nil
	}
	l := &s.Links[n]
	err := within(ns, func() error {
		gateway, err := defaultRouter(ctx, l.Index)
		if err != nil || !gateway.IsValid() {
			return err
		}
		q, err := newSearch(l.Index)
		if err != nil {
			return err
		}
		defer q.close()
		l.Router, l.RouterMAC, err = q.router(ctx, gateway)
		l.RouterSilent = err == nil && l.RouterMAC == ""
		return err
	})
	if err != nil {
		return fmt.Errorf("link %s: look for its router of IPv6: %w", name, err)
	}
	return nil
}

// defaultRouter is the gateway of the link's default route of IPv6 that no advertisement
// has brought. Not valid: there is none.
func defaultRouter(ctx context.Context, index int) (gateway netip.Addr, err error) {
	err = eachRoute(ctx, unix.AF_INET6, func(r foundRoute) {
		isDefault := r.index == index && r.table == unix.RT_TABLE_MAIN && r.Destination.Bits() == 0 && r.protocol != unix.RTPROT_RA
		if isDefault && !gateway.IsValid() {
			gateway = r.Gateway
		}
	})
	return gateway, err
}

// search is a search for a router on a link.
type search struct {
	index int
	// plain sends datagrams to neighbours, and limited those with a hop limit of 1, from
	// the link-local address of the link.
	plain, limited int
	bound          bool      // limited has its address
	next           time.Time // when limited sends again
	// named are the addresses from which a router said that a hop limit is over.
	named []netip.Addr
}

func newSearch(index int) (*search, error) {
	s := &search{index: index, plain: -1, limited: -1}
	for _, fd := range []*int{&s.plain, &s.limited} {
		var err error
		if *fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			s.close()
			return nil, fmt.Errorf("open a socket: %w", err)
		}
	}
	err := errors.Join(unix.SetsockoptInt(s.limited, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, 1),
		unix.SetsockoptInt(s.limited, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1))
	if err != nil {
		s.close()
		return nil, fmt.Errorf("limit the hops of datagrams: %w", err)
	}
	return s, nil
}

func (s *search) close() {
	for _, fd := range []int{s.plain, s.limited} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// router is the link-local address and the MAC address of the gateway. Not valid and
// empty: it does not answer in time.
func (s *search) router(ctx context.Context, gateway netip.Addr) (netip.Addr, string, error) {
	var known time.Time // since when the gateway's MAC is known
	tick := time.NewTicker(routerTick)
	defer tick.Stop()
	last := time.Now()
	for passed := time.Duration(0); passed < routerTime; <-tick.C {
		now := time.Now()
		passed, last = passed+min(now.Sub(last), routerStep), now
		s.ask(gateway)
		macs, err := s.neighbours(ctx)
		if err != nil {
			return netip.Addr{}, "", err
		}
		mac := macs[gateway]
		if mac == "" {
			continue
		}
		for _, a := range append([]netip.Addr{network.LinkLocal(mac)}, s.named...) {
			if macs[a] == mac {
				return a, mac, nil
			}
			s.ask(a)
		}
		if known.IsZero() {
			known = time.Now()
		}
		if time.Since(known) > hopDelay {
			s.askBeyond(ctx)
		}
	}
	return netip.Addr{}, "", context.Cause(ctx) // it may have ended since
}

// ask has the kernel look for the neighbour. It fails until the pod has an address to send from.
func (s *search) ask(a netip.Addr) {
	_ = unix.Sendto(s.plain, nil, 0, &unix.SockaddrInet6{Port: discard, ZoneId: uint32(s.index), Addr: a.As16()})
}

// neighbours are the MAC addresses of the neighbours that have answered.
func (s *search) neighbours(ctx context.Context) (map[netip.Addr]string, error) {
	out := map[netip.Addr]string{}
	return out, eachNeighbour(ctx, unix.AF_INET6, func(n *netlink.Neigh) {
		const known = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT
		if ip, ok := netip.AddrFromSlice(n.IP); ok && n.LinkIndex == s.index && n.State&known != 0 && len(n.HardwareAddr) == 6 {
			out[ip] = n.HardwareAddr.String()
		}
	})
}

// askBeyond sends a packet that the router has to refuse, from a link-local address, so
// that the refusal comes from one too, and notes from which. No packet goes further than
// to the router.
func (s *search) askBeyond(ctx context.Context) {
	if !s.bound {
		s.bound = s.bind(ctx)
	}
	if s.bound && !time.Now().Before(s.next) {
		s.next = time.Now().Add(hopTick)
		_ = unix.Sendto(s.limited, nil, 0, &unix.SockaddrInet6{Port: discard, Addr: beyond.As16()})
	}
	b, control := make([]byte, 512), make([]byte, 512)
	for {
		_, n, _, _, err := unix.Recvmsg(s.limited, b, control, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err != nil {
			return
		}
		if a := offender(control[:n]); a.IsLinkLocalUnicast() && !slices.Contains(s.named, a) {
			s.named = append(s.named, a)
		}
	}
}

// bind gives the socket a link-local address of the link. There is none until the kernel
// has looked for duplicates.
func (s *search) bind(ctx context.Context) (bound bool) {
	// Without a list of addresses there is none, and it is tried again.
	_ = eachAddress(ctx, unix.AF_INET6, func(index int, p netip.Prefix) {
		if index == s.index && p.Addr().IsLinkLocalUnicast() && !bound {
			bound = unix.Bind(s.limited, &unix.SockaddrInet6{ZoneId: uint32(index), Addr: p.Addr().As16()}) == nil
		}
	})
	return bound
}

// offender is the address of the router that a message of ICMPv6 came from, of which the
// kernel says in control that it came. Not valid: it says nothing of the kind.
func offender(control []byte) netip.Addr {
	const origin, address, length = 4, 16 + 8, 16 + 8 + 16 // in a sock_extended_err and a sockaddr_in6 after it
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return netip.Addr{}
	}
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR && len(m.Data) >= length && m.Data[origin] == unix.SO_EE_ORIGIN_ICMP6 {
			return netip.AddrFrom16([16]byte(m.Data[address:length]))
		}
	}
	return netip.Addr{}
}
