package libvirt

import (
	"context"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// JobState is what has become of a block job.
type JobState string

// The states of which there are events.
const (
	// JobReady: source and destination are the same and are kept so, until the job is
	// pivoted or aborted.
	JobReady JobState = "ready"
	// JobCompleted: the job is over and has done its work.
	JobCompleted JobState = "completed"
	// JobFailed: the job is over and has not done its work.
	JobFailed JobState = "failed"
	// JobAborted: the job was aborted.
	JobAborted JobState = "aborted"
)

var jobStates = map[golibvirt.ConnectDomainEventBlockJobStatus]JobState{
	golibvirt.DomainBlockJobCompleted: JobCompleted,
	golibvirt.DomainBlockJobFailed:    JobFailed,
	golibvirt.DomainBlockJobCanceled:  JobAborted,
	golibvirt.DomainBlockJobReady:     JobReady,
}

// BlockResize makes the disk with the target, such as vda, of the domain of this name
// as large as given, in bytes; the guest sees that at once. An image file is extended
// by QEMU; of a raw file or block device that has the size already, the guest only
// learns of it. A smaller size cuts off data.
func (c *Connection) BlockResize(ctx context.Context, name, target string, sizeBytes int64) error {
	return c.with(ctx, "resize disk "+target+" of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainBlockResize(d, target, uint64(sizeBytes), golibvirt.DomainBlockResizeBytes)
	})
}

// BlockSize is the size in bytes that the disk with the target of the domain of this
// name has for its guest.
func (c *Connection) BlockSize(ctx context.Context, name, target string) (int64, error) {
	return of(ctx, c, "get the size of disk "+target+" of", name, func(d golibvirt.Domain) (int64, error) {
		_, size, _, err := c.rpc.DomainGetBlockInfo(d, target, 0)
		return int64(size), err
	})
}

// BlockRate is how fast a block job reads, in bytes per second. 0: as fast as it can.
type BlockRate int64

// BlockCopy begins to copy the disk with the target of the domain of this name to
// another file or device, which the disk to describes with its format and which
// exists, as large as the disk. The events BlockJobChanged say when it is ready;
// then [Connection.BlockPivot] makes the guest use the copy.
func (c *Connection) BlockCopy(ctx context.Context, name, target string, to *libvirtxml.DomainDisk, rate BlockRate) error {
	var limit []golibvirt.TypedParam
	if rate > 0 {
		limit = []golibvirt.TypedParam{{Field: golibvirt.DomainBlockCopyBandwidth, Value: *golibvirt.NewTypedParamValueUllong(uint64(rate))}}
	}
	return c.withDevice(ctx, "copy disk "+target+" of", name, to, func(d golibvirt.Domain, xml string) error {
		// A transient job is the only one that a transient domain can have.
		return c.rpc.DomainBlockCopy(d, target, xml, limit, golibvirt.DomainBlockCopyReuseExt|golibvirt.DomainBlockCopyTransientJob)
	})
}

// BlockCommit begins to write what the overlay of the disk with the target of the
// domain of this name holds to the file below it. The events BlockJobChanged say when
// it is ready; then [Connection.BlockPivot] makes the guest use that file.
func (c *Connection) BlockCommit(ctx context.Context, name, target string, rate BlockRate) error {
	return c.with(ctx, "commit disk "+target+" of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainBlockCommit(d, target, nil, nil, uint64(rate), golibvirt.DomainBlockCommitActive|golibvirt.DomainBlockCommitShallow|golibvirt.DomainBlockCommitBandwidthBytes)
	})
}

// BlockPull begins to write what is below the overlay of the disk with the target of the
// domain of this name to the overlay. When an event BlockJobChanged says that it is
// completed, the overlay is the whole disk.
func (c *Connection) BlockPull(ctx context.Context, name, target string, rate BlockRate) error {
	return c.with(ctx, "pull disk "+target+" of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainBlockPull(d, target, uint64(rate), golibvirt.DomainBlockPullBandwidthBytes)
	})
}

// SetBlockRate changes how fast the job of the disk with the target of the domain of this
// name goes.
func (c *Connection) SetBlockRate(ctx context.Context, name, target string, rate BlockRate) error {
	return c.with(ctx, "set the rate of the job of disk "+target+" of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainBlockJobSetSpeed(d, target, uint64(rate), golibvirt.DomainBlockJobSpeedBandwidthBytes)
	})
}

// BlockJob is how far a block job is.
type BlockJob struct {
	// DoneBytes of TotalBytes are done. TotalBytes 0: it has not begun, or there is none.
	DoneBytes, TotalBytes int64
	Rate                  BlockRate
}

// BlockJob is the job of the disk with the target of the domain of this name.
func (c *Connection) BlockJob(ctx context.Context, name, target string) (BlockJob, error) {
	return of(ctx, c, "get the job of disk "+target+" of", name, func(d golibvirt.Domain) (j BlockJob, err error) {
		found, _, rate, done, total, err := c.rpc.DomainGetBlockJobInfo(d, target, uint32(golibvirt.DomainBlockJobInfoBandwidthBytes))
		if err == nil && found > 0 {
			j = BlockJob{DoneBytes: int64(done), TotalBytes: int64(total), Rate: BlockRate(rate)}
		}
		return j, err
	})
}

// BlockPivot ends a block job that is ready: the guest uses its destination from then
// on.
func (c *Connection) BlockPivot(ctx context.Context, name, target string) error {
	return c.with(ctx, "end the job of disk "+target+" of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainBlockJobAbort(d, target, golibvirt.DomainBlockJobAbortPivot)
	})
}

// BlockAbort ends a block job: the guest goes on with what it used.
func (c *Connection) BlockAbort(ctx context.Context, name, target string) error {
	return c.with(ctx, "abort the job of disk "+target+" of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainBlockJobAbort(d, target, 0)
	})
}
