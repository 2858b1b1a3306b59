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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podvisor/podvisor/internal/storage/probe"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
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

// backing is what is known of the file below the layer of a disk, or of an image of files. Nil:
// it is neither. What is in a claim is the same in both pods: it is not hashed.
func (s *Supervisor) backing(ctx context.Context, a domain.Disk) (*protocol.MigrationBacking, error) {
	path, hashed := a.Path, true
	if over, ok := a.Source.(storage.Overlay); ok {
		path, hashed = over.Base.Path, s.facts.inContainerDisk(a.Name)
	} else if !isImage(a.Attachment) {
		return nil, nil
	}
	facts, err := probe.Path(path)
	if err != nil || !hashed {
		return &protocol.MigrationBacking{SizeBytes: facts.SizeBytes}, err
	}
	hash, err := s.hashes.of(ctx, path)
	if err != nil {
		return nil, transport.Refusal(protocol.ReasonContainerDiskNotCompared,
			"volume %s: its image is not known to be the same on both nodes: %v", a.Name, err)
	}
	return &protocol.MigrationBacking{SizeBytes: facts.SizeBytes, Hash: hash}, nil
}

// inContainerDisk says that the volume is a container disk.
func (f *facts) inContainerDisk(volume string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.desired != nil && f.desired.Instance != nil && slices.ContainsFunc(f.desired.Instance.Spec.Volumes, func(v vmi.Volume) bool {
		return v.Name == volume && v.ContainerDisk != nil
	})
}
