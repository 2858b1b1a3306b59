// Package live keeps a cluster's configuration up to date in a process.
//
// [New] makes a [Watcher]. While its Run runs, [Watcher.State] is which configuration is
// in force, as package vmi/config decides. The functions given to [Watcher.OnChange] are
// called when it changes. Nothing needs a restart.
//
// A component must not work in a cluster with an installation of KubeVirt itself.
// [Watcher.OtherInstallation] says that there is one, and [Watcher.Alone] runs what must
// not run then.
//
// The package is a controller: it joins the core vmi/config with an informer of KubeVirts.
// Optionally, it has one of the definitions by which an installation of KubeVirt itself is
// recognised. It writes nothing.
//
// Traps: before [Watcher.Known] is true the state is not known, and not the default one.
package live
