// Package metrics turns what is known of the VMIs of a node into series, as dashboards
// written for KubeVirt know them.
//
// [Of] is the main function. A metric is an entry of a table (table.go), and reads a number of
// launcher/protocol's statistics. Each series has the labels of its VMI (label.go): node,
// namespace, name, and a column for each label of the VMI.
//
// It computes; it touches nothing. handler/scrape asks the launchers and serves the
// series.
//
// Trap: statistics are a tenant's. A series has no label that a launcher chooses, beside words
// from a list, and numbers and names that the VMI's spec has. The labels of file systems are
// the guest's own, and there are few of those.
package metrics
