package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
)

// ipv4 are the settings of a link that can be made by netlink: their numbers are
// those of linux/ip.h (IPV4_DEVCONF_...).
var ipv4 = map[string]uint16{
	"forwarding":     1,
	"arp_ignore":     19,
	"accept_local":   23,
	"route_localnet": 26,
}

// sysctl reads a setting of the namespace that the thread is in. In a container
// /proc/sys is read-only, which is enough here. ok is false if there is no such
// setting.
func sysctl(key string) (value string, ok bool) {
	b, err := os.ReadFile("/proc/sys/" + key)
	return strings.TrimSpace(string(b)), err == nil
}

// sysctls reads the settings that cfg wants. A setting of a part that the kernel
// does not have counts as made.
func sysctls(cfg network.Config) map[string]string {
	wanted := append([]network.Sysctl(nil), cfg.Sysctls...)
	for _, l := range cfg.Links {
		wanted = append(wanted, l.Sysctls...)
	}
	got := map[string]string{}
	for _, w := range wanted {
		if v, ok := sysctl(w.Key); ok {
			got[w.Key] = v
		} else if lacks(w.Key) {
			got[w.Key] = w.Value
		}
	}
	return got
}

// lacks says that the kernel does not have what the key is about, for example
// IPv6.
func lacks(key string) bool {
	part := strings.SplitN(key, "/", 3)
	_, err := os.Stat("/proc/sys/" + part[0] + "/" + part[1])
	return errors.Is(err, fs.ErrNotExist)
}

// setSysctl makes a setting of the namespace that the thread is in: by netlink
// where that can be, since it needs nothing but the right to configure the
// network.
func (a *actor) setSysctl(s network.Sysctl) error {
	if part := strings.Split(s.Key, "/"); len(part) == 5 && part[2] == "conf" && part[3] != "all" {
		l, err := a.h.LinkByName(part[3])
		if err != nil {
			return err
		}
		value, err := strconv.ParseUint(s.Value, 10, 32)
		if err != nil {
			return err
		}
		if n, ok := ipv4[part[4]]; ok && part[1] == "ipv4" {
			return setIPv4(l.Attrs().Index, n, uint32(value))
		}
		if part[1] == "ipv6" && part[4] == "addr_gen_mode" {
			return a.h.LinkSetIP6AddrGenMode(l, int(value))
		}
	}
	return writeSysctl(s)
}

// setIPv4 makes an IPv4 setting of a link by netlink. The message is RTM_SETLINK
// {IFLA_AF_SPEC{AF_INET{IFLA_INET_CONF{setting: value}}}}.
func setIPv4(index int, setting uint16, value uint32) error {
	const inetConf = 1 // IFLA_INET_CONF
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	spec := nl.NewRtAttr(unix.IFLA_AF_SPEC|unix.NLA_F_NESTED, nil)
	inet := spec.AddRtAttr(unix.AF_INET|unix.NLA_F_NESTED, nil)
	inet.AddRtAttr(inetConf|unix.NLA_F_NESTED, nil).AddRtAttr(int(setting), nl.Uint32Attr(value))
	req.AddData(spec)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// writeSysctl writes a setting to a procfs of its own, since the container's is
// read-only. That procfs is mounted nowhere: it is gone when it is closed. The
// kernel has no other way to the settings of IPv6.
func writeSysctl(s network.Sysctl) error {
	proc, err := detachedProc()
	if err != nil {
		return fmt.Errorf("make a procfs: %w", err)
	}
	defer unix.Close(proc)
	fd, err := unix.Openat(proc, "sys/"+s.Key, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	f := os.NewFile(uintptr(fd), s.Key)
	defer f.Close()
	_, err = f.WriteString(s.Value)
	return err
}

// detachedProc returns the root of a new procfs (Linux 5.2).
func detachedProc() (int, error) {
	fd, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	if err := unix.FsconfigCreate(fd); err != nil {
		return -1, err
	}
	return unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}
