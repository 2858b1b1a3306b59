package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/podvisor/podvisor/examples/command"
	"github.com/podvisor/podvisor/vmi/client"
)

const (
	// idle is how long a peer of UDP may be silent in both directions before its stream
	// is closed.
	idle = 2 * time.Minute
	// peers is how many peers a UDP port has at most.
	peers = 256
	// dialing is how long the guest's side may take to be connected.
	dialing = 30 * time.Second
)

// parsePort parses [LOCAL:]REMOTE[/tcp|/udp].
func parsePort(text string) (port, error) {
	numbers, network, found := strings.Cut(text, "/")
	if !found {
		network = "tcp"
	}
	local, remote, found := strings.Cut(numbers, ":")
	if !found {
		remote = local
	}
	l, err := strconv.ParseUint(local, 10, 16)
	r, err2 := strconv.ParseUint(remote, 10, 16)
	if err != nil || err2 != nil || r == 0 || network != "tcp" && network != "udp" {
		return port{}, command.Fault(fmt.Sprintf("%q is not [LOCAL:]REMOTE[/tcp|/udp] with ports up to 65535", text))
	}
	return port{uint16(l), uint16(r), network}, nil
}

// forwarder makes ports of this host lead to a guest.
type forwarder struct {
	guest, address string
	dial           client.Dial
	// out gets a line for each port that is open, and notes the faults of connections.
	out, notes io.Writer
	mu         sync.Mutex // guards notes
}

// note reports a fault of a connection.
func (f *forwarder) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(f.notes, "port-forward: %v\n", err)
}

// run serves the ports until the context ends. It opens all before it serves any.
func (f *forwarder) run(ctx context.Context, ports []port) error {
	ctx, cancel := context.WithCancel(ctx)
	var served sync.WaitGroup
	defer served.Wait()
	defer cancel()
	serve := make([]func(), len(ports))
	for i, p := range ports {
		where := net.JoinHostPort(f.address, strconv.Itoa(int(p.local)))
		var at net.Addr
		if p.network == "udp" {
			l, err := net.ListenPacket("udp", where)
			if err != nil {
				return err
			}
			defer context.AfterFunc(ctx, func() { _ = l.Close() })()
			defer func() { _ = l.Close() }()
			at, serve[i] = l.LocalAddr(), func() { f.datagrams(ctx, l, p) }
		} else {
			l, err := net.Listen("tcp", where)
			if err != nil {
				return err
			}
			defer context.AfterFunc(ctx, func() { _ = l.Close() })()
			defer func() { _ = l.Close() }()
			at, serve[i] = l.Addr(), func() { f.connections(ctx, l, p) }
		}
		if _, err := fmt.Fprintf(f.out, "%s leads to %s of %s\n", at, p, f.guest); err != nil {
			return err
		}
	}
	for _, s := range serve {
		served.Go(s)
	}
	<-ctx.Done()
	return nil
}

// open connects to the guest.
func (f *forwarder) open(ctx context.Context, p port) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialing)
	defer cancel()
	return f.dial(ctx, p.network, net.JoinHostPort("", strconv.Itoa(int(p.remote))))
}

// connections serves a port of TCP.
func (f *forwarder) connections(ctx context.Context, l net.Listener, p port) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			f.note(err)
			time.Sleep(100 * time.Millisecond) // of file descriptors, there may be some again
			continue
		}
		all.Go(func() {
			defer func() { _ = c.Close() }()
			stream, err := f.open(ctx, p)
			if err != nil {
				f.note(err)
				return
			}
			f.join(ctx, c, stream)
		})
	}
}

// join copies both ways until one side ends or the context does.
func (f *forwarder) join(ctx context.Context, c, stream net.Conn) {
	defer context.AfterFunc(ctx, func() { _, _ = c.Close(), stream.Close() })()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(stream, c)
		_ = stream.Close()
	})
	if _, err := io.Copy(c, stream); err != nil && errors.Is(err, io.ErrUnexpectedEOF) {
		f.note(err)
	}
	_, _ = c.Close(), stream.Close()
	both.Wait()
}

// datagrams serves a port of UDP: a stream for each peer.
func (f *forwarder) datagrams(ctx context.Context, l net.PacketConn, p port) {
	var all sync.WaitGroup
	defer all.Wait()
	var mu sync.Mutex
	known := map[string]chan []byte{}
	b := make([]byte, 64<<10)
	for {
		n, peer, err := l.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP message about another peer
		}
		key := peer.String()
		mu.Lock()
		in := known[key]
		if in == nil && len(known) < peers {
			in = make(chan []byte, 16)
			known[key] = in
			all.Go(func() {
				f.peer(ctx, l, peer, p, in)
				mu.Lock()
				delete(known, key)
				mu.Unlock()
			})
		}
		mu.Unlock()
		select {
		case in <- append([]byte(nil), b[:n]...):
		default: // as on a network that is full, or with too many peers
		}
	}
}

// peer carries the datagrams of one peer.
func (f *forwarder) peer(ctx context.Context, l net.PacketConn, peer net.Addr, p port, in <-chan []byte) {
	stream, err := f.open(ctx, p)
	if err != nil {
		f.note(err)
		return
	}
	var both sync.WaitGroup
	defer both.Wait()
	defer func() { _ = stream.Close() }()
	ended := make(chan struct{})
	both.Go(func() {
		defer close(ended)
		b := make([]byte, 64<<10)
		for {
			n, err := stream.Read(b)
			if err != nil {
				return
			}
			_ = stream.SetReadDeadline(time.Now().Add(idle))
			_, _ = l.WriteTo(b[:n], peer)
		}
	})
	for {
		select {
		case d := <-in:
			_ = stream.SetReadDeadline(time.Now().Add(idle))
			if _, err := stream.Write(d); err != nil {
				return
			}
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
	}
}
