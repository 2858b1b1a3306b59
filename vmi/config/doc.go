// Package config says what a cluster's configuration means for the components.
//
// [Resolve] turns a KubeVirt into a [Config]. It has a part for how VMIs are completed and
// validated, how their pods are rendered, and what launchers get. It also says how much
// each component may request and log. [NextState] says which configuration is in force,
// given the objects that there are. A KubeVirt that cannot be decoded or used leaves the
// last good one in force. Its status keeps that, so that all components use the same one,
// even those that start later. [Report] is the status that says so.
//
// The package computes; it touches nothing. Package vmi/config/live keeps it up to date in
// a process.
//
// Traps: the zero [Config] is the default one, so every field's zero value means a
// default, not nothing.
package config
