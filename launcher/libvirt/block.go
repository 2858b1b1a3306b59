package libvirt

import (
	"context"

	golibvirt "github.com/digitalocean/go-libvirt"
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
	var size uint64
	err := c.with(ctx, "get the size of disk "+target+" of", name, func(d golibvirt.Domain) (err error) {
		_, size, _, err = c.rpc.DomainGetBlockInfo(d, target, 0)
		return err
	})
	return int64(size), err
}
