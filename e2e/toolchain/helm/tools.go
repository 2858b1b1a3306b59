//go:build tools

// Package helm pins the Helm that the tests run: the build finds it by its import path,
// in the module as the Go module proxy has it.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
