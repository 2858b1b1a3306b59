// Package monitoring has a real Prometheus read the metrics of Podvisor and evaluate its rules,
// for tests.
//
// [ReadRules] reads the rules of manifests/monitoring. [Start] runs the program of
// [toolchain.Prometheus] with them, whose answers [Server.Query] returns.
package monitoring
