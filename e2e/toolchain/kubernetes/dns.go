package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	// The plugins that a cluster's DNS server needs, and no other. There is no
	// cache: the kubernetes plugin answers from memory, and a cached "no such
	// name" would hide a Service for half a minute after it was made.
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

// runCoreDNS serves the cluster's names, as CoreDNS does in every cluster.
// Directives are the order in which plugins see a query.
func runCoreDNS() {
	dnsserver.Directives = []string{"bind", "ready", "errors", "kubernetes", "template"}
	coremain.Run()
}
