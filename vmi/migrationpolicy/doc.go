// Package migrationpolicy is the model of the API group migrations.kubevirt.io in
// version v1alpha1: [MigrationPolicy], the settings of the migrations of some VMIs.
//
// It holds data and the functions that read it, and imports package vmi only. Its kind is
// a row of the table in vmi/kinds, and clients of it are made by its definition
// ([MigrationPolicies]).
//
// Trap: the kind has no effect yet, because VMIs do not migrate, and no API server with
// Podvisor's manifests has it.
package migrationpolicy

// +kubebuilder:object:generate=true
// +groupName=migrations.kubevirt.io
// +versionName=v1alpha1
