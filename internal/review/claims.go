package review

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

const (
	accounts = "system:serviceaccount:" // begins the names of service accounts
	// clocks is how far the clocks of the API server and of this process may differ. The API
	// server itself takes tokens for a minute more.
	clocks = 5 * time.Minute
)

// Claims are what a token of a service account says about itself. Nothing is believed: whoever
// writes a token writes this too. But a token that Kubernetes issued says what it is, so what
// says otherwise needs no review.
type Claims struct {
	// Subject is whose token it is, as system:serviceaccount:kubevirt:virt-controller.
	Subject string
	// Audiences are for whom it is.
	Audiences []string
	// Pod is the name of the pod that it is bound to. Empty: it is bound to none.
	Pod string
	// Expires is when it is over. Zero: it does not say.
	Expires time.Time
}

// ClaimsOf is what the token says about itself. ok is false if it is no JSON Web Token with the
// claims of Kubernetes. It may be one of another authenticator then.
func ClaimsOf(token string) (c Claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Claims{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Claims{}, false
	}
	var said struct {
		Subject    string    `json:"sub"`
		Audience   audiences `json:"aud"`
		Expires    float64   `json:"exp"`
		Kubernetes struct {
			Pod struct {
				Name string `json:"name"`
			} `json:"pod"`
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(text, &said) != nil {
		return Claims{}, false
	}
	c = Claims{Subject: said.Subject, Audiences: said.Audience, Pod: said.Kubernetes.Pod.Name}
	if said.Expires > 0 && said.Expires < 1<<40 { // later ones do not end
		c.Expires = time.Unix(int64(said.Expires), 0)
	}
	return c, true
}

// over says whether it is a token of a service account that is over. Tokens of others are for
// the API server to judge.
func (c Claims) over(now time.Time) bool {
	return strings.HasPrefix(c.Subject, accounts) && !c.Expires.IsZero() && now.Sub(c.Expires) > clocks
}

// audiences are those of a token: one, or a list.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}
