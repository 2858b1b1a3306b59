package volume

import (
	"path"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

// cloudInitNoCloud is a disk with cloud-init's NoCloud data source, which the
// launcher makes from the spec and from Secrets.
//
// +podvisor:entry
var cloudInitNoCloud = Kind{
	Name:       "cloudInitNoCloud",
	Migratable: true,
	Pod:        func(v vmi.Volume, n PodNames, _ Cluster) Part { return noCloudSecrets(v).pod(v, n) },
	Observe: func(v vmi.Volume, n Node) Observation {
		return noCloudSecrets(v).observe(v, n)
	},
	Attach: func(instance *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
		secrets, err := noCloudSecrets(v).read(v, n)
		if err != nil {
			return storage.Attachment{}, err
		}
		secrets.Keys = n.Keys.NoCloud
		files, err := cloudinit.NoCloud(instance, v.CloudInitNoCloud, secrets)
		if err != nil {
			return storage.Attachment{}, err
		}
		return storage.Attachment{
			Path:   noCloudPath(n.Root, instance),
			Format: storage.Raw,
			Source: storage.Seed{Label: cloudinit.NoCloudLabel, Files: files},
		}, nil
	},
}

func noCloudSecrets(v vmi.Volume) references {
	return newReferences(v.CloudInitNoCloud.UserDataSecretRef, v.CloudInitNoCloud.NetworkDataSecretRef)
}

// noCloudPath is the file of the instance's NoCloud image.
func noCloudPath(root string, v *vmi.VirtualMachineInstance) string {
	return path.Join(ephemeralDir(root), "cloud-init-data", v.Namespace, v.Name, "noCloud.iso")
}
