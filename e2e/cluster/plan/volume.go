package plan

import "path"

// Names of what gives claims their volumes, see the program csi of package toolchain.
const (
	// StorageClass is the class of claims that get a volume, and the default. It is
	// the name of the class of snapshots too.
	StorageClass = "local"
	// StorageDriver makes the volumes of the class.
	StorageDriver = "local.cluster.podvisor.io"
)

// csiSocket is where the driver of a node serves the node's kubelet.
const csiSocket = kubeletDir + "/plugins/" + StorageDriver + "/csi.sock"

// kubeletDir is the kubelet's folder on a node.
const kubeletDir = "/var/lib/kubelet"

// csiController makes, expands, copies and removes the volumes of claims.
func csiController(c Config) Program {
	return Program{
		Name: "csi", After: []string{bootstrapped},
		Args:  []string{path.Join(c.CSI, "csi"), "controller", Server, c.pki("ca.crt"), c.pki("admin.crt"), c.pki("admin.key"), path.Join(c.State, VolumesDir)},
		Ready: []string{"unix:" + path.Join(c.State, VolumesDir, "csi.sock")},
	}
}

// csiNode mounts volumes for the pods of a node.
func csiNode(name string) Program {
	return Program{
		Name: "csi", Args: []string{path.Join(NodeCSI, "csi"), "node", name, kubeletDir, NodeVolumes}, Ready: []string{"unix:" + csiSocket},
	}
}

// snapshotKinds makes the kinds of snapshots and then their class.
func snapshotKinds(c Config) Program {
	return c.create("snapshot-kinds", []string{bootstrapped}, path.Join(c.CSI, "snapshot-kinds.json"), c.cp("snapshot-class.json"))
}

// storageObjects are the driver and the class of claims that get a volume on the node
// that their first pod runs on. Any node can then use it: all are on one host.
func storageObjects() []object {
	return []object{
		{"/apis/storage.k8s.io/v1/csidrivers", m{
			"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
			"metadata": m{"name": StorageDriver},
			"spec":     m{"attachRequired": false, "fsGroupPolicy": "File"},
		}},
		{"/apis/storage.k8s.io/v1/storageclasses", m{
			"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
			"metadata":             m{"name": StorageClass, "annotations": m{"storageclass.kubernetes.io/is-default-class": "true"}},
			"provisioner":          StorageDriver,
			"volumeBindingMode":    "WaitForFirstConsumer",
			"reclaimPolicy":        "Delete",
			"allowVolumeExpansion": true,
		}},
	}
}

// snapshotClass is the class of snapshots of claims.
func snapshotClass() []object {
	return []object{{"/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses", m{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
		"metadata":       m{"name": StorageClass, "annotations": m{"snapshot.storage.kubernetes.io/is-default-class": "true"}},
		"driver":         StorageDriver,
		"deletionPolicy": "Delete",
	}}}
}
