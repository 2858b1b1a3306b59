package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"time"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/launcher/supervisor"
)

// processors writes what processors guests can have on this node. What goes wrong is
// logged and leaves no file: the node runs guests all the same.
func processors(args []string) error {
	var f flag.FlagSet
	to := f.String("to", "", "the `file` that is written; the libvirt daemon has its folders beside it")
	timeout := f.Duration("timeout", time.Minute, "how long it may take")
	if err := program.ParseFlags(&f, args); err != nil {
		return err
	}
	if *to == "" {
		return command.Fault("processors needs --to")
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	if err := supervisor.WriteProcessors(ctx, *to, log); err != nil {
		log.Error("write what processors guests can have", "err", err)
	}
	return nil
}
