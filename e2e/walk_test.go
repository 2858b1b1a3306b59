package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/e2e/kubectl"
	"github.com/podvisor/podvisor/vmi"
)

// walk is what the page docs/first-vmi.md has its reader apply.
type walk struct {
	// instance is its VMI, and key the line in its user data that a reader replaces.
	instance *vmi.VirtualMachineInstance
	key      string
	// service is its Service, and host the name by which that is reached.
	service, host string
}

func readWalk(t *testing.T) walk {
	t.Helper()
	page, err := os.ReadFile("../docs/first-vmi.md")
	require.NoError(t, err)
	found := manifestIn.FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, 2, "a VMI and a Service")
	w := walk{key: "ssh-ed25519 AAAA... you@example.com", service: found[1][1], instance: &vmi.VirtualMachineInstance{}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(found[0][1]), w.instance))
	var svc corev1.Service
	require.NoError(t, yaml.UnmarshalStrict([]byte(w.service), &svc))
	require.Equal(t, w.instance.Labels, svc.Spec.Selector)
	w.host = svc.Name
	require.Contains(t, string(page), "ssh debian@"+w.host)
	return w
}

// apply applies the manifest as the user does.
func (u user) apply(manifest string) {
	u.t.Helper()
	k := kubectl.Kubectl{Path: world.kubectl.Path, Kubeconfig: u.kubeconfig}
	_, err := k.RunInput(u.t.Context(), strings.NewReader(manifest), "apply", "-f", "-")
	require.NoError(u.t, err)
}
