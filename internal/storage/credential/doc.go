// Package credential computes what the access credentials of a VMI put into its
// guest: SSH public keys and passwords, which are in Secrets.
//
// [Part] is what the launcher pod mounts, [Seed] the keys that cloud-init installs,
// and [ByAgent] the keys and passwords that the guest's agent writes. The content of
// the Secrets is an argument, [Contents]: it is read in the pod, and by nothing else.
// The package computes; it touches nothing.
//
// Traps: no error, no fault and no text of a value of this package contains what is in
// a Secret. Whoever writes a Secret decides how often the agent is asked, and with what:
// see [MaxUsers], [MaxKeys], [MaxKey] and [MaxPassword].
package credential
