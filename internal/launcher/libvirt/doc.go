// Package libvirt holds the calls to a libvirt daemon that a launcher needs.
//
// [Dial] connects to the private daemon of one launcher. A [Connection] creates,
// describes, suspends, resumes, resets, shuts down, migrates and destroys a domain,
// changes its devices, counts what it uses, asks the agent in its guest, and lists the
// machine types; [Connection.Events] returns what happens to a domain. Events need a
// connection of their own, because the library reads nothing else while an event is
// not taken; so does a call that takes long, such as [Connection.MigratePerform].
//
// The package decides nothing and keeps no state of domains. It is an edge: it
// touches the daemon's socket.
//
// Traps: a call to libvirt cannot be taken back. When its context ends the
// method returns, and the daemon may still execute it. A transient domain is
// unknown to the daemon as soon as it has ended: how it ended is in the event
// alone. What an agent answers is the guest's text: anything, and as often as the
// guest likes.
package libvirt
