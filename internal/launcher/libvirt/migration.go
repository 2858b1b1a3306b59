package libvirt

import (
	"context"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// Migration is how a domain moves to another daemon. The same Migration is used in all
// five calls, which the two launchers make in this order: [Connection.MigrateBegin] at
// the source, [Connection.MigratePrepare] at the destination,
// [Connection.MigratePerform] at the source, [Connection.MigrateFinish] at the
// destination and [Connection.MigrateConfirm] at the source. Each returns a cookie for
// the next one, of about a KiB. The daemons do not connect to each other, only QEMU
// does.
//
// The two daemons must have different host UUIDs and host names. go-libvirt drops the
// event JOB_COMPLETED: how a migration ended is what MigrateFinish returns.
type Migration struct {
	// URI is where QEMU at the destination takes the memory, for example
	// unix:///run/memory.sock. Required.
	URI string
	// Disks are the targets of the disks of which the uppermost layer is copied. They exist
	// at the destination, with their sizes and with the layers below. Nil: both use the same.
	Disks []string
	// DisksURI is where QEMU at the destination takes the disks. Required with Disks.
	DisksURI string
	// MiBPerSecond limits what is sent of memory, and of each disk. 0: nothing does.
	MiBPerSecond int
	// Connections is how many connections send the memory, at the same time. 0: one,
	// which sends all else too.
	Connections int
	// AutoConverge slows the guest down as long as it changes its memory faster than
	// that is sent.
	AutoConverge bool
	// Paused keeps the guest paused in [Connection.MigrateFinish], which alone needs it.
	Paused bool
	// PostCopy permits [Connection.StartPostCopy]. MigratePrepare fails unless QEMU
	// at the destination may handle page faults of its memory: /dev/userfaultfd is open to
	// its user, or the sysctl vm.unprivileged_userfaultfd is 1.
	PostCopy bool
}

// Outcome is how a part of a migration ended, for the calls after it.
type Outcome int32

// The outcomes, with libvirt's numbers.
const (
	// Moved: everything is at the destination.
	Moved Outcome = 0
	// NotMoved: the guest stays at the source.
	NotMoved Outcome = 1
)

// flags of each of the five calls. libvirt takes a disk on a local file system for
// one that is not shared and refuses it; what is safe is decided before. A guest that an I/O
// error pauses stays where it is.
func (m Migration) flags() golibvirt.DomainMigrateFlags {
	f := golibvirt.MigrateLive | golibvirt.MigrateUnsafe | golibvirt.MigrateAbortOnError
	if len(m.Disks) > 0 {
		f |= golibvirt.MigrateNonSharedInc
	}
	if m.Paused {
		f |= golibvirt.MigratePaused
	}
	if m.Connections > 0 {
		f |= golibvirt.MigrateParallel
	}
	if m.AutoConverge {
		f |= golibvirt.MigrateAutoConverge
	}
	if m.PostCopy {
		f |= golibvirt.MigratePostcopy
	}
	return f
}

func (m Migration) params(more ...golibvirt.TypedParam) []golibvirt.TypedParam {
	p := append([]golibvirt.TypedParam{param(golibvirt.MigrateParamURI, m.URI)}, more...)
	for _, d := range m.Disks {
		p = append(p, param(golibvirt.MigrateParamMigrateDisks, d))
	}
	if len(m.Disks) > 0 {
		p = append(p, param(golibvirt.MigrateParamDisksURI, m.DisksURI))
	}
	if m.MiBPerSecond > 0 {
		p = append(p, golibvirt.TypedParam{Field: golibvirt.MigrateParamBandwidth, Value: *golibvirt.NewTypedParamValueUllong(uint64(m.MiBPerSecond))})
	}
	if m.Connections > 0 {
		p = append(p, golibvirt.TypedParam{Field: golibvirt.MigrateParamParallelConnections, Value: *golibvirt.NewTypedParamValueInt(int32(m.Connections))})
	}
	return p
}

// MigrateBegin returns the XML of the domain of this name for the destination, which
// may change what is the host's in it, and a cookie.
func (c *Connection) MigrateBegin(ctx context.Context, name string, m Migration) (xml string, cookie []byte, err error) {
	type begun struct {
		xml    string
		cookie []byte
	}
	b, err := of(ctx, c, "begin the migration of", name, func(d golibvirt.Domain) (b begun, err error) {
		b.cookie, b.xml, err = c.rpc.DomainMigrateBegin3Params(d, m.params(), uint32(m.flags()))
		return b, err
	})
	return b.xml, b.cookie, err
}

// MigratePrepare starts a QEMU at the destination that waits for the domain.
func (c *Connection) MigratePrepare(ctx context.Context, name string, m Migration, xml string, cookie []byte) (next []byte, err error) {
	next, err = wait(ctx, c, func() ([]byte, error) {
		next, _, err := c.rpc.DomainMigratePrepare3Params(m.params(param(golibvirt.MigrateParamDestXML, xml)), cookie, uint32(m.flags()))
		return next, err
	})
	return next, failure("prepare the migration of", name, err)
}

// MigratePerform moves the domain. It returns when everything is at the destination,
// which may take long, or when the job was aborted. After an error the source is done with
// it, and needs no MigrateConfirm.
func (c *Connection) MigratePerform(ctx context.Context, name string, m Migration, cookie []byte) (next []byte, err error) {
	return of(ctx, c, "migrate", name, func(d golibvirt.Domain) ([]byte, error) {
		return c.rpc.DomainMigratePerform3Params(d, nil, m.params(), cookie, m.flags())
	})
}

// MigrateFinish lets the guest run at the destination, or ends the QEMU there if it
// was NotMoved, for which libvirt returns an error too.
func (c *Connection) MigrateFinish(ctx context.Context, name string, m Migration, cookie []byte, was Outcome) (next []byte, err error) {
	next, err = wait(ctx, c, func() ([]byte, error) {
		_, next, err := c.rpc.DomainMigrateFinish3Params(m.params(param(golibvirt.MigrateParamDestName, name)), cookie, uint32(m.flags()), int32(was))
		return next, err
	})
	return next, failure("finish the migration of", name, err)
}

// MigrateConfirm ends the domain at the source, or lets its guest run on there if it
// was NotMoved.
func (c *Connection) MigrateConfirm(ctx context.Context, name string, m Migration, cookie []byte, was Outcome) error {
	return c.with(ctx, "confirm the migration of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainMigrateConfirm3Params(d, m.params(), cookie, uint32(m.flags()), int32(was))
	})
}

