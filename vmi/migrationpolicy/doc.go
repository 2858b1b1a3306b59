// Package migrationpolicy is the model of the API group migrations.kubevirt.io in
// version v1alpha1: [MigrationPolicy], the settings of the migrations of some VMIs.
//
// It holds data and the functions that read it, and imports package vmi only. Its kind is
// a row of the table in vmi/kinds, and clients of it are made by its definition
// ([MigrationPolicies]).
//
// Which policy a VMI has, [Of] says. Trap: a policy without spec.selectors is for no VMI,
// one with empty selectors for all.
package migrationpolicy

// +kubebuilder:object:generate=true
// +groupName=migrations.kubevirt.io
// +versionName=v1alpha1
