package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dhcpEventName is the name under which busybox's DHCP client starts this
// program again when something happened to a lease.
const dhcpEventName = "dhcp-event"

// dhcpEvent configures the link of a lease. The client gives the kind of event as
// argument and the options in the environment.
func dhcpEvent(args []string, env func(string) string) error {
	// A renewal changes nothing; a lease with another address comes as bound.
	if len(args) != 1 || args[0] != "bound" {
		return nil
	}
	// The client was started without input and output; what this says belongs on
	// the console.
	openConsole()
	l, err := parseLease(env)
	if err != nil {
		return err
	}
	if err := l.apply(); err != nil {
		return err
	}
	say("%s has address %s from %s", l.Link, l.Address, l.Server)
	return report(l.Link)
}

// lease is what a DHCP server gave.
type lease struct {
	Link            string
	Address         netip.Prefix
	Server          string
	Routes          []leaseRoute
	Servers, Search []string
	MTU             string
	Hostname        string
}

type leaseRoute struct {
	To  string
	Via netip.Addr // unspecified: directly on the link
}

// parseLease reads the environment that busybox's client gives to its script.
func parseLease(env func(string) string) (lease, error) {
	l := lease{
		Link: env("interface"), Server: env("serverid"), MTU: env("mtu"), Hostname: env("hostname"),
		Servers: strings.Fields(env("dns")), Search: strings.Fields(env("search")),
	}
	addr, err := netip.ParseAddr(env("ip"))
	if err != nil {
		return l, fmt.Errorf("address: %w", err)
	}
	bits, err := strconv.Atoi(env("mask"))
	if err != nil {
		return l, fmt.Errorf("netmask: %w", err)
	}
	if l.Address = netip.PrefixFrom(addr, bits); !l.Address.IsValid() {
		return l, fmt.Errorf("netmask of %d bits", bits)
	}
	if len(l.Search) == 0 && env("domain") != "" {
		l.Search = strings.Fields(env("domain"))
	}
	l.Routes, err = parseRoutes(strings.Fields(env("staticroutes")), strings.Fields(env("router")))
	return l, err
}

// parseRoutes reads the classless static routes, pairs of destination and
// gateway. RFC 3442: where they are given, the option with the routers is void.
func parseRoutes(static, routers []string) ([]leaseRoute, error) {
	var routes []leaseRoute
	for i := 0; i+1 < len(static); i += 2 {
		via, err := netip.ParseAddr(static[i+1])
		if err != nil {
			return nil, fmt.Errorf("route to %s: %w", static[i], err)
		}
		to := static[i]
		if to == "0.0.0.0/0" {
			to = "default"
		}
		routes = append(routes, leaseRoute{To: to, Via: via})
	}
	if len(routes) == 0 && len(routers) > 0 {
		via, err := netip.ParseAddr(routers[0])
		if err != nil {
			return nil, fmt.Errorf("router: %w", err)
		}
		routes = append(routes, leaseRoute{To: "default", Via: via})
	}
	return routes, nil
}

func (l lease) apply() error {
	var errs []error
	if l.MTU != "" {
		errs = append(errs, setMTU(l.Link, l.MTU))
	}
	if err := setAddress(l.Link, l.Address); err != nil {
		return fmt.Errorf("set address %s: %w", l.Address, err)
	}
	c := newChildren()
	for _, r := range l.Routes {
		args := []string{"route", "replace", r.To}
		switch {
		case r.Via.IsUnspecified():
		case l.Address.Masked().Contains(r.Via):
			args = append(args, "via", r.Via.String())
		default:
			// A gateway outside of the link's network is reached all the same.
			errs = append(errs, c.run("ip", "route", "replace", r.Via.String()+"/32", "dev", l.Link))
			args = append(args, "via", r.Via.String())
		}
		errs = append(errs, c.run("ip", append(args, "dev", l.Link)...))
	}
	if len(l.Servers) > 0 {
		errs = append(errs, writeResolv(l.Link, l.Search, l.Servers))
	}
	if _, err := os.Stat("/etc/hostname"); l.Hostname != "" && errors.Is(err, os.ErrNotExist) {
		errs = append(errs, unix.Sethostname([]byte(l.Hostname)))
	}
	return errors.Join(errs...)
}

// report writes to init that a link has its address. It is no error that init
// does not read any more.
func report(link string) error {
	fd, err := unix.Open(leases, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENXIO) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(link+"\n"))
	return err
}
