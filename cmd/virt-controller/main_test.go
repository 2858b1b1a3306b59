package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	limit   = time.Minute
	unknown = "the version of the API server is not known yet"
)

func TestHealthIsServedBeforeTheAPIServerAnswers(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !up.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/version":
			_, _ = io.WriteString(w, `{"major":"1","minor":"35"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, server.URL), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-kubeconfig", kubeconfig, "-namespace", "home", "-listen", l.Addr().String(), "-launcher-image", "a"})
	}()
	own := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	get := func(path string) (int, string) {
		resp, err := own.Get("https://" + l.Addr().String() + path)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	require.Eventually(t, func() bool { code, _ := get("/healthz"); return code == http.StatusOK }, limit, 10*time.Millisecond)
	code, body := get("/readyz")
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, body, unknown)
	up.Store(true)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, body := get("/readyz")
		require.NotContains(t, body, unknown)
		require.Contains(t, body, "error", "it answers")
	}, limit, 10*time.Millisecond)
	stop()
	require.NoError(t, <-done)
}
