package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// interfaces are those of v on this host, until unbind is called. Without a network v
// has none.
func (h *host) interfaces(v *vmi.VirtualMachineInstance) (all []network.Attachment, unbind func(), err error) {
	devices := &v.Spec.Domain.Devices
	if h.network == "none" {
		devices.Interfaces, v.Spec.Networks = nil, nil
	}
	for _, i := range devices.Interfaces {
		all = append(all, network.Attachment{
			Name: i.Name, Backend: network.BackendUser, MAC: cmp.Or(i.MacAddress, network.MAC(v.UID, i.Name)),
		})
	}
	if h.network == "user" || len(all) == 0 {
		return all, func() {}, nil
	}
	program, err := exec.LookPath("passt")
	if err != nil {
		return nil, nil, errors.New("the network of the guest needs the program passt: install it (apt-get install passt), or choose -network user or -network none")
	}
	forwards, err := h.forwards(devices.Interfaces)
	if err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	var opened []*passt
	unbind = func() {
		stop()
		for _, p := range opened {
			<-p.ended
		}
	}
	for n, i := range devices.Interfaces {
		p, err := h.passt(ctx, program, i.Name, forwards[i.Name])
		if err != nil {
			unbind()
			return nil, nil, fmt.Errorf("interface %s: %w", i.Name, err)
		}
		opened = append(opened, p)
		all[n].Backend, all[n].Server = network.BackendTCP, p.address
	}
	return all, unbind, nil
}

// resolvers are files with the name servers of this host. The second has those that a
// server on loopback asks.
var resolvers = []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}

// nameServers are the name servers of this host that a guest can reach: those of the
// first file that has one that is not on loopback.
func nameServers(files []string) []netip.Addr {
	for _, name := range files {
		data, _ := os.ReadFile(name) // where there is none, the guest has none
		var all []netip.Addr
		for line := range strings.Lines(string(data)) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "nameserver" {
				continue
			}
			if a, err := netip.ParseAddr(words[1]); err == nil && a.Zone() == "" && !a.IsLoopback() {
				all = append(all, a)
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}
