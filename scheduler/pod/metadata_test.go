package pod_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// selector is the label by which a page finds the pod of a VMI.
var selector = regexp.MustCompile(`(?:pods?|logs) -l ([a-z./]+)=`)

func TestThePagesFindThePodOfAVMIWithAHostNameOfItsOwn(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithName("hello"))
	v.Spec.Hostname = "another"
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:1"}})
	require.NoError(t, err)
	for _, page := range []string{"console", "probes", "demo-guest"} {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		require.NoError(t, err)
		found := selector.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, found, page)
		for _, m := range found {
			require.Equal(t, "hello", p.Labels[m[1]], "docs/%s.md selects by %s", page, m[1])
		}
	}
	require.Equal(t, "another", p.Labels[vmi.VMNameLabel])
}

func TestAPodIsMadeWithoutWhatIsSaidOfEvictions(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	v.Annotations = map[string]string{
		"descheduler.alpha.kubernetes.io/eviction-in-progress": "true", "kubevirt.io/eviction-source": "descheduler", "mine": "stays",
	}
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:1"}})
	require.NoError(t, err)
	require.NotContains(t, p.Annotations, "descheduler.alpha.kubernetes.io/eviction-in-progress")
	require.NotContains(t, p.Annotations, "kubevirt.io/eviction-source")
	require.Equal(t, "stays", p.Annotations["mine"])
	require.Contains(t, p.Annotations, "descheduler.alpha.kubernetes.io/request-evict-only")
}
