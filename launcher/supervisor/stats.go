package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
)

const (
	// agentWait is how long statistics wait for the agent: less than the handler waits
	// for all of them.
	agentWait = time.Second
	// mostFileSystems is how many file systems are counted.
	mostFileSystems = 32
)

// stats are what is counted of the domain now. What libvirt's one call does not give costs
// only itself if it fails.
func (s *Supervisor) stats(ctx context.Context) (out protocol.Stats, err error) {
	said := s.askCounts()
	err = s.withGuest(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		counted, err := c.Counted(ctx, s.domainName(), protocol.StatGroups()...)
		if err != nil {
			return err
		}
		if n, err := c.PinCells(ctx, s.domainName(), len(protocol.NewStats(counted).Of(protocol.VCPU))); err == nil {
			counted[string(protocol.PinCells)] = uint64(n)
		}
		if s.facts.sends() {
			c.CountJob(ctx, s.domainName(), counted)
		}
		out = protocol.NewStats(counted)
		return nil
	})
	if err != nil {
		return out, err
	}
	s.facts.nameParts(out.Parts)
	select {
	case parts := <-said:
		out.Parts = append(out.Parts, parts...)
	case <-time.After(agentWait):
	case <-ctx.Done():
	}
	return out, nil
}

// sends says that the guest is being sent to another launcher.
func (f *facts) sends() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.migration != nil && f.migration.Stage == protocol.MigrationSends
}

// nameParts gives disks and interfaces their names in the spec, and none to others.
func (f *facts) nameParts(parts []protocol.Part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := map[protocol.Group]map[string]string{protocol.Block: {}, protocol.Net: {}}
	for _, d := range f.observed.Disks {
		names[protocol.Block][d.Target] = d.Name
	}
	if f.desired != nil {
		for _, i := range f.desired.Interfaces {
			names[protocol.Net][i.Tap] = i.Name
		}
	}
	for i, p := range parts {
		parts[i].Name = names[p.Group][p.Name]
	}
}

// askCounts asks the agent what it counts, if there is one and it is not being asked. The
// answer may come late or never: a guest may be slow, and its agent answers one question at
// a time.
func (s *Supervisor) askCounts() <-chan []protocol.Part {
	said := make(chan []protocol.Part, 1)
	if !s.facts.agentAnswers() || !s.counting.TryLock() {
		close(said)
		return said
	}
	s.work.Go(func() {
		defer s.counting.Unlock()
		defer close(said)
		ctx, cancel := context.WithTimeout(s.inner, guestTimeout)
		defer cancel()
		if conn, err := s.session.connection(ctx); err == nil {
			said <- guestCounts(ctx, conn, s.domainName())
		}
	})
	return said
}

// agentAnswers says that there is an agent, in a guest that runs.
func (f *facts) agentAnswers() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.domain == launcher.Running && f.observed.Agent != nil
}

// guestCounts are what the agent counts of the guest. One that does not know a command is
// asked the next.
func guestCounts(ctx context.Context, c *libvirt.Connection, domain string) (out []protocol.Part) {
	all, err := c.GuestFileSystems(ctx, domain)
	if err != nil && !errors.Is(err, libvirt.ErrAgentRefused) {
		return nil
	}
	for i, f := range all[:min(len(all), mostFileSystems)] {
		if f.TotalBytes == 0 {
			continue // it has no size, or the agent does not say
		}
		out = append(out, protocol.Part{
			Group: protocol.FileSystem, Number: i, Name: f.DiskName, MountPoint: f.MountPoint, Type: f.FileSystemType,
			Values: map[protocol.Stat]float64{protocol.FileSystemTotal: float64(f.TotalBytes), protocol.FileSystemUsed: float64(f.UsedBytes)},
		})
	}
	if load, err := c.GuestLoad(ctx, domain); err == nil {
		out = append(out, protocol.Part{
			Group: protocol.Load, Values: map[protocol.Stat]float64{protocol.Load1: load[0], protocol.Load5: load[1], protocol.Load15: load[2]},
		})
	}
	return out
}
