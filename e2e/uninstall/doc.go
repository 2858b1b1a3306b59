// Package uninstall tests what is left of Podvisor when it is deleted, with a
// Kubernetes of its own: no other test could run in it.
package uninstall
