package networktest

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
)

// Guest makes a namespace with what a guest sees of the attachments: eth0, eth1
// and so on. It opens the pod's tap devices as QEMU does, and copies every frame.
func Guest(t testing.TB, pod *os.File, attachments ...network.Attachment) *os.File {
	t.Helper()
	return LossyGuest(t, pod, func([]byte) bool { return false }, attachments...)
}

// LossyGuest is [Guest] with a cable that loses the frames of both directions for which
// lose returns true. It is called from several goroutines.
func LossyGuest(t testing.TB, pod *os.File, lose func(frame []byte) bool, attachments ...network.Attachment) *os.File {
	t.Helper()
	guest := Namespace(t)
	for n, a := range attachments {
		name := "eth" + strconv.Itoa(n)
		outer := OpenTap(t, pod, a.Tap)
		inner := OpenTap(t, guest, name)
		if a.MTU > 0 {
			IP(t, guest, "link set "+name+" mtu "+strconv.Itoa(a.MTU))
		}
		IP(t, guest, "link set "+name+" address "+a.MAC+" up")
		go copyFrames(outer, inner, lose)
		go copyFrames(inner, outer, lose)
	}
	return guest
}

// OpenTap opens a tap device with the flags of QEMU: each frame that is read or
// written has a header of [HeaderLength] bytes before it, which describes
// offloads. More flags of the kernel (IFF_…) are added to these. It returns once the
// namespace's links carry frames.
func OpenTap(t testing.TB, ns *os.File, name string, more ...uint16) *os.File {
	t.Helper()
	var f *os.File
	var err error
	In(t, ns, func() {
		var fd int
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return
		}
		req, _ := unix.NewIfreq(name)
		flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		for _, f := range more {
			flags |= f
		}
		req.SetUint16(flags)
		if err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err == nil {
			f = os.NewFile(uintptr(fd), name)
		}
	})
	require.NoError(t, err, "open tap device %s", name)
	t.Cleanup(func() { f.Close() })
	require.Eventually(t, func() bool { return operational(t, ns) }, time.Minute, 10*time.Millisecond, "links with a carrier get operational")
	return f
}

// operational says whether each link that is up and has a carrier is operational. The
// kernel's linkwatch sees to it some time after the carrier came: until then a bridge
// takes no frames from the link, and what a guest sends first is lost. A real guest
// boots meanwhile.
func operational(t testing.TB, ns *os.File) bool {
	t.Helper()
	const pending, operational = unix.IFF_UP | unix.IFF_LOWER_UP, unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING
	var links []netlink.Link
	var err error
	In(t, ns, func() { links, err = netlink.LinkList() })
	require.NoError(t, err)
	return !slices.ContainsFunc(links, func(l netlink.Link) bool { return l.Attrs().RawFlags&operational == pending })
}

// HeaderLength is the length of the header before each frame of [OpenTap].
const HeaderLength = 10

// copyFrames copies frames, with the header that describes offloads, until a
// device is closed. It loses some.
func copyFrames(from io.Reader, to io.Writer, lose func([]byte) bool) {
	frame := make([]byte, 1<<16)
	for {
		n, err := from.Read(frame)
		if err != nil {
			return
		}
		if n >= HeaderLength && lose(frame[HeaderLength:n]) {
			continue
		}
		// A device that is down loses frames, as a cable does.
		_, _ = to.Write(frame[:n])
	}
}

// Lease requests an address for an interface of the guest by DHCP, as busybox
// does it, and configures it: address, MTU and routes. It returns what the client
// was offered, one name=value for each line, in the client's own words.
func Lease(t testing.TB, guest *os.File, iface string) string {
	t.Helper()
	busybox := testenv.Program(t, "busybox")
	offer := filepath.Join(t.TempDir(), "offer")
	script := filepath.Join(t.TempDir(), "udhcpc.sh")
	require.NoError(t, os.WriteFile(script, []byte(`#!/bin/sh
[ "$1" = bound ] || exit 0
ip link set $interface mtu ${mtu:-1500}
ip addr add $ip/$mask dev $interface
if [ -n "$staticroutes" ]; then
	set -- $staticroutes
	while [ $# -ge 2 ]; do
		if [ $2 = 0.0.0.0 ]; then ip route add $1 dev $interface; else ip route add $1 via $2; fi
		shift 2
	done
elif [ -n "$router" ]; then
	ip route add default via $router
fi
set | grep -E "^(ip|mask|subnet|router|dns|domain|search|mtu|hostname|lease|staticroutes|serverid)=" | sort > `+offer+`
`), 0o755))
	args := []string{busybox, "udhcpc", "-i", iface, "-f", "-q", "-n", "-t", "20", "-T", "1", "-A", "0",
		"-O", "staticroutes", "-O", "search", "-O", "mtu", "-s", script}
	// It asks three times for what it was offered, and ends: on a slow host the answer may be late.
	_, err := Try(t, guest, args...)
	for end := time.Now().Add(waiting); err != nil && time.Now().Before(end); {
		_, err = Try(t, guest, args...)
	}
	if err != nil {
		Run(t, guest, args...)
	}
	b, err := os.ReadFile(offer)
	require.NoError(t, err)
	return string(b)
}
