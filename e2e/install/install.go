// Package install puts Podvisor into a cluster, as a user does with
// `kubectl apply -k`, and waits until it works.
package install

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/podvisor/podvisor/e2e/kubectl"
)

// Namespace is where Podvisor is installed.
const Namespace = "kubevirt"

// Config says what is installed.
type Config struct {
	// Kubectl talks to the cluster. Required.
	Kubectl kubectl.Kubectl
	// Manifests is the folder of the manifests. Required.
	Manifests string
	// Images is the prefix of the images' names, as in PREFIX/virt-handler.
	// Required.
	Images string
	// Tag is the tag of the images. Required.
	Tag string
	// Content is a digest over the images. The components start anew when it
	// changes, though their images' names do not.
	Content string
	// Out is told how it goes on. Nil: nobody.
	Out io.Writer
}

// Install applies the manifests and returns when both components are ready.
func Install(ctx context.Context, c Config) error {
	dir, err := overlay(c)
	if err != nil {
		return fmt.Errorf("write the overlay of the manifests: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// The policies refer to the CRDs, which are served a moment after they are
	// applied: the second try succeeds then.
	err = retry(ctx, 20*time.Second, func() error {
		_, err := c.Kubectl.Run(ctx, "apply", "--server-side", "--force-conflicts", "-k", dir)
		return err
	})
	if err != nil {
		return err
	}
	for _, what := range []string{"deployment/virt-controller", "daemonset/virt-handler"} {
		if err := c.rollout(ctx, what); err != nil {
			return err
		}
	}
	return c.schedulable(ctx)
}

func (c Config) rollout(ctx context.Context, what string) error {
	_, err := c.Kubectl.Run(ctx, "-n", Namespace, "rollout", "status", what, "--timeout=120s")
	if err == nil {
		return nil
	}
	pods, _ := c.Kubectl.Run(ctx, "-n", Namespace, "get", "pods", "-o", "wide")
	events, _ := c.Kubectl.Run(ctx, "-n", Namespace, "get", "events", "--sort-by=.lastTimestamp")
	logs, _ := c.Kubectl.Run(ctx, "-n", Namespace, "logs", what, "--all-containers", "--tail=20")
	return fmt.Errorf("%w\n%s\n%s\n%s", err, pods, tail(events, 15), logs)
}

// schedulable waits until a node takes machines.
func (c Config) schedulable(ctx context.Context) error {
	return retry(ctx, time.Minute, func() error {
		nodes, err := c.Kubectl.Run(ctx, "get", "nodes", "-l", "kubevirt.io/schedulable=true", "-o", "name")
		if err == nil && strings.TrimSpace(nodes) == "" {
			err = fmt.Errorf("no node has the label kubevirt.io/schedulable=true: see `kubectl -n %s logs daemonset/virt-handler`", Namespace)
		}
		return err
	})
}

var kustomization = template.Must(template.New("").Parse(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [{{.Base}}]
images:
{{- range .Names}}
- {name: podvisor/{{.}}, newName: {{$.Images}}/{{.}}, newTag: {{$.Tag}}}
{{- end}}
patches:
- target: {kind: (Deployment|DaemonSet)}
  patch: |
    - {op: add, path: /spec/template/metadata/annotations/podvisor.io~1content, value: "{{.Content}}"}
`))

// overlay writes a kustomization with the images' names in a temporary folder.
func overlay(c Config) (string, error) {
	dir, err := os.MkdirTemp("", "podvisor-install-")
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(c.Manifests)
	if err != nil {
		return "", err
	}
	base, err := filepath.Rel(dir, abs)
	if err != nil {
		return "", err
	}
	f, err := os.Create(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	return dir, kustomization.Execute(f, struct {
		Config
		Base  string
		Names []string
	}{c, base, []string{"virt-controller", "virt-handler", "virt-launcher"}})
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
