package frontproxy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// ErrUnauthenticated is wrapped by the error of a request whose caller is not known.
var ErrUnauthenticated = errors.New("request is not authenticated")

// User is the caller, as the aggregator names it.
type User struct {
	Name   string
	UID    string
	Groups []string
	// Extra are further facts about the user, by name in small letters.
	Extra map[string][]string
}

// trusted says which certificates are those of the aggregator, and in which headers it
// names users. It is not changed once it is made.
type trusted struct {
	roots *x509.CertPool
	// names are the common names that the certificate may have. Empty: any.
	names []string
	// Headers, in their canonical form.
	users, uids, groups, extras []string
}

// parseTrust reads the data of the ConfigMap extension-apiserver-authentication. An error
// says which key is missing or malformed.
func parseTrust(data map[string]string) (*trusted, error) {
	t := trusted{roots: x509.NewCertPool()}
	const authority = "requestheader-client-ca-file"
	if !t.roots.AppendCertsFromPEM([]byte(data[authority])) {
		return nil, fmt.Errorf("%s has no certificate: the API server needs --requestheader-client-ca-file", authority)
	}
	for _, l := range []struct {
		key      string
		into     *[]string
		required bool
		header   bool
	}{
		{"requestheader-allowed-names", &t.names, false, false},
		{"requestheader-username-headers", &t.users, true, true},
		{"requestheader-group-headers", &t.groups, true, true},
		{"requestheader-extra-headers-prefix", &t.extras, false, true},
		{"requestheader-uid-headers", &t.uids, false, true},
	} {
		if s := data[l.key]; s != "" {
			if err := json.Unmarshal([]byte(s), l.into); err != nil {
				return nil, fmt.Errorf("%s is no list of strings: %w", l.key, err)
			}
		}
		if l.required && len(*l.into) == 0 {
			return nil, fmt.Errorf("%s is empty: the API server needs its --requestheader flags", l.key)
		}
		if l.header {
			for i, h := range *l.into {
				(*l.into)[i] = textproto.CanonicalMIMEHeaderKey(h)
			}
		}
	}
	return &t, nil
}

// Verify says whether the other end of the connection is the aggregator.
func (t *trusted) Verify(c *tls.ConnectionState) error {
	if c == nil || len(c.PeerCertificates) == 0 {
		return fmt.Errorf("%w: it has no client certificate; send it to the API server", ErrUnauthenticated)
	}
	between := x509.NewCertPool()
	for _, p := range c.PeerCertificates[1:] {
		between.AddCert(p)
	}
	own := c.PeerCertificates[0]
	if _, err := own.Verify(x509.VerifyOptions{Roots: t.roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return fmt.Errorf("%w: the client certificate is not of the aggregator: %w", ErrUnauthenticated, err)
	}
	if len(t.names) > 0 && !slices.Contains(t.names, own.Subject.CommonName) {
		return fmt.Errorf("%w: the client certificate of %q is not of the aggregator", ErrUnauthenticated, own.Subject.CommonName)
	}
	return nil
}

// User is the user that the headers name. It is to be asked for only where [trusted.Verify]
// has no error. A header that names the user twice is refused.
func (t *trusted) User(h http.Header) (User, error) {
	name, err := one(h, t.users)
	if err != nil {
		return User{}, err
	}
	uid, err := one(h, t.uids)
	if err != nil {
		return User{}, err
	}
	u := User{Name: name, UID: uid}
	for _, g := range t.groups {
		if u.Groups = slices.DeleteFunc(slices.Clone(h[g]), func(s string) bool { return s == "" }); len(u.Groups) > 0 {
			break
		}
	}
	switch {
	case u.Name == "":
		return User{}, fmt.Errorf("%w: no header names the user", ErrUnauthenticated)
	case len(u.Groups) == 0:
		return User{}, fmt.Errorf("%w: a valid group header is required for authorization", ErrUnauthenticated)
	}
	if u.Extra, err = t.extra(h); err != nil {
		return User{}, err
	}
	return u, nil
}

// one is the value of the first of the headers that has one.
func one(h http.Header, names []string) (string, error) {
	for _, n := range names {
		switch values := h[n]; {
		case len(values) > 1:
			return "", fmt.Errorf("%w: header %s is there %d times", ErrUnauthenticated, n, len(values))
		case len(values) == 1 && values[0] != "":
			return values[0], nil
		}
	}
	return "", nil
}

func (t *trusted) extra(h http.Header) (map[string][]string, error) {
	var out map[string][]string
	for name, values := range h {
		for _, prefix := range t.extras {
			key, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			key, err := url.PathUnescape(strings.ToLower(key))
			if err != nil {
				return nil, fmt.Errorf("%w: header %s: %w", ErrUnauthenticated, name, err)
			}
			if out == nil {
				out = map[string][]string{}
			}
			out[key] = append(out[key], values...)
			break
		}
	}
	return out, nil
}
