// Command metricgen writes docs/metrics.md: the metrics that Podvisor serves, from the tables
// that they are served by, and the alerts, from the rules in manifests/monitoring. Its tests
// compare both with those of KubeVirt, and require that rules and dashboards read only what is
// served.
package main
