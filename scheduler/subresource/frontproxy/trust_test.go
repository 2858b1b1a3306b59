package frontproxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func trust() *trusted {
	return &trusted{users: []string{"X-Remote-User"}, uids: []string{"X-Remote-Uid"}, groups: []string{"X-Remote-Group"}, extras: []string{"X-Remote-Extra-"}}
}

func TestAttackNoHeaderButThoseOfTheTrustNamesAUser(t *testing.T) {
	for name, h := range map[string]http.Header{
		"low lines":         {"X_Remote_User": {"admin"}, "X_remote_group": {"system:masters"}},
		"small letters":     {"x-remote-user": {"admin"}, "x-remote-group": {"system:masters"}},
		"no user":           {"X-Remote-Group": {"system:masters"}},
		"an empty user":     {"X-Remote-User": {""}, "X-Remote-Group": {"system:masters"}},
		"two users":         {"X-Remote-User": {"a", "admin"}, "X-Remote-Group": {"g"}},
		"two UIDs":          {"X-Remote-User": {"a"}, "X-Remote-Uid": {"1", "2"}, "X-Remote-Group": {"g"}},
		"no group":          {"X-Remote-User": {"a"}},
		"an empty group":    {"X-Remote-User": {"a"}, "X-Remote-Group": {""}},
		"half an escape":    {"X-Remote-User": {"a"}, "X-Remote-Group": {"g"}, "X-Remote-Extra-A%2": {"b"}},
		"an impersonation":  {"Impersonate-User": {"admin"}, "Impersonate-Group": {"system:masters"}},
		"an authentication": {"Authorization": {"Bearer admin"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trust().User(h)
			require.ErrorIs(t, err, ErrUnauthenticated)
		})
	}
}

// FuzzUser has the headers as lines, "name: value".
func FuzzUser(f *testing.F) {
	f.Add("X-Remote-User: a\nX-Remote-Group: g\nX-Remote-Extra-Scopes%2fa: b")
	f.Add("X-Remote-User: a\nX-Remote-User: b")
	f.Add("X-Remote-User: a\nX-Remote-Group: g\nX-Remote-Extra-A%2: b")
	f.Add("X_Remote_User: a\nX-Remote-Group: ")
	f.Fuzz(func(t *testing.T, lines string) {
		h := http.Header{}
		for line := range strings.SplitSeq(lines, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			h[name] = append(h[name], value) // not canonical, as a server has it from HTTP/1 with odd names
		}
		u, err := trust().User(h)
		if err != nil {
			require.ErrorIs(t, err, ErrUnauthenticated)
			require.Empty(t, u.Name)
			return
		}
		require.Equal(t, []string{u.Name}, h["X-Remote-User"])
		require.NotEmpty(t, u.Name)
		require.NotEmpty(t, u.Groups)
		require.NotContains(t, u.Groups, "")
		for _, g := range u.Groups {
			require.Contains(t, h["X-Remote-Group"], g)
		}
		for key, values := range u.Extra {
			require.Equal(t, strings.ToLower(key), key)
			require.NotEmpty(t, values)
		}
	})
}

func FuzzParseTrust(f *testing.F) {
	f.Add("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----", `["front-proxy-client"]`, `["X-Remote-User"]`, `["X-Remote-Group"]`)
	f.Add("", "[]", "null", "{}")
	f.Fuzz(func(t *testing.T, ca, names, users, groups string) {
		p, err := parseTrust(map[string]string{"requestheader-client-ca-file": ca, "requestheader-allowed-names": names,
			"requestheader-username-headers": users, "requestheader-group-headers": groups})
		if err != nil {
			require.Nil(t, p)
			return
		}
		var want []string
		require.NoError(t, json.Unmarshal([]byte(users), &want))
		require.Len(t, p.users, len(want))
		require.NotEmpty(t, p.groups)
		require.Error(t, p.Verify(nil))
	})
}
