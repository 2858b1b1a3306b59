package cluster_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/debian"
)

// manifest is a server on one node and a client on each.
const manifest = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 0
  containers:
  - name: web
    image: localhost/podvisor-test:busybox
    command: [sh, -c, "hostname > /tmp/index.html; exec httpd -f -p 80 -h /tmp"]
    volumeMounts: [{name: cdi, mountPath: /cdi}]
  volumes: [{name: cdi, hostPath: {path: /var/run/cdi, type: Directory}}]
---
apiVersion: v1
kind: Pod
metadata: {name: client-n1}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 0
  containers: [{name: client, image: "localhost/podvisor-test:busybox", command: [sleep, "86400"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: client-n2}
spec:
  nodeName: n2
  hostUsers: false
  terminationGracePeriodSeconds: 0
  containers: [{name: client, image: "localhost/podvisor-test:busybox", command: [sleep, "86400"]}]
`

// busybox makes an image archive of Debian's static busybox.
func busybox(t *testing.T) string {
	t.Helper()
	require.NoError(t, debian.Ensure(t.Context(), testWriter{t}, "busybox-static"))
	program, err := os.ReadFile("/bin/busybox")
	require.NoError(t, err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range []string{"bin", "tmp", "etc", "proc", "sys", "dev", "cdi"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}))
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))}))
	_, err = w.Write(program)
	require.NoError(t, err)
	for _, applet := range []string{"sh", "sleep", "wget", "nslookup", "hostname", "httpd", "ls"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox"}))
	}
	require.NoError(t, w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	require.NoError(t, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Env = "linux", runtime.GOARCH, []string{"PATH=/bin"}
	image, err = mutate.ConfigFile(image, config)
	require.NoError(t, err)
	tag, err := name.NewTag("localhost/podvisor-test:busybox")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "busybox.tar")
	require.NoError(t, tarball.WriteToFile(path, tag, image))
	return path
}
