package dhcp

import (
	"net/netip"
	"slices"
	"strings"
)

// Resolver is how names are looked up: what a pod has in its resolv.conf and a
// guest gets by DHCP.
type Resolver struct {
	// Nameservers are the servers to ask, the preferred one first.
	Nameservers []netip.Addr
	// Search are the domains in which a short name is looked up, in order.
	Search []string
}

// ParseResolvConf reads a resolv.conf. Like the resolver of the C library it
// ignores what it does not understand, and takes the last of several search
// lists. Servers on the loopback are left out: a guest has none there.
func ParseResolvConf(data []byte) Resolver {
	var r Resolver
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "nameserver":
			a, err := netip.ParseAddr(words[1])
			a = a.Unmap()
			if err == nil && !a.IsLoopback() && !a.IsUnspecified() && a.Zone() == "" && !slices.Contains(r.Nameservers, a) {
				r.Nameservers = append(r.Nameservers, a)
			}
		case "search", "domain":
			r.Search = domains(words[1:])
		}
	}
	return r
}

func domains(words []string) []string {
	var out []string
	for _, w := range words {
		if w = strings.TrimSuffix(w, "."); isDomain(w) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// isDomain says that a name can be sent as one. Names with an underscore are
// valid: some clusters have them.
func isDomain(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return false
		}
	}
	return true
}

// under is the resolver of a guest with a subdomain: its own domain is searched
// first. The first domain of a pod in a cluster is the one of its namespace.
func (r Resolver) under(subdomain string) Resolver {
	if subdomain == "" || len(r.Search) == 0 {
		return r
	}
	own := subdomain + "." + r.Search[0]
	if !isDomain(own) || slices.Contains(r.Search, own) {
		return r
	}
	r.Search = append([]string{own}, r.Search...)
	return r
}
