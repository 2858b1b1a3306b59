package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
)

// givePort is where serve gives the program itself.
const givePort = "9999"

// serve answers at the ports until the process ends.
func serve(tcp, udp string) error {
	ended := make(chan error)
	start := func(port string, answer func(net.Conn)) error {
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return err
		}
		go func() { ended <- accept(l, answer) }()
		return nil
	}
	if err := start(givePort, give); err != nil {
		return err
	}
	for port := range strings.SplitSeq(tcp, ",") {
		if err := start(port, answer); err != nil {
			return err
		}
	}
	for port := range strings.SplitSeq(udp, ",") {
		c, err := whole.ListenPacket(context.Background(), "udp", ":"+port)
		if err != nil {
			return err
		}
		go func() { ended <- echo(c) }()
	}
	return <-ended
}

func accept(l net.Listener, answer func(net.Conn)) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			answer(c)
		}()
	}
}

// give sends the program itself.
func give(c net.Conn) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = io.Copy(c, f)
}

// seen is what serve says of who asked.
func seen(from net.Addr) string {
	name, _ := os.Hostname()
	host, _, _ := net.SplitHostPort(from.String())
	return fmt.Sprintf("%s saw %s\n", name, host)
}

// echo answers datagrams.
func echo(c net.PacketConn) error {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return err
		}
		text := seen(from)
		_, _ = c.WriteTo([]byte(text+strings.Repeat(".", max(0, n-len(text)))), from)
	}
}

// answer does what the first line asks for.
func answer(c net.Conn) {
	in := bufio.NewReader(c)
	line, _ := in.ReadString('\n')
	verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch verb {
	case "run":
		execute(c, rest)
	case "sum":
		h := sha256.New()
		got, _ := io.Copy(h, in)
		fmt.Fprintf(c, "%d %x\n", got, h.Sum(nil))
	case "echo":
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	default:
		_, _ = io.WriteString(c, seen(c.RemoteAddr()))
	}
}

// result is what a program wrote and how it ended.
type result struct {
	Output string `json:"output"`
	Error  string `json:"error,omitempty"`
}

// execute runs a program.
func execute(to io.Writer, list string) {
	var args []string
	var r result
	if err := json.Unmarshal([]byte(list), &args); err != nil || len(args) == 0 {
		r.Error = fmt.Sprintf("no list of arguments: %q", list)
	} else {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		r.Output = string(out)
		if err != nil {
			r.Error = err.Error()
		}
	}
	_ = json.NewEncoder(to).Encode(r)
}
