package host

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// forward accepts connections and joins each to one to the target. The listener
// may belong to another network namespace than this process.
func forward(listener net.Listener, target string, log *slog.Logger) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Error("accept", "err", err)
			return
		}
		go func() {
			defer conn.Close()
			to, err := net.DialTimeout("tcp", target, 5*time.Second)
			if err != nil {
				return // the client sees the connection close
			}
			defer to.Close()
			join(conn.(*net.TCPConn), to.(*net.TCPConn))
		}()
	}
}

// join copies both ways until both are at their end.
func join(a, b *net.TCPConn) {
	var both sync.WaitGroup
	for _, pair := range [][2]*net.TCPConn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].CloseWrite()
		})
	}
	both.Wait()
}
