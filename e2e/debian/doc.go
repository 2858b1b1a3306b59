// Package debian installs the Debian packages that a build needs.
//
// [Ensure] looks which packages are there, installs the others, and where it
// cannot, because it is not root or the host is no Debian, says exactly what
// is missing and how to get it. It removes nothing and upgrades nothing.
//
// It is an edge: it runs dpkg-query and apt-get.
package debian
