// Package monitoring has a real Prometheus read the metrics of Podvisor and evaluate its rules,
// for tests.
//
// [ReadRules] reads the rules of manifests/monitoring, and [ReadScrape] the scrape configuration
// of docs/monitoring.md. [Start] runs the program of [toolchain.Prometheus] with them.
// [Server.Query] returns what it answers.
//
// [toolchain.Prometheus]: https://pkg.go.dev/github.com/podvisor/podvisor/e2e/toolchain#Prometheus
package monitoring
