package plan

// Names of what gives claims their volumes, see package volume.
const (
	// StorageClass is the class of claims that get a volume, and the default.
	StorageClass = "local"
	// VolumeProvisioner makes the volumes of the class.
	VolumeProvisioner = "cluster.podvisor.io/local"
	// NodeVolumes is the folder of a node's volumes, as the node sees it.
	NodeVolumes = "/var/lib/volumes"
)

// volumes makes and removes the volumes of claims. The executable is the one that
// runs the cluster.
func volumes(c Config) Program {
	return Program{
		Name: "volumes", After: []string{bootstrapped},
		Args: []string{"/proc/self/exe", "volumes", Server, c.pki("ca.crt"), c.pki("admin.crt"), c.pki("admin.key"), c.State},
	}
}

// storageClass is the class of claims that get a volume of the node that their first
// pod runs on.
func storageClass() object {
	return object{"/apis/storage.k8s.io/v1/storageclasses", m{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata":          m{"name": StorageClass, "annotations": m{"storageclass.kubernetes.io/is-default-class": "true"}},
		"provisioner":       VolumeProvisioner,
		"volumeBindingMode": "WaitForFirstConsumer",
		"reclaimPolicy":     "Delete",
	}}
}
