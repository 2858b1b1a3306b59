// Package config says what a cluster's configuration means for the components.
//
// [Resolve] turns a KubeVirt into a [Config], which has a part for each thing
// that depends on it: how VMIs are completed and validated, how their pods are
// rendered, what launchers get, and how much each component may ask and
// log. [NextState] says which configuration is in force, given the objects that there
// are: a KubeVirt that cannot be decoded or used leaves the last good one in force,
// which its status keeps, so that all components use the same one, also those that
// start later. [Report] is the status that says so.
//
// The package computes; it touches nothing. Package vmi/config/live keeps it up to
// date in a process.
//
// Traps: the zero [Config] is the default one, so every field's zero value means
// a default, not nothing.
package config
