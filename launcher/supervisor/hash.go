package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/storage"
)

const (
	// hashWait is how long a step of a migration waits for the hashes of backing files. Without
	// them the guest does not move: what is below its layers may be another image. A file of some
	// GB is read in that time, and a hash that is not there yet is computed on.
	hashWait = 25 * time.Second
	// hashAfter is how long after its start a guest's backing files are hashed, for a migration
	// that may come.
	hashAfter = time.Minute
	// hashPart is what part of the time is spent on that as long as no migration waits.
	hashPart = 10
)

// errHashLate is why a hash is not known.
var errHashLate = fmt.Errorf("it was not read within %s", hashWait)

// hashes are those of files that do not change, each computed once. The zero value has none.
type hashes struct {
	mu     sync.Mutex
	all    map[string]*hash
	run    func(func(context.Context)) // runs something in the background
	logger *slog.Logger
}

// hash is that of a file.
type hash struct {
	done  chan struct{}
	value string
	err   error // why the file cannot be read
	hurry atomic.Bool
}

// begin computes the hash of a file in the background, once. One that cannot be read is read
// again when it is asked for again.
func (h *hashes) begin(path string) *hash {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.all[path]; one != nil {
		return one
	}
	one := &hash{done: make(chan struct{})}
	if h.all == nil {
		h.all = map[string]*hash{}
	}
	h.all[path] = one
	h.run(func(ctx context.Context) {
		defer close(one.done)
		began := time.Now()
		one.value, one.err = one.compute(ctx, path)
		h.logger.Debug("the hash of a backing file", "path", path, "hash", one.value, "seconds", time.Since(began).Seconds(), "err", one.err)
		if one.err != nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.all, path)
		}
	})
	return one
}

// of is the hash of a file, as soon as it is there.
func (h *hashes) of(ctx context.Context, path string) (string, error) {
	one := h.begin(path)
	one.hurry.Store(true)
	select {
	case <-one.done:
		return one.value, one.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (h *hash) compute(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, block := sha256.New(), make([]byte, 1<<20)
	for {
		began := time.Now()
		n, err := f.Read(block)
		_, _ = sum.Write(block[:n]) // never fails
		switch {
		case errors.Is(err, io.EOF):
			return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
		case err != nil:
			return "", err
		}
		wait := (hashPart - 1) * time.Since(began)
		if h.hurry.Load() {
			wait = 0
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// hashLater hashes the backing files of the disks when the guest has run for a while.
func (s *Supervisor) hashLater(disks map[string]domain.Disk) {
	s.work.Go(func() {
		select {
		case <-time.After(hashAfter):
		case <-s.over:
			return
		case <-s.inner.Done():
			return
		}
		for name, d := range disks {
			if over, ok := d.Source.(storage.Overlay); ok && s.facts.inContainerDisk(name) {
				s.hashes.begin(over.Base.Path)
			}
		}
	})
}
