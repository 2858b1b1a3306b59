// Package series describes metrics in tables, and computes their series.
//
// A table is a slice of [Metric], each of which reads its values of one observation. [Of]
// is the main function: it returns the series of an observation. What serves metrics
// and what documents them read the same tables.
//
// It computes; it touches nothing. internal/metrics makes of a [Series] what Prometheus
// takes.
package series
