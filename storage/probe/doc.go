// Package probe tells the facts of a disk's file or device.
//
// [Path] looks at one path and changes nothing. What to do about a fact is
// decided by launcher/domain. It is an edge: it touches files.
package probe
