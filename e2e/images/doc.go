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
// The Debian packages are those of images/lock.yaml, which [Lock] writes: versions and
// digests. Where Debian's archive no longer has one of them, the build says so, takes the
// newest of the suite and names what differs. A table of the packages of which files are
// in an image is written beside it; see [Built.Packages].
//
// What is costly is cached under a key made of everything it depends on: the list,
// the sources of this package, and the locked packages. With nothing changed a build
// takes the time that "go build" needs to find that out.
//
// The package downloads Debian packages with the host's apt, from the sources in
// images/suites and with lists of its own, so the release of the host does not matter. It
// unpacks them in memory; nothing of the host is changed. It does not load images into a
// cluster.
//
// Traps: the host is a Debian, for apt and dpkg-deb, whose keyring has the keys of the
// suites: Debian 12 or newer. Root is needed only for libvirt's knowledge of QEMU, which
// is asked of the image's own daemon in a chroot; see [List.Capabilities].
package images
