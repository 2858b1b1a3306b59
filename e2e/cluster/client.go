package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// client asks the API server. The few questions here are not worth a client library.
type client struct {
	http   *http.Client
	server string
}

func (c *Cluster) client() (*client, error) {
	pki := func(name string) string { return filepath.Join(c.config.state(), "pki", name) }
	port, err := os.ReadFile(c.config.portFile())
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(pki("admin.crt"), pki("admin.key"))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, DisableKeepAlives: true,
	}
	return &client{
		http:   &http.Client{Transport: transport, Timeout: 5 * time.Second},
		server: "https://127.0.0.1:" + strings.TrimSpace(string(port)),
	}, nil
}

// get reads the object at path into v, if v is not nil, and returns the status.
func (c *client) get(ctx context.Context, path string, v any) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return 0, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, fmt.Errorf("%s: %s: %s", path, resp.Status, strings.TrimSpace(string(body)))
	}
	if v == nil {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.Unmarshal(body, v)
}
