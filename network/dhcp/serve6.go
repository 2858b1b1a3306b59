package dhcp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
)

// advertiseEvery is the time between two advertisements that answer no question: a guest
// that missed one still has its router, whose lifetime is many times as long.
const advertiseEvery = 10 * time.Minute

// Serve6 is the guest's router on its link until ctx ends, and returns nil then: it
// advertises itself and answers DHCPv6. It waits for the tap device if there is none
// yet. Nothing is logged if logger is nil. An error says that the offer is not
// complete.
func Serve6(ctx context.Context, offer network.Offer6, resolver Resolver, logger *slog.Logger) error {
	_, badGuest := net.ParseMAC(offer.MAC)
	_, badRouter := net.ParseMAC(offer.RouterMAC)
	if offer.Tap == "" || !offer.Address.Addr().Is6() || !offer.Router.Is6() || badGuest != nil || badRouter != nil {
		return fmt.Errorf("serve DHCPv6 on link %q: the offer of %s by %s is not complete", offer.Tap, offer.Address, offer.Router)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	logger = logger.With("link", offer.Tap, "mac", offer.MAC)
	return again(ctx, logger, "cannot serve DHCPv6 yet", func() error { return serve6(ctx, offer, resolver, logger) })
}

// serve6 answers until ctx ends or the tap device fails, and returns why.
func serve6(ctx context.Context, offer network.Offer6, resolver Resolver, logger *slog.Logger) error {
	tap, err := openTap(offer.Tap)
	if err != nil {
		return err
	}
	defer tap.Close()
	stop := context.AfterFunc(ctx, func() { tap.Close() })
	defer stop()
	logger.Info("serving DHCPv6", "address", offer.Address)
	s := server6{offer: offer, resolver: resolver, log: logger}
	var advertising sync.WaitGroup
	ended := make(chan struct{})
	advertising.Go(func() { s.advertise(tap, ended) })
	err = s.answerAll(tap)
	close(ended)
	advertising.Wait()
	return err
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
	logged   sync.Map // of string
}

// advertise sends advertisements that answer no question, until ended is closed.
func (s *server6) advertise(to io.Writer, ended <-chan struct{}) {
	tick := time.NewTicker(advertiseEvery)
	defer tick.Stop()
	for {
		s.send(to, "advertisement", advertisement(s.offer, s.resolver, allNodes))
		select {
		case <-tick.C:
		case <-ended:
			return
		}
	}
}

// answerAll answers one frame after the other until it cannot read any more.
func (s *server6) answerAll(tap io.ReadWriter) error {
	b := make([]byte, 1<<16)
	for {
		n, err := tap.Read(b)
		if err != nil {
			return err
		}
		s.answer(tap, b[:n])
	}
}

// answer answers a frame if it is a question of the guest.
func (s *server6) answer(to io.Writer, frame []byte) {
	q, ok := parse6(s.offer, frame)
	switch {
	case !ok:
	case q.dhcp == nil:
		target := q.from
		if target.IsUnspecified() {
			target = allNodes
		}
		s.send(to, "advertisement", advertisement(s.offer, s.resolver, target))
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

// send sends a frame. The same kind of answer is logged once.
func (s *server6) send(to io.Writer, what string, frame []byte) {
	if _, err := to.Write(frame); err != nil {
		s.log.Debug("answer by IPv6", "answer", what, "err", err)
		return
	}
	if _, again := s.logged.LoadOrStore(what, true); !again {
		s.log.Info("answered by IPv6", "answer", what)
	}
}
