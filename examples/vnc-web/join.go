package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"github.com/podvisor/podvisor/vmi"
)

// closing is how long the end of a stream waits for the page.
const closing = 3 * time.Second

// upgrader accepts the websockets of the page, whose origin has been looked at before.
var upgrader = websocket.Upgrader{
	HandshakeTimeout: closing, Subprotocols: []string{vmi.StreamProtocol},
	CheckOrigin: func(*http.Request) bool { return true },
}

// join copies both ways between the page and the guest until one of them or ctx ends. Then
// both are closed, the page with a close frame.
func join(ctx context.Context, page *websocket.Conn, guest net.Conn) {
	page.SetReadLimit(1 << 20)
	stop := context.AfterFunc(ctx, func() { _ = guest.Close() })
	defer stop()
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		for {
			kind, message, err := page.NextReader()
			if err != nil {
				break
			}
			if kind != websocket.BinaryMessage {
				continue
			}
			if _, err := io.Copy(guest, message); err != nil {
				break
			}
		}
		_ = guest.Close()
	}()
	b := make([]byte, 32<<10)
	for {
		n, err := guest.Read(b)
		if n > 0 && page.WriteMessage(websocket.BinaryMessage, b[:n]) != nil || err != nil {
			break
		}
	}
	_ = guest.Close()
	_ = page.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(closing))
	// Until the page has all.
	_ = page.SetReadDeadline(time.Now().Add(closing))
	<-typed
	_ = page.Close()
}
