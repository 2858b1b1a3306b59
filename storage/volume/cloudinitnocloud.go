package volume

import (
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

// cloudInitNoCloud is a disk with cloud-init's NoCloud data source, which the
// launcher makes from the spec.
var cloudInitNoCloud = kind{
	name: "cloudInitNoCloud",
	attach: func(instance *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
		files, err := cloudinit.NoCloud(instance, v.CloudInitNoCloud)
		if err != nil {
			return storage.Attachment{}, err
		}
		return storage.Attachment{
			Path:   cloudInitPath(n.Root, instance),
			Format: storage.Raw,
			Source: storage.Seed{Label: cloudinit.NoCloudLabel, Files: files},
		}, nil
	},
}
