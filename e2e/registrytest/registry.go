// Package registrytest runs a registry of images for tests, the program of
// github.com/distribution/distribution, which asks who it is.
//
// [New] starts one. It serves without TLS at a port of the loopback interface, where clients
// take that. [Registry.Serve] serves the same images at the same port in another network
// namespace, as that of a node, so that an image has one name everywhere.
//
// It is an edge: it builds and runs a program.
package registrytest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"sigs.k8s.io/yaml"
)

// Registry is a registry with one user. It is a keychain with the credentials of that.
type Registry struct {
	// Host is the host and port in the names of its images.
	Host           string
	User, Password string

	// dir has its program, configuration and images.
	dir string
}

// New builds the registry, whose module is the folder source, and serves it on this host
// until the test ends.
func New(t testing.TB, source string) Registry {
	t.Helper()
	r := Registry{User: "releaser", dir: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", r.file("registry"), ".")
	build.Dir = source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	secret := make([]byte, 16)
	_, _ = rand.Read(secret)
	r.Password = hex.EncodeToString(secret)
	hash, err := bcrypt.GenerateFromPassword([]byte(r.Password), bcrypt.MinCost)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(r.file("htpasswd"), []byte(r.User+":"+string(hash)+"\n"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.Host = l.Addr().String()
	require.NoError(t, l.Close())
	conf, err := yaml.Marshal(map[string]any{
		"version": 0.1, "log": map[string]any{"level": "error", "accesslog": map[string]any{"disabled": true}},
		"storage": map[string]any{"filesystem": map[string]any{"rootdirectory": r.file("storage")}},
		"http":    map[string]any{"addr": r.Host, "secret": r.Password},
		"auth":    map[string]any{"htpasswd": map[string]any{"realm": "test", "path": r.file("htpasswd")}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(r.file("config.yaml"), conf, 0o600))
	r.Serve(t, exec.CommandContext)
	return r
}

func (r Registry) file(name string) string { return filepath.Join(r.dir, name) }

// Serve serves the registry by a command, which may run in another network namespace,
// until the test ends. It returns when the registry answers there.
func (r Registry) Serve(t testing.TB, command func(ctx context.Context, name string, args ...string) *exec.Cmd) {
	t.Helper()
	// A kill of nsenter, which is the command of a node, leaves its child.
	run := command(context.WithoutCancel(t.Context()), "setpriv", "--pdeathsig", "KILL", r.file("registry"), "serve", r.file("config.yaml"))
	if run.Env == nil {
		run.Env = os.Environ()
	}
	run.Env = append(run.Env, "OTEL_TRACES_EXPORTER=none")
	log, err := os.CreateTemp(r.dir, "log")
	require.NoError(t, err)
	run.Stdout, run.Stderr = log, log
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Log(string(said))
		}
	})
	require.Eventually(t, func() bool {
		host, port, err := net.SplitHostPort(r.Host)
		return err == nil && command(t.Context(), "bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port).Run() == nil
	}, 2*time.Minute, 50*time.Millisecond, "the registry answers")
}

// Resolve returns the credentials of the registry, and none of others.
func (r Registry) Resolve(to authn.Resource) (authn.Authenticator, error) {
	if to.RegistryStr() != r.Host {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(authn.AuthConfig{Username: r.User, Password: r.Password}), nil
}

// Login is what a program such as "docker login" stores of the credentials, and what a
// Secret of the type kubernetes.io/dockerconfigjson holds.
func (r Registry) Login() []byte {
	b, _ := json.Marshal(map[string]any{"auths": map[string]any{r.Host: map[string]string{"username": r.User, "password": r.Password}}})
	return b
}
