package main

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/launcher/supervisor"
)

// processors writes what processors guests can have on this node. What cannot be
// found out is logged and leaves no file: the node runs guests all the same.
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
	p, err := supervisor.Processors(ctx, filepath.Join(filepath.Dir(*to), "libvirt"), log)
	if err != nil {
		log.Error("find out what processors guests can have", "err", err)
		return nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(*to+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(*to+".new", *to)
}
