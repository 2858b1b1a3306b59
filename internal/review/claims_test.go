package review

import (
	"encoding/base64"
	"fmt"
	"testing"
	"testing/synctest"
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

func TestATokenThatSaysThatItIsOverHasNoReview(t *testing.T) {
	for _, tt := range []struct {
		name, claims string // with the time of the end
		over         time.Duration
		reviewed     bool
	}{
		{"a token that counts", `{"sub":"system:serviceaccount:a:b","exp":%d}`, -time.Minute, true},
		{"one that is over", `{"sub":"system:serviceaccount:a:b","exp":%d}`, clocks + time.Second, false},
		{"one that is over by another clock only", `{"sub":"system:serviceaccount:a:b","exp":%d}`, clocks, true},
		{"one without an end", `{"sub":"system:serviceaccount:a:b","iat":%d}`, time.Hour, true},
		{"one of another authenticator", `{"sub":"someone","exp":%d}`, time.Hour, true},
		{"none that Kubernetes writes", `%d`, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI()
				require.Equal(t, "401 "+noToken.text, newScraped(a).get(jwt(fmt.Sprintf(tt.claims, time.Now().Add(-tt.over).Unix())), own))
				require.Equal(t, tt.reviewed, a.tokens.Load() == 1)
			})
		})
	}
}
