package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	// The plugins that a cluster's DNS server needs, and no other.
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

// runCoreDNS serves the cluster's names, as CoreDNS does in every cluster.
// Directives are the order in which plugins see a query.
func runCoreDNS() {
	dnsserver.Directives = []string{"reload", "ready", "health", "errors", "cache", "kubernetes"}
	coremain.Run()
}
