package admission

import (
	"crypto/subtle"
	"net/http"
)

// AtSecretPaths are the webhooks, which are given by their paths, for the server: each
// answers at its path, a slash and the token only, and sees a request for its path.
// Only the API server knows the token: every pod in the cluster's network can connect,
// and a review costs memory and has effects. Of a request for any other path nothing
// but the header is read; so of all requests while the token is empty.
func (s *Serving) AtSecretPaths(webhooks map[string]http.Handler) map[string]http.Handler {
	return atSecretPaths(s.Token, webhooks)
}

func atSecretPaths(token func() string, webhooks map[string]http.Handler) map[string]http.Handler {
	out := map[string]http.Handler{}
	for at, h := range webhooks {
		out[at+"/"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			t := token()
			if t == "" || subtle.ConstantTimeCompare([]byte(r.URL.Path), []byte(at+"/"+t)) != 1 {
				http.NotFound(w, r)
				return
			}
			u := *r.URL
			u.Path = at
			r = r.WithContext(r.Context())
			r.URL = &u
			h.ServeHTTP(w, r)
		})
	}
	return out
}
