// Package e2e tests Podvisor as its users meet it: in a real Kubernetes with two
// nodes, installed from its manifests and images, with guests that boot.
//
// The cluster is made by package cluster, the images by package images. The
// tests are in this package; `go test` here needs root.
package e2e
