// Package frame makes the frames that virt-handler sends for a guest that has moved to
// another pod.
//
// [Announcements] make known to the networks of the new pod where the guest is.
// [Probes] make the other ends of the old pod's connections send something, which the
// old pod then refuses. Package internal/network/link sends them.
//
// It computes; it touches nothing.
package frame
