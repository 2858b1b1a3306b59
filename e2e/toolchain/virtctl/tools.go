//go:build tools

// Package virtctl pins the virtctl that the tests run: the build finds it by its import
// path, in the module as the Go module proxy has it.
package virtctl

import _ "kubevirt.io/kubevirt/cmd/virtctl"
