// Package install puts Podvisor into a cluster, as a user does with
// `kubectl apply --server-side -k`, and waits until it works. It removes it again with
// `kubectl delete -k`.
package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/e2e/kubectl"
)

// Namespace is where Podvisor is installed.
const Namespace = "kubevirt"

// Config says what is installed.
type Config struct {
	// Kubectl talks to the cluster. Required but for [Overlay].
	Kubectl kubectl.Kubectl
	// Manifests is the folder of the manifests. Required.
	Manifests string
	// Overlays is the folder of the overlays. Empty: that in the folder of the manifests.
	Overlays string
	// Reference names the image of a component, with its tag. Required.
	Reference func(component string) string
	// Emulation lets guests run in software where there is no hardware
	// virtualization.
	Emulation bool
	// Components are further components among the overlays, as "kubernetes-1.32".
	Components []string
	// Resources are further folders below that of the manifests, as "monitoring/scrape".
	Resources []string
	// Into is the namespace that the manifests are rendered for by [Overlay]. Empty: that
	// of the manifests, which [Install] needs.
	Into string
	// Content is a digest over the images. The components start anew when it
	// changes, though their images' names do not. Empty: there is none.
	Content string
	// Force takes back what others have changed in the objects of the manifests, such as [Slow].
	Force bool
	// Out gets the progress. Nil: none is written.
	Out io.Writer
}

// Install applies the manifests and returns when all components are ready.
func Install(ctx context.Context, c Config) error {
	dir, err := Overlay(c)
	if err != nil {
		return fmt.Errorf("write the overlay of the manifests: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := c.Kubectl.Run(ctx, "apply", "--server-side", fmt.Sprintf("--force-conflicts=%t", c.Force), "-k", dir); err != nil {
		return err
	}
	for _, what := range []string{"deployment/virt-certificates", "deployment/virt-controller", "daemonset/virt-handler"} {
		if err := c.rollout(ctx, what); err != nil {
			return err
		}
	}
	if err := c.schedulable(ctx); err != nil {
		return err
	}
	return c.accepts(ctx)
}

// Delete deletes the manifests, as a user does with `kubectl delete -k`, and returns
// when the cluster has deleted them. What goes with the namespace before kubectl
// comes to it is no error.
func Delete(ctx context.Context, c Config) error {
	dir, err := Overlay(c)
	if err != nil {
		return fmt.Errorf("write the overlay of the manifests: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	_, err = c.Kubectl.Run(ctx, "delete", "--ignore-not-found", "--timeout=5m", "-k", dir)
	return err
}

func (c Config) rollout(ctx context.Context, what string) error {
	_, err := c.Kubectl.Run(ctx, "-n", Namespace, "rollout", "status", what, "--timeout=10m")
	if err == nil {
		return nil
	}
	pods, _ := c.Kubectl.Run(ctx, "-n", Namespace, "get", "pods", "-o", "wide")
	events, _ := c.Kubectl.Run(ctx, "-n", Namespace, "get", "events", "--sort-by=.lastTimestamp")
	logs, _ := c.Kubectl.Run(ctx, "-n", Namespace, "logs", what, "--all-containers", "--tail=20")
	return fmt.Errorf("%w\n%s\n%s\n%s", err, pods, tail(events, 15), logs)
}

// schedulable waits until nodes take VMIs: until their handlers have labelled
// them, and their kubelets have reported the devices, which they do every ten
// seconds.
func (c Config) schedulable(ctx context.Context) error {
	return retry(ctx, 5*time.Minute, func() error {
		nodes, err := c.Kubectl.Run(ctx, "get", "nodes", "-l", "kubevirt.io/schedulable=true",
			"-o", `jsonpath={range .items[*]}{.metadata.name}={.status.allocatable.devices\.kubevirt\.io/tun}{"\n"}{end}`)
		if err != nil {
			return err
		}
		if strings.TrimSpace(nodes) == "" {
			return fmt.Errorf("no node has the label kubevirt.io/schedulable=true: see `kubectl -n %s logs daemonset/virt-handler`", Namespace)
		}
		for node := range strings.Lines(nodes) {
			if name, devices, _ := strings.Cut(strings.TrimSpace(node), "="); devices == "" || devices == "0" {
				return fmt.Errorf("node %s has no devices.kubevirt.io/tun yet: see `kubectl describe node %[1]s`", name)
			}
		}
		return nil
	})
}

// accepts waits until the API server takes VMIs. It learns a new kind for its
// policies only every five seconds and refuses its objects until then.
func (c Config) accepts(ctx context.Context) error {
	const probe = `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "probe"}, "spec": {"domain": {"memory": {"guest": "64Mi"}}}}`
	return retry(ctx, 5*time.Minute, func() error {
		_, err := c.Kubectl.RunInput(ctx, strings.NewReader(probe), "create", "--dry-run=server", "-f", "-")
		return err
	})
}

var kustomization = template.Must(template.New("").Parse(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [{{.Base}}{{range .Resources}}, {{$.Base}}/{{.}}{{end}}]
components: [images{{if .Emulation}}, {{.Overlays}}/emulation{{end}}{{range .Components}}, {{$.Overlays}}/{{.}}{{end}}]
{{- if .Into}}
namespace: {{.Into}}
{{- end}}
{{- if .Content}}
patches:
- target: {kind: (Deployment|DaemonSet)}
  patch: |
    - {op: add, path: /spec/template/metadata/annotations/podvisor.io~1content, value: "{{.Content}}"}
{{- end}}
`))

// Images names the images of Podvisor in the file of the overlay "images".
func Images(reference func(component string) string) ([]byte, error) {
	named := map[string]string{}
	for _, name := range []string{"virt-controller", "virt-handler", "virt-launcher", "virt-launcher-full"} {
		named[name] = reference(name)
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": named,
		"metadata": map[string]any{"name": "podvisor-images", "annotations": map[string]string{"config.kubernetes.io/local-config": "true"}},
	})
}

// Overlay writes a kustomization with the images' names in a temporary folder, which the
// caller removes.
func Overlay(c Config) (string, error) {
	dir, err := os.MkdirTemp("", "podvisor-install-")
	if err != nil {
		return "", err
	}
	// kustomize takes no absolute paths.
	relative := func(path string) string {
		abs, e := filepath.Abs(path)
		rel, e2 := filepath.Rel(dir, abs)
		err = errors.Join(err, e, e2)
		return rel
	}
	overlays := cmp.Or(c.Overlays, filepath.Join(c.Manifests, "overlays"))
	base, others := relative(c.Manifests), relative(overlays)
	own := filepath.Join(dir, "images")
	err = errors.Join(err, os.CopyFS(own, os.DirFS(filepath.Join(overlays, "images"))))
	images, e := Images(c.Reference)
	if err = errors.Join(err, e); err != nil {
		return dir, err
	}
	if err := os.WriteFile(filepath.Join(own, "images.yaml"), images, 0o600); err != nil {
		return dir, err
	}
	f, err := os.Create(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return dir, err
	}
	c.Overlays = others
	err = kustomization.Execute(f, struct {
		Config
		Base string
	}{c, base})
	return dir, errors.Join(err, f.Close())
}

// retry calls do until it succeeds or the time is over.
func retry(ctx context.Context, limit time.Duration, do func() error) error {
	end := time.Now().Add(limit)
	for {
		err := do()
		if err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
