// Package scale measures what many VMIs and VMs cost, on a real API server with simulated nodes.
//
// The API server, etcd and virt-controller are real programs, with the manifests of Podvisor in
// force: webhooks, policies and definitions. Nodes and launchers are those of package simulate.
// Processor time is that of the processes and requests are those in the audit log, so that what
// else the host does changes neither; the seconds it does change.
package scale
