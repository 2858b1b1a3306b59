// Command vnc-web serves a page on this host with the VMs of a cluster: their state, their
// screens and consoles, and buttons that start, stop and pause them.
//
//	./examples/vnc-web/vendor.sh        # once: noVNC and xterm.js, from npm
//	go run ./examples/vnc-web [-n NAMESPACE | -A] [-port PORT]
//
// It prints the URL to open. It takes the cluster from KUBECONFIG or ~/.kube/config and has
// the rights of that user, through the public API and nothing else.
//
// It listens on 127.0.0.1 only. Who has the URL has these rights as far as the page uses
// them: the URL holds a token that is new at each start, and requests from pages of other
// origins, or by another host name, are refused.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/podvisor/podvisor/examples/command"
)

//go:generate ./vendor.sh

//go:embed page
var files embed.FS

var program = command.Program{
	Name:  "vnc-web",
	Usage: "usage: vnc-web [-n NAMESPACE | -A] [-port PORT]\n\nserves a page on this host with the VMs of a cluster, their screens and consoles",
}

func main() { os.Exit(program.Exit(run(os.Args[1:]), os.Stderr)) }

func run(args []string) error {
	var flags flag.FlagSet
	namespace := flags.String("n", "", "the `NAMESPACE` of the VMs; default: that of the current context")
	all := flags.Bool("A", false, "show the VMs of all namespaces")
	port := flags.Int("port", 0, "the `PORT` of 127.0.0.1 to listen on; 0: any that is free")
	if err := program.Parse(&flags, args, os.Stdout); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return command.Fault(fmt.Sprintf("argument %q is not expected", flags.Arg(0)))
	}
	page, err := fs.Sub(files, "page")
	if err != nil {
		return err
	}
	if _, err := fs.Stat(page, "vendor/novnc"); err != nil {
		return errors.New("noVNC and xterm.js are not built in: run ./examples/vnc-web/vendor.sh and start again")
	}
	c, in, err := command.Cluster(*namespace)
	if err != nil {
		return err
	}
	if *all {
		in = ""
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(*port)))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	s := newServer(c, in, page, l.Addr().String())
	fmt.Println("open", s.url())
	return serve(ctx, l, s)
}

// serve serves until the context ends.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
