// Package ops is what every component has beside its work: a log, a health and
// metrics endpoint, and a connection to the API server whose requests are
// counted.
//
// [Serve] answers /healthz, /readyz and /metrics over HTTPS, and what else a
// component serves. [Kubernetes] is the configuration of an API client, and
// [CountRequests] the counter that it wears: an API write is a scarce thing, and
// what is not counted grows.
//
// The package touches the network and the API client's configuration. It
// decides nothing.
package ops
