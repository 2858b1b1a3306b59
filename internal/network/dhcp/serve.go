package dhcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"

	"github.com/podvisor/podvisor/network"
)

// retry is how long Serve waits before it tries again to listen. A guest repeats
// its request after a few seconds at the earliest.
const retry = 100 * time.Millisecond

// Server is what the guests of a launcher get beside their offers. The zero value
// names no servers for names, and logs nothing.
type Server struct {
	// Resolver is how the guests look up names.
	Resolver Resolver
	// Logger. Nil: nothing is logged.
	Logger *slog.Logger
	// Listening is called whenever a question of the guest is answered from then on:
	// once, and again after a link was gone. Nil: nothing is called.
	Listening func()
}

func (s Server) log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

func (s Server) listening() {
	if s.Listening != nil {
		s.Listening()
	}
}

// Serve answers the guest of the offer until ctx ends, and returns nil then. It
// waits for the link if there is none yet. An error says that the offer is not complete.
func (s Server) Serve(ctx context.Context, offer network.Offer) error {
	if offer.Link == "" || !offer.Address.Addr().Is4() || !offer.Server.Is4() {
		return fmt.Errorf("serve DHCP on link %q: the offer of %s by %s is not complete", offer.Link, offer.Address, offer.Server)
	}
	log := s.log().With("link", offer.Link, "mac", offer.MAC)
	return again(ctx, log, "cannot serve DHCP yet", func() error { return s.serve(ctx, offer, log) })
}

// again calls serve until ctx ends, and returns nil then.
func again(ctx context.Context, logger *slog.Logger, failure string, serve func() error) error {
	tick := time.NewTicker(retry)
	defer tick.Stop()
	var last string
	for {
		err := serve()
		if ctx.Err() != nil {
			return nil
		}
		if err.Error() != last {
			logger.Info(failure, "err", err)
			last = err.Error()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// serve answers until ctx ends or the socket fails, and returns why.
func (s Server) serve(ctx context.Context, offer network.Offer, log *slog.Logger) error {
	conn, err := listen(offer.Link)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	log.Info("serving DHCP", "address", offer.Address)
	s.listening()
	return answerAll(conn, handler(offer, s.Resolver, log))
}

// longest is the length of a message that is read. Clients send less than 600
// bytes, unless a server permits more.
const longest = 1500

// answerAll answers one message after the other, so that a guest that sends many
// takes no more than the time for one at once, and no memory. It ignores what is
// no message of DHCP.
func answerAll(conn net.PacketConn, answer func(net.PacketConn, *dhcpv4.DHCPv4)) error {
	b := make([]byte, longest)
	for {
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			return err
		}
		if m, err := dhcpv4.FromBytes(b[:n]); err == nil {
			answer(conn, m)
		}
	}
}

// listen opens a socket that receives only what comes in by the link.
func listen(link string) (net.PacketConn, error) {
	conn, err := server4.NewIPv4UDPConn(link, &net.UDPAddr{Port: dhcpv4.ServerPort})
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		var set error
		err = raw.Control(func(fd uintptr) {
			set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_NO_CHECK, 1)
		})
		err = errors.Join(err, set)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("send without checksums: %w", err), conn.Close())
	}
	return conn, nil
}

// handler answers. The same exchange is logged once: the lease never changes, and a
// guest may ask for it as often as it likes.
func handler(offer network.Offer, resolver Resolver, logger *slog.Logger) func(net.PacketConn, *dhcpv4.DHCPv4) {
	var logged sync.Map // of [2]dhcpv4.MessageType
	return func(conn net.PacketConn, m *dhcpv4.DHCPv4) {
		a := answer(offer, resolver, m)
		if a == nil {
			if _, again := logged.LoadOrStore([2]dhcpv4.MessageType{m.MessageType()}, true); !again {
				logger.Debug("ignore DHCP messages of this type", "type", m.MessageType(), "from", m.ClientHWAddr)
			}
			return
		}
		if _, err := conn.WriteTo(a.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ClientPort}); err != nil {
			logger.Warn("answer DHCP", "type", a.MessageType(), "err", err)
			return
		}
		if _, again := logged.LoadOrStore([2]dhcpv4.MessageType{m.MessageType(), a.MessageType()}, true); !again {
			logger.Info("answered DHCP", "request", m.MessageType(), "answer", a.MessageType())
		}
	}
}
