// Command csi gives the claims of a local cluster their volumes: a driver of the
// Container Storage Interface for one host, with the controllers of Kubernetes for it.
//
//	csi controller URL CA CERT KEY DIR
//	csi node NAME KUBELET DIR
//
// The controller keeps each volume as a sparse file in DIR/volumes and shows it as a
// loop device, which every node of the cluster sees since all are on one host. A volume
// with a file system is ext4, made with the volume; one in block mode is the device. The
// file systems have room for eight times their claim and at least 8 GiB, and reserve what
// is beyond the claim: a mounted ext4 is resized only with the capability SYS_RESOURCE,
// which root in a container lacks. Volumes are expanded while they are in use, snapshots
// and clones are copies of the file. In the same process run external-provisioner,
// external-resizer, snapshot-controller and csi-snapshotter, which are otherwise programs
// of their own: one program links and starts faster than five.
//
// The node mounts volumes where its kubelet wants them, and enlarges their file systems.
// It registers with the kubelet by the socket in KUBELET/plugins_registry.
//
// Two pods on two nodes may mount one volume whose claim has such an access mode: both are
// views of one file system in one kernel. With an access mode for one node, the second node
// is refused as long as the first one has the volume mounted, also if the first one is
// dead: it is forgotten when the node is removed from the folder uses of the volume.
//
// Traps: df shows the room as the size of a volume; what is available is right. The
// file systems have no journal, since a cluster does not outlive its host. A
// snapshot of a volume with a file system is of one moment (the file system is frozen
// for as long as it is copied); one of a volume in block mode is so only if nothing
// writes to it.
package main
