package dhcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
)

// Serve6 is the guest's router on its link until ctx ends, and returns nil then: it
// advertises itself and answers DHCPv6. It waits for the tap device if there is none
// yet. An error says that the offer is not complete.
func (s Server) Serve6(ctx context.Context, offer network.Offer6) error {
	_, badGuest := net.ParseMAC(offer.MAC)
	_, badRouter := net.ParseMAC(offer.RouterMAC)
	if offer.Tap == "" || !offer.Address.Addr().Is6() || !offer.Router.Is6() || badGuest != nil || badRouter != nil {
		return fmt.Errorf("serve DHCPv6 on link %q: the offer of %s by %s is not complete", offer.Tap, offer.Address, offer.Router)
	}
	log := s.log().With("link", offer.Tap, "mac", offer.MAC)
	return again(ctx, log, "cannot serve DHCPv6 yet", func() error { return s.serve6(ctx, offer, log) })
}

// serve6 answers until ctx ends or the tap device fails, and returns why.
func (s Server) serve6(ctx context.Context, offer network.Offer6, log *slog.Logger) error {
	tap, err := openTap(offer.Tap)
	if err != nil {
		return err
	}
	defer tap.Close()
	stop := context.AfterFunc(ctx, func() { tap.Close() })
	defer stop()
	log.Info("serving DHCPv6", "address", offer.Address)
	s.listening()
	r := server6{offer: offer, resolver: s.Resolver, log: log}
	return r.serve(tap)
}

// openTap opens a tap device that exists and is the user's.
func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("open the tap device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// server6 is the router of one guest.
type server6 struct {
	offer    network.Offer6
	resolver Resolver
	log      *slog.Logger
	logged   map[string]bool
	times    schedule
}

// serve advertises and answers one frame after the other until it cannot read any more.
func (s *server6) serve(tap *os.File) error {
	b := make([]byte, 1<<16)
	for {
		if now := time.Now(); !now.Before(s.times.next) {
			s.advertise(tap, now)
		}
		if err := tap.SetReadDeadline(s.times.next); err != nil {
			return err
		}
		switch n, err := tap.Read(b); {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			return err
		default:
			s.answer(tap, b[:n], time.Now())
		}
	}
}

// advertise sends an advertisement to all nodes of the link.
func (s *server6) advertise(to io.Writer, now time.Time) {
	if s.send(to, "advertisement", advertisement(s.offer, s.resolver, allNodes)) {
		s.times.sent(now)
	} else {
		s.times.failed(now)
	}
}

// answer answers a frame if it is a question of the guest.
func (s *server6) answer(to io.Writer, frame []byte, now time.Time) {
	q, ok := parse6(s.offer, frame)
	switch {
	case !ok:
	case q.dhcp == nil && q.from.IsUnspecified():
		s.times.asked(now)
	case q.dhcp == nil:
		s.times.answered(now)
		if !s.send(to, "advertisement", advertisement(s.offer, s.resolver, q.from)) {
			s.times.failed(now)
		}
	case len(q.dhcp) <= longest:
		m, err := dhcpv6.MessageFromBytes(q.dhcp)
		if err != nil {
			return
		}
		if a := answer6(s.offer, s.resolver, m); a != nil {
			s.send(to, a.Type().String(), udp6(s.offer, q.from, a.ToBytes()))
		}
	}
}

// send sends a frame and says whether it could. The same kind of answer, and the same
// error, is logged once. A client of DHCPv6 repeats what was not answered.
func (s *server6) send(to io.Writer, what string, frame []byte) bool {
	_, err := to.Write(frame)
	if err != nil {
		if s.first(what + ": " + err.Error()) {
			s.log.Warn("answer by IPv6", "answer", what, "err", err)
		}
		return false
	}
	if s.first(what) {
		s.log.Info("answered by IPv6", "answer", what)
	}
	return true
}

// first says that this was not logged before.
func (s *server6) first(what string) bool {
	if s.logged[what] {
		return false
	}
	if s.logged == nil {
		s.logged = map[string]bool{}
	}
	s.logged[what] = true
	return true
}
