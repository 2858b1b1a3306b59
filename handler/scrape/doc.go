// Package scrape serves the metrics of a node's VMIs to Prometheus.
//
// [Collector] asks the launchers when metrics are read, and never before. It asks several
// at a time, each for a short time, and all of them for no longer than a scrape waits. A
// launcher that does not answer costs its own series, and is asked after the others in the
// next scrape. Two scrapes that follow each other closely share the answers. A VMI that is
// gone has no series, also not from an answer that is shared.
//
// What the series are it does not know: internal/handler/metrics does. It is an edge: it
// touches the registry of Prometheus.
//
// Trap: a series that the registry does not accept would fail the scrape of the node. One
// that is not valid is left out.
package scrape
