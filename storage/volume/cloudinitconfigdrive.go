package volume

import (
	"path"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

// cloudInitConfigDrive is a disk with cloud-init's ConfigDrive data source, which
// the launcher makes from the spec and from Secrets.
//
// +podvisor:entry
var cloudInitConfigDrive = Kind{
	Name:       "cloudInitConfigDrive",
	Migratable: true,
	Pod:        func(v vmi.Volume, n PodNames, _ Cluster) Part { return configDriveSecrets(v).pod(v, n) },
	Observe: func(v vmi.Volume, n Node) Observation {
		return configDriveSecrets(v).observe(v, n)
	},
	Attach: func(instance *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
		secrets, err := configDriveSecrets(v).read(v, n)
		if err != nil {
			return storage.Attachment{}, err
		}
		secrets.Keys = n.Keys.ConfigDrive
		files, err := cloudinit.ConfigDrive(instance, v.CloudInitConfigDrive, secrets, n.Devices...)
		if err != nil {
			return storage.Attachment{}, err
		}
		return storage.Attachment{
			Path:   configDrivePath(n.Root, instance),
			Format: storage.Raw,
			Source: storage.Seed{Label: cloudinit.ConfigDriveLabel, Files: files},
		}, nil
	},
}

func configDriveSecrets(v vmi.Volume) references {
	return newReferences(v.CloudInitConfigDrive.UserDataSecretRef, v.CloudInitConfigDrive.NetworkDataSecretRef)
}

// configDrivePath is the file of the instance's ConfigDrive image.
func configDrivePath(root string, v *vmi.VirtualMachineInstance) string {
	return path.Join(ephemeralDir(root), "cloud-init-data", v.Namespace, v.Name, "configdrive.iso")
}