// AbortJob aborts what the domain of this name is busy with, such as its migration. It is to
// be repeated until that is over: libvirt 11.3 can miss the end of the copy of one of several
// disks (qemuMigrationSrcNBDCopyCancelled drops its lock while it ends another), and looks
// again only when something happens, such as the next AbortJob.
func (c *Connection) AbortJob(ctx context.Context, name string) error {
	return c.with(ctx, "abort the job of", name, func(d golibvirt.Domain) error { return c.rpc.DomainAbortJob(d) })
}

// StartPostCopy makes the guest of the domain of this name, which MigratePerform moves
// with PostCopy, run at the destination at once. Memory that is not there yet is sent when
// the guest needs it; from then on the guest is lost if the source is. It fails before
// the migration sends memory.
func (c *Connection) StartPostCopy(ctx context.Context, name string) error {
	return c.with(ctx, "start post-copy of", name, func(d golibvirt.Domain) error { return c.rpc.DomainMigrateStartPostCopy(d, 0) })
}

// SetMaxDowntime sets for how long the guest of the domain of this name may stand still
// at the end of its migration, in whole milliseconds.
func (c *Connection) SetMaxDowntime(ctx context.Context, name string, most time.Duration) error {
	return c.with(ctx, "set the downtime of the migration of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainMigrateSetMaxDowntime(d, uint64(most.Milliseconds()), 0)
	})
}

// Job is how far the job of a domain is, such as its migration.
type Job struct {
	// Elapsed is the time since it began. 0: there is no job.
	Elapsed time.Duration
	// TotalBytes, ProcessedBytes and RemainingBytes are its data, memory and disks.
	TotalBytes, ProcessedBytes, RemainingBytes int64
	// DirtyBytes is how much memory the guest changes each second.
	DirtyBytes int64
	// Iterations is how often the memory was sent.
	Iterations int64
	// Downtime is how long the guest stands still, or stood in a job that is over.
	Downtime time.Duration
}

// Job is the job of the domain of this name.
func (c *Connection) Job(ctx context.Context, name string) (Job, error) {
	return c.job(ctx, name, 0)
}

// CompletedJob is the last job of the domain of this name that is over, which after a
// migration the destination knows.
func (c *Connection) CompletedJob(ctx context.Context, name string) (Job, error) {
	return c.job(ctx, name, golibvirt.DomainJobStatsCompleted|golibvirt.DomainJobStatsKeepCompleted)
}

func (c *Connection) job(ctx context.Context, name string, flags golibvirt.DomainGetJobStatsFlags) (Job, error) {
	p, err := of(ctx, c, "get the job of", name, func(d golibvirt.Domain) (params, error) {
		_, all, err := c.rpc.DomainGetJobStats(d, flags)
		return newParams(all), err
	})
	milliseconds := func(name string) time.Duration { return time.Duration(p.number(name)) * time.Millisecond }
	return Job{
		Elapsed: milliseconds("time_elapsed"), Downtime: milliseconds("downtime"),
		TotalBytes: p.number("data_total"), ProcessedBytes: p.number("data_processed"), RemainingBytes: p.number("data_remaining"),
		DirtyBytes: p.number("memory_dirty_rate") * p.number("memory_page_size"), Iterations: p.number("memory_iteration"),
	}, err
}
