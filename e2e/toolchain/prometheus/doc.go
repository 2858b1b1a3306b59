// Package prometheus pins the Prometheus that reads the metrics of Podvisor in tests, and
// evaluates the rules of manifests/monitoring by its engine. Nothing imports it;
// [toolchain.Prometheus] builds the program by its import path.
package prometheus
