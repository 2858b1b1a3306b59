package main

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// server answers on the loopback until the test ends.
func server(t *testing.T) (tcp, udp string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := whole.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); c.Close() })
	go func() { _ = accept(l, answer) }()
	go func() { _ = echo(c) }()
	return l.Addr().String(), c.LocalAddr().String()
}

func TestBothEndsAgree(t *testing.T) {
	t.Parallel()
	tcp, udp := server(t)
	for name, tt := range map[string]struct {
		do   func(out *bytes.Buffer) error
		want string
	}{
		"on who asked by TCP":          {func(b *bytes.Buffer) error { return ask(b, "tcp", tcp, answerLimit, answerLimit) }, " saw 127.0.0.1\n"},
		"on who asked by UDP":          {func(b *bytes.Buffer) error { return ask(b, "udp", udp, answerLimit, answerLimit) }, " saw 127.0.0.1\n"},
		"on a stream":                  {func(b *bytes.Buffer) error { return send(b, tcp, 50*time.Millisecond) }, " bytes in "},
		"on a datagram that is whole":  {func(b *bytes.Buffer) error { return large(b, udp, 2000) }, "2000 bytes\n"},
		"on the number of connections": {func(b *bytes.Buffer) error { return connect(b, tcp, 20) }, "20 of 20 in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := tt.do(&out); err != nil || !strings.Contains(out.String(), tt.want) {
				t.Fatalf("%v, printed %q", err, &out)
			}
		})
	}
}

func TestALostByteIsAnError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		_ = accept(l, func(c net.Conn) {
			n, _ := bytes.NewBuffer(nil).ReadFrom(c)
			fmt.Fprintf(c, "%d 00\n", n-1)
		})
	}()
	if err := send(new(bytes.Buffer), l.Addr().String(), 10*time.Millisecond); err == nil {
		t.Fatal("the loss is not seen")
	}
}

func TestAProgramsEndIsSaid(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		`["echo","a"]`: `{"output":"a\n"}`, `["false"]`: `{"output":"","error":"exit status 1"}`, `[]`: `{"output":"","error":"no list of arguments: \"[]\""}`,
	} {
		var out bytes.Buffer
		execute(&out, list)
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("%s: %s", list, got)
		}
	}
}
