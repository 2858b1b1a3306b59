package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/launcher/supervisor"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
	"github.com/podvisor/podvisor/vmi/validate"
)

// host is what this host offers to a VMI.
type host struct {
	images  map[string]string // archives, by the references of container disks
	volumes map[string]string // paths, by the names of volumes
	network string            // passt, user or none; empty: passt
	ports   map[int]int       // of the host, by those of the guest
	notes   io.Writer         // gets what the user must know
	log     *slog.Logger
}

// pair returns what adds a flag KEY=VALUE to the map.
func pair(to map[string]string) func(string) error {
	return func(s string) error {
		// A reference may have a digest, but no equals sign.
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" || value == "" {
			return errors.New("it must be two words with = between them")
		}
		to[key] = value
		return nil
	}
}

func (h *host) setNetwork(s string) error {
	if !slices.Contains([]string{"passt", "user", "none"}, s) {
		return errors.New("it must be passt, user or none")
	}
	h.network = s
	return nil
}

// read returns the VMI of a file.
func read(name string) (*vmi.VirtualMachineInstance, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(os.Stdin)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	// The guest of a VMI that names no architecture is of this host's.
	here := kinds.Cluster{Defaults: defaults.Profile{Architecture: runtime.GOARCH}, Limits: validate.Limits{Architecture: runtime.GOARCH}}
	all, err := manifest.Instances(data, here)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("it must have one VMI and has %d", len(all))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all[0], nil
}

// run runs v from its start to its end, with its console on t.
func (h *host) run(ctx context.Context, v *vmi.VirtualMachineInstance, t *console) (protocol.End, error) {
	root, err := os.MkdirTemp("", "vm")
	if err != nil {
		return protocol.End{}, err
	}
	defer os.RemoveAll(root)
	for _, dir := range []string{vmi.SocketsDir, vmi.PrivateDir, volume.EphemeralDisks().MountPath} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			return protocol.End{}, err
		}
	}
	disks, err := h.disks(ctx, v, root)
	if err != nil {
		return protocol.End{}, err
	}
	s, err := supervisor.New(supervisor.Config{
		Namespace: v.Namespace, Name: v.Name, UID: v.UID, GracePeriod: v.GracePeriod(), AllowEmulation: true,
		Root: root, Disks: disks, Inspector: inspector, Console: t, Input: t, Logger: h.log,
	})
	if err != nil {
		return protocol.End{}, err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	interfaces, unbind, err := h.interfaces(v)
	if err != nil {
		return protocol.End{}, err
	}
	defer unbind()
	desired := protocol.Desired{Instance: v, Interfaces: interfaces}
	var left atomic.Bool
	t.onLeave = func() {
		if left.Swap(true) {
			now := desired
			now.Stop = &protocol.Stop{}
			_ = s.Put(now) // it refuses nothing
		}
		leave()
	}
	if err := s.Put(desired); err != nil {
		return protocol.End{}, err
	}
	return s.Run(ctx)
}
