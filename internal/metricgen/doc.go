// Command metricgen writes docs/metrics.md: the metrics that Podvisor serves, from the tables
// that they are served by. Its tests compare them with those of KubeVirt.
package main
