package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/internal/launcher/share"
)

// shareFolder serves a folder to the guest of the pod until the pod ends.
func shareFolder(args []string) error {
	limitMemory()
	unix.Umask(0) // the guest has applied its own
	c := share.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	var f flag.FlagSet
	f.StringVar(&c.Socket, "socket", "", "the `path` of the socket that QEMU connects to")
	f.StringVar(&c.Folder, "folder", "", "the `folder` that the guest sees")
	f.BoolVar(&c.ReadOnly, "read-only", false, "refuse every change")
	if err := program.ParseFlags(&f, args); err != nil {
		return err
	}
	if c.Socket == "" || c.Folder == "" {
		return command.Fault("share needs --socket and --folder")
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	return share.Serve(ctx, c)
}
