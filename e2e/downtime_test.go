package e2e

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
)

// answers are those of one who asks again and again.
type answers struct {
	stop func()
	wg   *sync.WaitGroup
	mu   sync.Mutex
	// asked is when the questions were asked that have an answer.
	asked []time.Time
}

// asking asks at each tick, each time in a goroutine of its own: ask says whether there was an answer.
func (s space) asking(tick time.Duration, ask func(number int) bool) *answers {
	stopped := make(chan struct{})
	a := &answers{wg: &sync.WaitGroup{}, stop: sync.OnceFunc(func() { close(stopped) })}
	s.t.Cleanup(func() { a.stop(); a.wg.Wait() })
	a.wg.Go(func() {
		every := time.NewTicker(tick)
		defer every.Stop()
		for n := 0; ; n++ {
			select {
			case <-stopped:
				return
			case asked := <-every.C:
				a.wg.Go(func() {
					if ask(n) {
						a.answered(asked)
					}
				})
			}
		}
	})
	return a
}

func (a *answers) answered(asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, asked)
}

// count is how many questions have an answer.
func (a *answers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

// end ends the questions and returns the longest time without an answer.
func (a *answers) end() (gap time.Duration) {
	a.stop()
	a.wg.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortFunc(a.asked, time.Time.Compare)
	for n := 1; n < len(a.asked); n++ {
		gap = max(gap, a.asked[n].Sub(a.asked[n-1]))
	}
	return gap
}

// around are when the last question before the time was asked and the first after it that have
// an answer, when all have ended. They are zero if there are none.
func (a *answers) around(at time.Time) (before, after time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, _ := slices.BinarySearchFunc(a.asked, at, time.Time.Compare)
	if n == 0 || n == len(a.asked) {
		return time.Time{}, time.Time{}
	}
	return a.asked[n-1], a.asked[n]
}

// besides is the longest time without an answer that the time is not in, when all have ended, and
// how long after the time it began.
func (a *answers) besides(at time.Time) (gap, began time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := 1; n < len(a.asked); n++ {
		from, to := a.asked[n-1], a.asked[n]
		if d := to.Sub(from); d > gap && (to.Before(at) || from.After(at)) {
			gap, began = d, from.Sub(at)
		}
	}
	return gap, began
}

// dial connects from the node to the address every 10 ms.
func (s space) dial(node, address string) *answers {
	s.t.Helper()
	ns := traces{t: s.t, node: node}.namespace("")
	return s.asking(10*time.Millisecond, func(int) bool {
		var c net.Conn
		var err error
		networktest.In(s.t, ns, func() { c, err = net.DialTimeout("tcp", address, time.Second) })
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}

// ping sends an echo request of ICMP from the node's bridge br1 to the address every 5 ms.
func (s space) ping(node, address string) *answers {
	s.t.Helper()
	visitorAddress := fmt.Sprintf("192.168.82.%d", 240+slices.Index(nodes, node))
	ns := traces{t: s.t, node: node}.namespace("")
	networktest.IP(s.t, ns, "addr replace "+visitorAddress+"/24 dev br1")
	var c net.PacketConn
	var err error
	networktest.In(s.t, ns, func() { c, err = net.ListenPacket("ip4:icmp", visitorAddress) })
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	sent := map[uint16]time.Time{}
	var mu sync.Mutex
	const id = 0x5056
	a := s.asking(5*time.Millisecond, func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		sent[uint16(n)] = time.Now()
		_, _ = c.WriteTo(echo(id, uint16(n)), &net.IPAddr{IP: net.ParseIP(address)})
		return false // the answer comes below
	})
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			// The socket has the answers to other pings of the node too.
			if from.String() != address || n < 8 || b[0] != 0 || binary.BigEndian.Uint16(b[4:]) != id {
				continue
			}
			mu.Lock()
			asked, ok := sent[binary.BigEndian.Uint16(b[6:])]
			mu.Unlock()
			if ok {
				a.answered(asked)
			}
		}
	}()
	return a
}

// echo is an echo request.
func echo(id, number uint16) []byte {
	b := []byte{8, 0, 0, 0}
	b = binary.BigEndian.AppendUint16(b, id)
	b = binary.BigEndian.AppendUint16(b, number)
	var sum uint32
	for n := 0; n < len(b); n += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[n:]))
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}
