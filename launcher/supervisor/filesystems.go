package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/share"
	"github.com/podvisor/podvisor/vmi"
)

// serverTimeout is how long a start waits for the servers of file systems, which are
// containers of the pod.
const serverTimeout = 30 * time.Second

// watchFilesystems waits for the servers of v's file systems, and notes when one ends.
func (s *Supervisor) watchFilesystems(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	all := v.Spec.Domain.Devices.Filesystems
	if len(all) > 0 && s.config.Root != "" {
		return fmt.Errorf("spec.domain.devices.filesystems: file systems are served in a pod only: show the volumes by disks: %w", vmi.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	s.facts.change(func(f *facts) { f.lost = nil })
	for _, f := range all {
		ended, err := share.Watch(ctx, s.inner, vmi.FilesystemSocket(f.Name))
		if err != nil {
			return fmt.Errorf("file system %s: its server does not answer: look at the log of its container: %w", f.Name, err)
		}
		s.work.Go(func() { s.awaitServer(f.Name, ended) })
	}
	return nil
}

// awaitServer notes that the server of a file system ended before the domain.
func (s *Supervisor) awaitServer(name string, ended <-chan struct{}) {
	select {
	case <-s.over:
	case <-s.inner.Done():
	case <-ended:
		s.config.Logger.Warn("the server of a file system ended", "name", name)
		s.facts.change(func(f *facts) { f.lost = append(f.lost, name) })
	}
}
