package review

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// jwt is a token with the claims, signed by no one.
func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestClaimsOfATokenAreWhatItSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, token string
		want        Claims
		ok          bool
	}{
		{"of a pod", jwt(`{"sub":"system:serviceaccount:a:b","aud":["x","y"],"exp":100,"kubernetes.io":{"pod":{"name":"p"}}}`),
			Claims{Subject: "system:serviceaccount:a:b", Audiences: []string{"x", "y"}, Pod: "p", Expires: time.Unix(100, 0)}, true},
		{"one audience", jwt(`{"aud":"x"}`), Claims{Audiences: []string{"x"}}, true},
		{"a part of a second", jwt(`{"exp":100.5}`), Claims{Expires: time.Unix(100, 0)}, true},
		{"an end before all time", jwt(`{"exp":-1}`), Claims{}, true},
		{"an end after all time", jwt(`{"exp":1e300}`), Claims{}, true},
		{"an end that is no number", jwt(`{"exp":"100"}`), Claims{}, false},
		{"no claims", jwt(`[]`), Claims{}, false},
		{"two parts", "e30.e30", Claims{}, false},
		{"four parts", "e30.e30.e30.e30", Claims{}, false},
		{"not base64", "e30.{}.e30", Claims{}, false},
		{"opaque", "secret", Claims{}, false},
	} {
		got, ok := ClaimsOf(tt.token)
		require.Equal(t, tt.ok, ok, tt.name)
		require.Equal(t, tt.want, got, tt.name)
	}
}
