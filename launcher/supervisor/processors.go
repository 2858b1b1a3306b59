package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/podvisor/podvisor/launcher/process"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// Processors are what guests can have on this node. It starts a libvirt daemon in
// dir, a folder with a short path, and ends it. The process has no other children.
func Processors(ctx context.Context, dir string, log *slog.Logger) (p protocol.Processors, err error) {
	reaper, err := process.NewReaper()
	if err != nil {
		return p, fmt.Errorf("become the reaper: %w", err)
	}
	daemon := process.NewDaemon(process.Config{Dir: dir, Reaper: reaper, Logger: log})
	if err := daemon.Prepare(); err != nil {
		return p, fmt.Errorf("prepare the folders of the libvirt daemon: %w", err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	reaping, stopReaping := context.WithCancel(context.WithoutCancel(ctx))
	all.Go(func() { reaper.Run(reaping) })
	defer stopReaping()
	running, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { daemon.Run(running) })
	defer ended.Wait()
	defer stop()
	conn, err := dial(ctx, daemon.Socket())
	if err != nil {
		return p, fmt.Errorf("wait for the libvirt daemon, whose last output is %q: %w", daemon.Output(), err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.Processors(ctx, "x86_64")
}
