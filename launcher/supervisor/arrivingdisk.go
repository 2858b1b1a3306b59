package supervisor

import (
	"context"
	"fmt"
	"os"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
)

// sent says that what is in the disk comes from where the guest runs.
func sent(d protocol.MigrationDisk) bool { return d.Copied || len(d.Content) > 0 }

// emptied is what the disks of a guest that arrives are made as: one that is copied as a whole
// is empty, with the size that it has.
func emptied(disks []protocol.MigrationDisk) func(storage.Attachment) storage.Attachment {
	return func(a storage.Attachment) storage.Attachment {
		for _, d := range disks {
			if d.Name != a.Name || !d.Copied || !isImage(a) {
				continue
			}
			a.Source, a.SizeBytes = storage.Blank{}, d.SizeBytes
		}
		return a
	}
}

// hide lets no other user of the node read what is sent.
func hide(disks []protocol.MigrationDisk, attachments map[string]domain.Disk) error {
	for _, d := range disks {
		if a := attachments[d.Name]; sent(d) && a.Path != "" {
			if err := os.Chmod(a.Path, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare says how the disks here differ from what the guest has.
func (s *Supervisor) compare(ctx context.Context, disks []protocol.MigrationDisk, attachments map[string]domain.Disk) error {
	ctx, cancel := context.WithTimeoutCause(ctx, hashWait, errHashLate)
	defer cancel()
	for _, d := range disks {
		a, ok := attachments[d.Name]
		if !ok {
			return transport.Refusal(protocol.ReasonDiskDiffers, "volume %s of the guest is not in this pod", d.Name)
		}
		if sent(d) && !a.Ephemeral() {
			return transport.Refusal(protocol.ReasonDiskDiffers, "volume %s would be sent, and is no disk of the pod here", d.Name)
		}
		if len(d.Content) > 0 {
			continue // it replaces what is here
		}
		own, err := s.backing(ctx, a)
		if err != nil {
			return fmt.Errorf("volume %s: %w", d.Name, err)
		}
		switch fault := differ(d.Backing, own); {
		case fault == "":
		case isImage(a.Attachment):
			return transport.Refusal(protocol.ReasonDiskDiffers, "volume %s has other files here than where the guest runs, and too many to send them: %s", d.Name, fault)
		default:
			return transport.Refusal(protocol.ReasonContainerDiskChanged, "volume %s: the image below its layer is another one here than where the guest runs: %s", d.Name, fault)
		}
		if a.Ephemeral() && a.SizeBytes != d.SizeBytes {
			return transport.Refusal(protocol.ReasonDiskDiffers, "volume %s has %d bytes here and %d where the guest runs", d.Name, a.SizeBytes, d.SizeBytes)
		}
	}
	return nil
}

// differ says how two backing files differ.
func differ(theirs, own *protocol.MigrationBacking) string {
	switch {
	case (theirs == nil) != (own == nil):
		return "only one of them has one"
	case theirs == nil:
		return ""
	case theirs.SizeBytes != own.SizeBytes:
		return fmt.Sprintf("it has %d bytes here and %d there", own.SizeBytes, theirs.SizeBytes)
	case theirs.Hash != own.Hash:
		return fmt.Sprintf("its content is %s here and %s there", own.Hash, theirs.Hash)
	}
	return ""
}
