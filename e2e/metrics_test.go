package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"

	"github.com/podvisor/podvisor/e2e/install"
)

// applyScrape makes the account that reads metrics.
var applyScrape = sync.OnceValue(func() error {
	_, err := world.kubectl.Run(context.Background(), "apply", "--server-side", "-k", "../manifests/monitoring/scrape")
	return err
})

// metrics are those of a pod of Podvisor, read as Prometheus reads them: with the token of the
// account of manifests/monitoring. The API server's proxy of pods passes no tokens on.
func (s space) metrics(pod string) (string, error) {
	if err := applyScrape(); err != nil {
		return "", err
	}
	r, err := world.kube.CoreV1().ServiceAccounts(install.Namespace).CreateToken(s.t.Context(), "podvisor-metrics", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	to := world.kube.CoreV1().RESTClient().Post().Namespace(install.Namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialer(to, world.config)
	if err != nil {
		return "", err
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:8443"}, stop, ready, nil, io.Discard)
	if err != nil {
		return "", err
	}
	done := make(chan error, 1)
	go func() { done <- f.ForwardPorts() }()
	defer func() { close(stop); <-done }()
	select {
	case <-ready:
	case err := <-done:
		done <- err
		return "", fmt.Errorf("forward a port to %s: %w", pod, err)
	}
	ports, err := f.GetPorts()
	if err != nil {
		return "", err
	}
	return scrape(s, fmt.Sprintf("https://127.0.0.1:%d/metrics", ports[0].Local), r.Status.Token)
}

// scrape gets a page with a token, on a connection of its own.
func scrape(s space, url, token string) (string, error) {
	c := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}
