package networktest

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
)

// Guest makes a namespace whose eth0 is what a guest would see of the
// attachment: it opens the pod's tap device as QEMU does, and carries every
// frame.
func Guest(t testing.TB, pod *os.File, a network.Attachment) *os.File {
	t.Helper()
	guest := Namespace(t)
	outer := openTap(t, pod, a.Tap)
	inner := openTap(t, guest, "eth0")
	if a.MTU > 0 {
		IP(t, guest, "link set eth0 mtu "+strconv.Itoa(a.MTU))
	}
	IP(t, guest, "link set eth0 address "+a.MAC+" up")
	go carry(outer, inner)
	go carry(inner, outer)
	return guest
}

// openTap opens a tap device with the flags of QEMU.
func openTap(t testing.TB, ns *os.File, name string) *os.File {
	t.Helper()
	var f *os.File
	var err error
	In(t, ns, func() {
		var fd int
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return
		}
		req, _ := unix.NewIfreq(name)
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		if err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err == nil {
			f = os.NewFile(uintptr(fd), name)
		}
	})
	require.NoError(t, err, "open tap device %s", name)
	t.Cleanup(func() { f.Close() })
	return f
}

// carry copies frames, with the header that tells of offloads, until a device is
// closed.
func carry(from io.Reader, to io.Writer) {
	frame := make([]byte, 1<<16)
	for {
		n, err := from.Read(frame)
		if err != nil {
			return
		}
		// A device that is down loses frames, as a cable does.
		_, _ = to.Write(frame[:n])
	}
}

// Lease asks for an address in the guest by DHCP, as busybox does it, and takes
// it: address, MTU and routes. It returns what the client was told, one
// name=value for each line, in the client's own words.
func Lease(t testing.TB, guest *os.File) string {
	t.Helper()
	busybox := testenv.Program(t, "busybox")
	told := filepath.Join(t.TempDir(), "told")
	script := filepath.Join(t.TempDir(), "udhcpc.sh")
	require.NoError(t, os.WriteFile(script, []byte(`#!/bin/sh
[ "$1" = bound ] || exit 0
ip link set eth0 mtu ${mtu:-1500}
ip addr add $ip/$mask dev eth0
if [ -n "$staticroutes" ]; then
	set -- $staticroutes
	while [ $# -ge 2 ]; do
		if [ $2 = 0.0.0.0 ]; then ip route add $1 dev eth0; else ip route add $1 via $2; fi
		shift 2
	done
elif [ -n "$router" ]; then
	ip route add default via $router
fi
set | grep -E "^(ip|mask|subnet|router|dns|domain|search|mtu|hostname|lease|staticroutes|serverid)=" | sort > `+told+`
`), 0o755))
	Run(t, guest, busybox, "udhcpc", "-i", "eth0", "-f", "-q", "-n", "-t", "20", "-T", "1", "-A", "0",
		"-O", "staticroutes", "-O", "search", "-O", "mtu", "-s", script)
	b, err := os.ReadFile(told)
	require.NoError(t, err)
	return string(b)
}
