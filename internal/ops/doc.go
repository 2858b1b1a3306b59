// Package ops is what every component has beside its work: a log, a health and
// metrics endpoint, and a connection to the API server whose requests are
// counted.
//
// [Serve] answers /healthz, /readyz and /metrics over HTTPS, and what else a
// component serves. [Kubernetes] is the configuration of an API client, whose
// requests [CountRequests] counts: an API write is a scarce resource of a cluster.
// [ReturnMemory] returns the memory of a burst of work to the host.
//
// The package touches the network and the API client's configuration. It
// decides nothing.
package ops
