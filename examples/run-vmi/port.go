package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

// above is added to a port that only root may open: 80 of the guest is 8080 of the
// host, and 22 is 8022.
const above = 8000

// forward is a range of ports of 127.0.0.1 that lead to ports of a guest.
type forward struct {
	protocol           string
	guest, host, count int
}

func (f forward) String() string {
	if f.count > 1 {
		return fmt.Sprintf("%s ports %d to %d of the guest are 127.0.0.1:%d to %d", f.protocol, f.guest, f.guest+f.count-1, f.host, f.host+f.count-1)
	}
	return fmt.Sprintf("%s port %d of the guest is 127.0.0.1:%d", f.protocol, f.guest, f.host)
}

// arguments are the forward as passt has it.
func (f forward) arguments() []string {
	flag := "--tcp-ports"
	if f.protocol == vmi.ProtocolUDP {
		flag = "--udp-ports"
	}
	return []string{flag, fmt.Sprintf("127.0.0.1/%d-%d:%d-%d", f.host, f.host+f.count-1, f.guest, f.guest+f.count-1)}
}

// free returns an error if something else of this host has one of the ports.
func (f forward) free() error {
	for port := f.host; port < f.host+f.count; port++ {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var err error
		if f.protocol == vmi.ProtocolUDP {
			var c net.PacketConn
			if c, err = net.ListenPacket("udp4", at); err == nil {
				err = c.Close()
			}
		} else {
			var l net.Listener
			if l, err = net.Listen("tcp4", at); err == nil {
				err = l.Close()
			}
		}
		if err != nil {
			guest := port - f.host + f.guest
			return fmt.Errorf("port %d of the guest: %w: choose another with -port %d=PORT", guest, err, guest)
		}
	}
	return nil
}

// setPort takes a flag GUEST=HOST.
func (h *host) setPort(s string) error {
	guest, host, _ := strings.Cut(s, "=")
	g, err := strconv.ParseUint(guest, 10, 16)
	p, err2 := strconv.ParseUint(host, 10, 16)
	if err = errors.Join(err, err2); err != nil || g == 0 || p == 0 {
		return errors.New("it must be two ports with = between them")
	}
	h.ports[int(g)] = int(p)
	return nil
}

// privileged is the number below which ports are root's.
func privileged() int {
	data, _ := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
		return n
	}
	return 1024
}

// forwards are the ports of the interfaces, by the names of these. Its error joins the
// faults of all ports.
func (h *host) forwards(interfaces []vmi.Interface) (map[string][]forward, error) {
	first := privileged()
	all := map[string][]forward{}
	var faults []error
	taken, known := map[string]bool{}, map[int]bool{}
	add := func(name string, f forward) {
		for n := range f.count {
			key := fmt.Sprint(f.protocol, f.host+n)
			if taken[key] {
				faults = append(faults, fmt.Errorf("port %d of the guest: port %d of the host leads to another already: choose another with -port %d=PORT", f.guest+n, f.host+n, f.guest+n))
				return
			}
			taken[key] = true
		}
		if err := f.free(); err != nil {
			faults = append(faults, err)
			return
		}
		all[name] = append(all[name], f)
	}
	for _, i := range interfaces {
		for _, p := range i.Ports {
			f := forward{protocol: cmp.Or(p.Protocol, vmi.ProtocolTCP), guest: int(p.Port), host: int(p.Port), count: 1}
			known[f.guest] = true
			if other, ok := h.ports[f.guest]; ok {
				f.host = other
			} else if f.host < first {
				f.host += above
			}
			add(i.Name, f)
		}
		for _, r := range i.PortRanges {
			f := forward{protocol: r.Protocol, guest: int(r.Start), host: int(r.Start), count: int(r.End-r.Start) + 1}
			if f.host < first {
				faults = append(faults, fmt.Errorf("ports %d to %d of the guest: ports below %d are root's on this host: list those that you need in ports", r.Start, r.End, first))
				continue
			}
			add(i.Name, f)
		}
	}
	for guest := range h.ports {
		if !known[guest] {
			faults = append(faults, fmt.Errorf("-port %d=%d: no interface of the VMI has port %d", guest, h.ports[guest], guest))
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return all, errors.Join(faults...)
}
