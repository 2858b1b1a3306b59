package networktest

import (
	"bytes"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Capture is what comes in by a link.
type Capture struct {
	mu     sync.Mutex
	frames [][]byte
}

// Watch captures what comes in by the link until the test ends, also what is for
// another than the link: a bridge keeps to itself what goes from one of its ports to
// another, unless it is promiscuous (packet(7)). The kernel takes the tag out of a
// tagged frame. A frame that is lost fails the test.
func Watch(t testing.TB, ns *os.File, link string) *Capture {
	t.Helper()
	return watch(t, ns, link, nil)
}

// WatchAllButTCP is Watch without frames of TCP over IP. On a link that others use too, they
// are most, and more than can be kept.
func WatchAllButTCP(t testing.TB, ns *os.File, link string) *Capture {
	t.Helper()
	const load8, load16, equal, end = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, unix.BPF_LD | unix.BPF_H | unix.BPF_ABS,
		unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	return watch(t, ns, link, []unix.SockFilter{
		{Code: load16, K: 12},
		{Code: equal, K: unix.ETH_P_IP, Jf: 2},
		{Code: load8, K: 14 + 9}, // the protocol in a header of IPv4
		{Code: equal, K: unix.IPPROTO_TCP, Jt: 3, Jf: 4},
		{Code: equal, K: unix.ETH_P_IPV6, Jf: 3},
		{Code: load8, K: 14 + 6}, // the next header in one of IPv6
		{Code: equal, K: unix.IPPROTO_TCP, Jf: 1},
		{Code: end},
		{Code: end, K: 1 << 16},
	})
}

func watch(t testing.TB, ns *os.File, link string, filter []unix.SockFilter) *Capture {
	t.Helper()
	var fd int
	var err error
	In(t, ns, func() {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return
		}
		// What comes while this process gets no time waits here, and is not lost.
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20); err != nil {
			return
		}
		if len(filter) > 0 {
			if err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
				return
			}
		}
		var req *unix.Ifreq
		if req, err = unix.NewIfreq(link); err != nil {
			return
		}
		if err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req); err != nil {
			return
		}
		promiscuous := unix.PacketMreq{Ifindex: int32(req.Uint32()), Type: unix.PACKET_MR_PROMISC}
		if err = unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &promiscuous); err != nil {
			return
		}
		const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8 // in the order of the network
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: int(req.Uint32())})
	})
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), link)
	t.Cleanup(func() {
		lost, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		f.Close()
		if err != nil || lost.Drops > 0 {
			t.Errorf("watch link %s: %d frames were lost; %v", link, lost.Drops, err)
		}
	})
	c := &Capture{}
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, err := f.Read(b)
			if err != nil {
				return
			}
			c.mu.Lock()
			c.frames = append(c.frames, bytes.Clone(b[:n]))
			c.mu.Unlock()
		}
	}()
	return c
}

// Has says that a frame with these bytes in it came.
func (c *Capture) Has(part []byte) bool { return c.Count(part) > 0 }

// Count is how many frames with these bytes in them came.
func (c *Capture) Count(part []byte) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		if bytes.Contains(f, part) {
			n++
		}
	}
	return n
}

// Await waits until a frame with these bytes in it came, and says whether one did.
func (c *Capture) Await(part []byte) bool {
	for end := time.Now().Add(waiting); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if c.Has(part) {
			return true
		}
	}
	return c.Has(part)
}

// Forget forgets the frames so far.
func (c *Capture) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames = nil
}
