// Package probe observes what is at a path that may be a disk.
//
// [Path] returns the facts of one path and changes nothing. What follows from a
// fact is decided by storage/volume and launcher/domain. It is an edge: it touches
// files.
package probe
