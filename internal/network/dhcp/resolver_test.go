package dhcp

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseResolvConf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     Resolver
	}{
		{"an empty file", "", Resolver{}},
		{
			"the file of a pod",
			"search default.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n",
			Resolver{[]netip.Addr{netip.MustParseAddr("10.96.0.10")}, []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"}},
		},
		{
			"the last of several lists counts, and a domain is a list of one",
			"search a.example b.example\ndomain c.example.\n",
			Resolver{nil, []string{"c.example"}},
		},
		{
			"servers that a guest cannot reach, and twice the same, are left out",
			"nameserver 127.0.0.53\nnameserver ::1\nnameserver fe80::1%eth0\nnameserver 0.0.0.0\nnameserver fd00::a\nnameserver 10.0.0.1\nnameserver 10.0.0.1\n",
			Resolver{[]netip.Addr{netip.MustParseAddr("fd00::a"), netip.MustParseAddr("10.0.0.1")}, nil},
		},
		{
			"what cannot be understood is ignored",
			"# nameserver 10.0.0.9\n; comment\nnameserver\nnameserver ten\nnonsense 1 2\nsearch . -ok_ bad..name " + strings.Repeat("x", 64) + "\n\tnameserver\t10.0.0.1  # trailing\r\n",
			Resolver{[]netip.Addr{netip.MustParseAddr("10.0.0.1")}, []string{"-ok_"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, ParseResolvConf([]byte(tt.in)))
		})
	}
}

func TestASubdomainIsUnderTheNamespace(t *testing.T) {
	t.Parallel()
	r := Resolver{Search: []string{"default.svc.cluster.local", "cluster.local"}}
	require.Equal(t, []string{"farm.default.svc.cluster.local", "default.svc.cluster.local", "cluster.local"}, r.under("farm").Search)
	require.Equal(t, r, r.under(""))
	require.Equal(t, Resolver{}, Resolver{}.under("farm"))
	require.Equal(t, r.under("farm"), r.under("farm").under(""), "nothing is added twice")
	require.Equal(t, []string{"default.svc.cluster.local", "cluster.local"}, r.Search, "the input is not changed")
}

func FuzzParseResolvConf(f *testing.F) {
	f.Add("search default.svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n")
	f.Fuzz(func(t *testing.T, in string) {
		r := ParseResolvConf([]byte(in))
		for _, a := range r.Nameservers {
			if !a.IsValid() || a.IsLoopback() {
				t.Fatalf("the server %s", a)
			}
		}
		for _, s := range r.Search {
			if !isDomain(s) {
				t.Fatalf("the domain %q", s)
			}
		}
	})
}
