package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
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
	// Objects are the files with the objects, in the order in which they are made.
	Objects []string
}

// Bootstrap makes the first objects of a cluster. An object that is there
// already is left as it is. A kind that was made just before may take a moment to be
// served: Bootstrap waits for it.
func Bootstrap(ctx context.Context, c BootstrapConfig) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	for _, file := range c.Objects {
		objects, err := readObjects(file)
		if err != nil {
			return err
		}
		for _, o := range objects {
			for {
				err := create(ctx, client, c.Server+o.Path, o.Object)
				if err == nil {
					break
				}
				if !errors.Is(err, errNotServed) {
					return err
				}
				time.Sleep(poll)
			}
		}
	}
	return nil
}

// object is an object and the path that it is created at.
type object struct {
	Path   string
	Object json.RawMessage
}

func readObjects(file string) ([]object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []object
	if err := json.Unmarshal(data, &objects); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return objects, nil
}

// errNotServed is in the error for a path that the API server does not know.
var errNotServed = errors.New("not served")

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
	if resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("create at %s: %w: %s", url, errNotServed, body)
	}
	return fmt.Errorf("create at %s: %s: %s", url, resp.Status, body)
}
