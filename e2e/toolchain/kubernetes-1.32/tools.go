//go:build tools

// Package kubernetes pins the API server of the oldest Kubernetes that the manifests are for:
// the build finds it by its import path, in the module as the Go module proxy has it.
package kubernetes

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
