// Package toolchain builds the programs of a local cluster from Go modules and
// keeps them in a cache.
//
// [Build] makes what is missing and says where everything is: one combined
// Kubernetes binary (API server, controller manager, scheduler, kubelet, proxy,
// kubectl, etcd and CoreDNS, chosen by the name it is called with), containerd
// with its shim and ctr, runc, the CNI plugins, Multus, the program that gives claims
// their volumes (csi), the one that makes NetworkPolicies hold (policy), and the image of
// the pause container. Nothing is downloaded prebuilt. The first build takes about ten
// minutes on two cores and says how far it is; a build that finds everything takes
// milliseconds.
//
// [Virtctl] does the same for the client of KubeVirt, [Helm] for Helm, [Prometheus] for Prometheus,
// and [OldestAPIServer] for the API server of Kubernetes 1.32, for the tests that run them.
//
// Versions are those of the nested modules kubernetes/, runtime/, csi/, policy/, virtctl/, helm/,
// prometheus/ and kubernetes-1.32/ beside this file. Each of the parts is in the cache under a name made of its
// version and a digest of the module's files and the build flags, so that a
// change builds anew and two checkouts of one version share.
//
// It is an edge: it runs the go command. A part appears in the cache by one
// rename, under a lock; a killed build leaves nothing that is mistaken for a
// result.
//
// Traps: the packages of nested modules cannot be embedded, so the sources must
// be there when something is built or looked up (see [Source]). runc needs cgo,
// libseccomp and the build tag seccomp; without it every normal pod fails.
package toolchain
