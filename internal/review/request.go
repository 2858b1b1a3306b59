package review

import (
	"net/http"
	"net/netip"
	"strings"
)

// longestToken is the longest token that is reviewed, in bytes.
const longestToken = 8 << 10

// Bearer is the token of a request. ok is false if it has none, more than one, or one of more
// than 8 KiB.
func Bearer(r *http.Request) (token string, ok bool) {
	all := r.Header.Values("Authorization")
	if len(all) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(all[0], " ")
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= longestToken
}

// Source is where a connection comes from, by its remote address with the port: the address,
// or of an IPv6 address the network, of which one pod can have every address. It is zero if
// it is no such address.
func Source(remote string) netip.Addr {
	p, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	from := p.Addr().Unmap().WithZone("")
	if from.Is6() {
		n, _ := from.Prefix(64) // 64 is in range
		return n.Addr()
	}
	return from
}
