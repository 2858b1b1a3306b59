package networktest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// timeout is how long an attempt to connect takes at most, which normally takes
	// milliseconds. On a slow host it may not be enough: repeat an attempt that shall succeed.
	timeout = 3 * time.Second
	// waiting is how long what shall come is waited for.
	waiting = time.Minute
)

// Listen accepts connections in the namespace until the test ends. It sends its
// name and the client's address to each client: "name saw 192.0.2.7". After that
// it sends back what it receives.
func Listen(t testing.TB, ns *os.File, name, protocol, address string) {
	t.Helper()
	In(t, ns, func() {
		if protocol == "udp" {
			listenUDP(t, name, address)
			return
		}
		l, err := net.Listen(protocol, address)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					fmt.Fprintf(c, "%s saw %s\n", name, c.RemoteAddr().(*net.TCPAddr).IP)
					_, _ = io.Copy(c, c)
				}()
			}
		}()
	})
}

func listenUDP(t testing.TB, name, address string) {
	t.Helper()
	c, err := net.ListenPacket("udp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 100)
		for {
			_, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(fmt.Appendf(nil, "%s saw %s\n", name, from.(*net.UDPAddr).IP), from)
		}
	}()
}

// Dial connects from the namespace. It fails after some seconds. The connection may last
// for a minute, and is closed after the test.
func Dial(t testing.TB, ns *os.File, protocol, address string) (c net.Conn, err error) {
	t.Helper()
	In(t, ns, func() { c, err = net.DialTimeout(protocol, address, timeout) })
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	return c, c.SetDeadline(time.Now().Add(waiting))
}

// Ask connects from the namespace to a listener of [Listen] and returns the line
// that it sends. It fails after some seconds.
func Ask(t testing.TB, ns *os.File, protocol, address string) (string, error) {
	t.Helper()
	c, err := Dial(t, ns, protocol, address)
	if err != nil {
		return "", err
	}
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	if protocol == "udp" {
		if _, err := c.Write([]byte("?")); err != nil {
			return "", err
		}
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// Inbox is what datagrams brought.
type Inbox struct {
	mu   sync.Mutex
	data []byte
}

// Receive takes the datagrams to the address in the namespace until the test ends.
func Receive(t testing.TB, ns *os.File, address string) *Inbox {
	t.Helper()
	i := &Inbox{}
	In(t, ns, func() {
		c, err := net.ListenPacket("udp", address)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		go func() {
			b := make([]byte, 1<<16)
			for {
				n, _, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				i.mu.Lock()
				i.data = append(i.data, b[:n]...)
				i.mu.Unlock()
			}
		}()
	})
	return i
}

// Has says that the data was received.
func (i *Inbox) Has(data []byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return bytes.Contains(i.data, data)
}
