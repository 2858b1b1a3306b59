// Package share serves a folder to a guest as a file system, by virtio-fs.
//
// [Serve] listens on a socket that QEMU connects to. QEMU hands over the guest's memory
// and its queues by the vhost-user protocol, and the guest sends requests of FUSE
// through them. The process needs no privilege and no namespace of its own: what it may
// read and write, the guest may.
//
// The guest is hostile. A request is copied out of its memory before it is looked at,
// and has at most [MaxRequest] bytes; a file is reached by a descriptor of its folder
// and one name that is no path; descriptors never follow symbolic links, which the guest
// resolves itself. So nothing outside of the folder is reached, also while another
// process replaces folders in it by links. What the guest keeps open is limited.
//
// Debian's virtiofsd 1.13 is not what serves, for what its sandboxes need. As an ordinary
// user it refuses chroot; namespace makes a user namespace, which the seccomp profile
// RuntimeDefault of a pod does not allow; with none it serves, and what the guest asks
// for is looked up with the root of the pod, its processes and its sockets in reach.
//
// The package is an edge: it touches the folder and the socket.
//
// Traps: QEMU does not connect again, so a guest whose server ended has to be started
// anew to use the file system. Files belong to the user of the process, and a guest
// cannot give them to another. Extended attributes, device nodes and set-user-ID bits
// are refused. Locks hold in the guest alone.
package share
