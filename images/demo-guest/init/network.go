package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// leases is the pipe through which the DHCP event program reports to init
	// that a link has its first address.
	leases = "/run/leases"
	// resolvDir holds the name servers of each link; resolv.conf is all of them.
	resolvDir = "/run/resolv"
	// leaseTimeout is how long the boot waits for addresses. DHCP goes on after it.
	leaseTimeout = 15 * time.Second
)

// network brings up all links and waits for those that use DHCP.
func (m *guest) network() {
	m.must("make the lease pipe", errors.Join(unix.Mkfifo(leases, 0o600), os.MkdirAll(resolvDir, 0o755)))
	m.must("bring up lo", linkUp("lo"))
	var waiting []string
	for _, l := range links() {
		if err := linkUp(l.name); err != nil {
			say("bring up %s: %v", l.name, err)
			continue
		}
		conf, given := m.seed.network.of(l)
		if given {
			m.must("configure "+l.name, m.static(l.name, conf))
		}
		if !given || conf.DHCP4 {
			m.must("start DHCP on "+l.name, m.dhcp(l.name))
			waiting = append(waiting, l.name)
		}
	}
	m.awaitLeases(waiting)
}

// awaitLeases waits until every link has an address, or for the timeout.
func (m *guest) awaitLeases(waiting []string) {
	pipe, err := os.OpenFile(leases, os.O_RDWR, 0)
	if err != nil {
		say("wait for addresses: %v", err)
		return
	}
	defer pipe.Close()
	deadline := time.Now().Add(leaseTimeout)
	buf := make([]byte, 256)
	for len(waiting) > 0 {
		_ = pipe.SetReadDeadline(deadline)
		n, err := pipe.Read(buf)
		if err != nil {
			say("no address on %s after %s, going on", strings.Join(waiting, ", "), leaseTimeout)
			return
		}
		for _, name := range strings.Fields(string(buf[:n])) {
			waiting = slices.DeleteFunc(waiting, func(w string) bool { return w == name })
		}
	}
}

// dhcp runs busybox's client for as long as the guest runs.
func (m *guest) dhcp(name string) error {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	// It asks every second at first, since the server may come up just now.
	_, err = m.children.start(process{
		args: []string{"udhcpc", "-f", "-i", name, "-s", "/bin/" + dhcpEventName, "-t", "5", "-T", "1", "-A", "1",
			"-O", "mtu", "-O", "search", "-O", "staticroutes", "-x", "hostname:" + hostname()},
		files: []*os.File{null, null, null},
	})
	return err
}

// static configures a link from the seed.
func (m *guest) static(name string, conf ethernet) error {
	var errs []error
	ip := func(args ...string) { errs = append(errs, m.ip(args...)) }
	if conf.MTU > 0 {
		errs = append(errs, setMTU(name, fmt.Sprint(conf.MTU)))
	}
	for _, a := range conf.Addresses {
		ip("addr", "add", a, "dev", name)
		say("%s has address %s from network-config", name, a)
	}
	if conf.Gateway4 != "" {
		ip("route", "replace", "default", "via", conf.Gateway4, "dev", name)
	}
	if conf.Gateway6 != "" {
		ip("-6", "route", "replace", "default", "via", conf.Gateway6, "dev", name)
	}
	for _, r := range conf.Routes {
		ip("route", "replace", r.To, "via", r.Via, "dev", name)
	}
	if len(conf.Nameservers.Addresses) > 0 {
		errs = append(errs, writeResolv(name, conf.Nameservers.Search, conf.Nameservers.Addresses))
	}
	return errors.Join(errs...)
}

func (m *guest) ip(args ...string) error {
	if err := m.children.run("ip", args...); err != nil {
		return fmt.Errorf("ip %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

type link struct{ name, mac string }

// links returns all Ethernet links in the order of their names.
func links() []link {
	var found []link
	dirs, _ := filepath.Glob("/sys/class/net/*")
	for _, dir := range dirs {
		const ethernet = "1" // ARPHRD_ETHER
		if kind, _ := os.ReadFile(dir + "/type"); strings.TrimSpace(string(kind)) != ethernet {
			continue
		}
		mac, _ := os.ReadFile(dir + "/address")
		found = append(found, link{name: filepath.Base(dir), mac: strings.TrimSpace(string(mac))})
	}
	return found
}

// linkUp sets the flag IFF_UP.
func linkUp(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	req.SetUint16(req.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// setAddress gives a link its one IPv4 address, in place of the one it had.
func setAddress(name string, prefix netip.Prefix) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var mask [4]byte
	for i := range prefix.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	addr := prefix.Addr().As4()
	for _, set := range []struct {
		op    uint
		value []byte
	}{{unix.SIOCSIFADDR, addr[:]}, {unix.SIOCSIFNETMASK, mask[:]}} {
		req, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := req.SetInet4Addr(set.value); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, set.op, req); err != nil {
			return os.NewSyscallError("ioctl", err)
		}
	}
	return nil
}

func setMTU(name, mtu string) error {
	return os.WriteFile("/sys/class/net/"+name+"/mtu", []byte(mtu), 0)
}

// writeResolv notes the name servers of one link and makes resolv.conf of all.
func writeResolv(name string, search, servers []string) error {
	var b strings.Builder
	if len(search) > 0 {
		fmt.Fprintln(&b, "search", strings.Join(search, " "))
	}
	for _, s := range servers {
		fmt.Fprintln(&b, "nameserver", s)
	}
	if err := os.WriteFile(filepath.Join(resolvDir, name), []byte(b.String()), 0o644); err != nil {
		return err
	}
	var all []byte
	files, _ := filepath.Glob(resolvDir + "/*")
	for _, f := range files {
		part, _ := os.ReadFile(f)
		all = append(all, part...)
	}
	temp := "/etc/resolv.conf." + name
	if err := os.WriteFile(temp, all, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, "/etc/resolv.conf")
}
