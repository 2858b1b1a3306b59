package review

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASourceIsAnAddressOrANetworkOfIPv6(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.1.2.3:5": "10.1.2.3", "[::ffff:10.1.2.3]:5": "10.1.2.3", "[2001:db8:1:2:3::9]:5": "2001:db8:1:2::", "[fe80::1%eth0]:5": "fe80::",
	} {
		require.Equal(t, netip.MustParseAddr(want), Source(text))
	}
	require.Equal(t, netip.Addr{}, Source("@"))
}

func TestATokenOfARequest(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x", 8<<10)
	for _, tt := range []struct {
		name    string
		headers []string
		want    string
	}{
		{"none", nil, ""},
		{"a token", []string{"Bearer a.b.c"}, "a.b.c"},
		{"the scheme in small letters", []string{"bearer a"}, "a"},
		{"the longest", []string{"Bearer " + longest}, longest},
		{"a longer one", []string{"Bearer x" + longest}, ""},
		{"two", []string{"Bearer a", "Bearer b"}, ""},
		{"a password", []string{"Basic a"}, ""},
		{"no scheme", []string{"a"}, ""},
		{"nothing after the scheme", []string{"Bearer "}, ""},
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header["Authorization"] = tt.headers
		got, ok := Bearer(r)
		require.Equal(t, tt.want != "", ok, tt.name)
		if ok {
			require.Equal(t, tt.want, got, tt.name)
		}
	}
}
