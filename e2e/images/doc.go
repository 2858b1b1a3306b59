// Package images builds the project's container images on this host, without
// a container engine and without a registry.
//
// [Build] is the main function: it reads images/NAME/image.yaml of the
// repository (see [List]) and leaves docker-archive tars in the user's cache
// directory, which "ctr images import" takes. Equal input gives equal bytes: times
// are 0, entries sorted, programs built with -trimpath; so the digest of an image
// says whether anything changed. The same images for a registry come from the
// Containerfile beside each list.
//
// What is costly is cached under a key made of everything it depends on: the list,
// the sources of this package, and the versions of all Debian packages that the
// host's apt would install. With nothing changed a build takes the time that "go
// build" needs to find that out.
//
// The package downloads Debian packages with the host's own apt, from the sources
// of its configuration, and unpacks them in memory; nothing of the host is changed.
// It does not load images into a cluster.
//
// Traps: the host must run the Debian release that the lists name. Root is needed
// only for libvirt's knowledge of QEMU, which is asked of the image's own daemon in
// a chroot; see [List.Capabilities].
package images
