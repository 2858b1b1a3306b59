// Package release writes a release of Podvisor into a folder, and uploads its images to
// a registry.
//
// [Make] is the main function. From the same commit, version, registry, packages of
// Debian and version of Go it writes the same bytes: nothing of the host, its clock or
// the folder is in them. docs/install.md says what is in the folder.
//
// [Push] uploads by the distribution protocol of OCI. Digests are those of the folder, so that
// the manifests hold whatever registry has the images.
//
// [BuildEarlier] builds the images of an earlier version, for the tests of an upgrade.
package release
