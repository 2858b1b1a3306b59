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

// BlockCopy begins to copy the disk with the target of the domain of this name to
// another file or device, which the disk to describes with its format and which
// exists, as large as the disk. The events BlockJobChanged say when it is ready;
// then [Connection.BlockPivot] makes the guest use the copy.
func (c *Connection) BlockCopy(ctx context.Context, name, target string, to *libvirtxml.DomainDisk) error {
	return c.withDevice(ctx, "copy disk "+target+" of", name, to, func(d golibvirt.Domain, xml string) error {
		// A transient job is the only one that a transient domain can have.
		return c.rpc.DomainBlockCopy(d, target, xml, nil, golibvirt.DomainBlockCopyReuseExt|golibvirt.DomainBlockCopyTransientJob)
	})
}

// BlockCommit begins to write what the overlay of the disk with the target of the
// domain of this name holds to the file below it. The events BlockJobChanged say when
// it is ready; then [Connection.BlockPivot] makes the guest use that file.
func (c *Connection) BlockCommit(ctx context.Context, name, target string) error {
	return c.with(ctx, "commit disk "+target+" of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainBlockCommit(d, target, nil, nil, 0, golibvirt.DomainBlockCommitActive|golibvirt.DomainBlockCommitShallow)
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
