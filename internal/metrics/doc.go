// Package metrics is the metrics of loops: their work queues, how many objects cannot be
// decoded, and whether this process leads. It also makes what Prometheus takes of the
// series of internal/series.
//
// What runs registers its collectors by [Register] when it begins, and takes them back
// when it ends. The package touches the registry that it is given and nothing else.
package metrics
