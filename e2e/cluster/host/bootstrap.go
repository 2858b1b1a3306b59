package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// BootstrapConfig says which objects to make where.
type BootstrapConfig struct {
	// Server is the URL of the API server.
	Server string
	// CA, Cert and Key are files: the authority and the administrator's identity.
	CA, Cert, Key string
	// Objects is the file with the objects.
	Objects string
}

// Bootstrap makes the first objects of a cluster. An object that is there
// already is left as it is.
func Bootstrap(ctx context.Context, c BootstrapConfig) error {
	data, err := os.ReadFile(c.Objects)
	if err != nil {
		return err
	}
	var objects []struct {
		Path   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(data, &objects); err != nil {
		return fmt.Errorf("read %s: %w", c.Objects, err)
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := create(ctx, client, c.Server+o.Path, o.Object); err != nil {
			return err
		}
	}
	return nil
}

func (c BootstrapConfig) client() (*http.Client, error) {
	roots, err := readCA(c.CA)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: config}}, nil
}

func create(ctx context.Context, client *http.Client, url string, object []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(object))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusCreated || resp.StatusCode == http.StatusConflict {
		return nil
	}
	return fmt.Errorf("create at %s: %s: %s", url, resp.Status, body)
}
