package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// prepare does what every start does, and what depends on no Desired, before there is one: in
// the time in which the VMI is handed over and its network is bound. What fails here is
// done by the start.
func (s *Supervisor) prepare(ctx context.Context) {
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { s.prepareDaemon(ctx) })
	defer close(s.prepared)
	began := time.Now()
	p, err := s.prepareDisks(ctx)
	s.config.Logger.Debug("the container disks are prepared", "seconds", time.Since(began).Seconds(), "disks", len(p.attachments), "err", err)
	if len(p.images) > 0 {
		s.facts.mu.Lock()
		s.facts.images = p.images
		s.facts.mu.Unlock()
		s.hashImages()
	}
	s.prepared <- p // has room for it
}

// prepareDaemon makes the daemon read what QEMU can do.
func (s *Supervisor) prepareDaemon(ctx context.Context) {
	conn, err := s.session.connection(ctx)
	if err != nil {
		return // ctx has ended
	}
	began := time.Now()
	err = conn.Warm(ctx)
	s.config.Logger.Debug("the daemon has read what QEMU can do", "seconds", time.Since(began).Seconds(), "err", err)
}

// preparation is what was found of container disks, and the overlays that were made. The zero
// value is none.
type preparation struct {
	images      map[string]storage.Image // the one image of each, by the volume
	attachments []storage.Attachment
}

// prepareDisks makes the overlays of the container disks that the pod has, as a VMI has them
// that says no more of them.
func (s *Supervisor) prepareDisks(ctx context.Context) (preparation, error) {
	place := s.place(config.Launcher{})
	found, err := place.containerDisks()
	if err != nil || len(found) == 0 {
		return preparation{}, err
	}
	v := s.instance()
	for _, f := range found {
		v.Spec.Volumes = append(v.Spec.Volumes, containerDisk(f.Name()))
		v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: f.Name()})
	}
	node, err := place.observe(ctx, v.Spec.Volumes)
	if err != nil {
		return preparation{}, err
	}
	attachments, err := place.attach(v, node)
	if err == nil {
		err = place.makeFiles(ctx, attachments)
	}
	if err != nil {
		return preparation{}, err
	}
	return preparation{node.Images, attachments}, nil
}

// containerDisks are the folders of the container disks that the pod has, each with the name
// of its volume.
func (p place) containerDisks() ([]fs.DirEntry, error) {
	observations, err := volume.Observations([]vmi.Volume{containerDisk("any")}, volume.Node{Root: p.root, Kinds: p.kinds})
	if err != nil || len(observations) == 0 || observations[0].Image == nil {
		return nil, err
	}
	found, err := os.ReadDir(filepath.Dir(observations[0].Image.Dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return found, err
}

// containerDisk is a volume of which no more is known.
func containerDisk(name string) vmi.Volume {
	return vmi.Volume{Name: name, VolumeSource: vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{}}}
}

// take waits for what is prepared and returns it, at the first call. A start that is tried again
// relies on nothing that was done before.
func (s *Supervisor) take(ctx context.Context) preparation {
	select {
	case p := <-s.prepared: // closed: none
		return p
	case <-ctx.Done():
		return preparation{}
	}
}

// has says that the file of the attachment is made.
func (p preparation) has(a storage.Attachment) bool {
	return slices.ContainsFunc(p.attachments, func(made storage.Attachment) bool { return reflect.DeepEqual(made, a) })
}
