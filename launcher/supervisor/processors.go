package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// WriteProcessors finds out what guests can have on this node, as processors does, and
// writes it to the file as JSON, for the handler of the node. The libvirt daemon has its
// folders next to the file. The file is replaced at once; with an error it stays as it is.
func WriteProcessors(ctx context.Context, file string, log *slog.Logger) error {
	p, err := processors(ctx, filepath.Join(filepath.Dir(file), "libvirt"), log)
	if err != nil {
		return fmt.Errorf("find out what processors guests can have: %w", err)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// processors are what guests can have on this node. It starts a libvirt daemon in
// dir, a folder with a short path, and ends it. The process has no other children. Models
// and features of processors have names on x86 only.
func processors(ctx context.Context, dir string, log *slog.Logger) (p protocol.Processors, err error) {
	if runtime.GOARCH != defaults.AMD64 {
		return p, nil
	}
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
	return conn.Processors(ctx, process.Arch())
}
