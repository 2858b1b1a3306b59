package effect

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
	"github.com/podvisor/podvisor/vmi/served"
)

// Each annotation and label by which KubeVirt does something works, is refused as not
// served, or changes nothing of the domain, and of the pod nothing but that the pod has it.
func TestEachAnnotationAndLabelOfKubeVirtWorksIsRefusedOrIsHarmless(t *testing.T) {
	for _, m := range served.Marks() {
		t.Run(m.Key, func(t *testing.T) {
			marked := func(value string) map[string]any {
				tree := bases(t)["masquerade.yaml"]
				delete(tree["spec"].(map[string]any)["domain"].(map[string]any), "cpu")
				meta := tree["metadata"].(map[string]any)
				part := "annotations"
				if m.Label {
					part = "labels"
				}
				if value != "" {
					meta[part] = map[string]any{m.Key: value}
				}
				return tree
			}
			text, err := yaml.Marshal(marked("true"))
			require.NoError(t, err)
			judged, err := manifest.Check(text, kinds.Cluster{})
			require.NoError(t, err)
			if m.State == served.MarkRefused {
				require.Len(t, judged[0].Faults, 1)
				require.Contains(t, judged[0].Faults[0].Message, "this annotation is not served: "+m.Why)
				_, err := Make(decode(t, marked("true")))
				require.ErrorContains(t, err, m.Why)
				return
			}
			require.Empty(t, judged[0].Faults)
			with, err := Make(decode(t, marked("true")))
			require.NoError(t, err)
			without, err := Make(decode(t, marked("")))
			require.NoError(t, err)
			delete(with.Pod.Annotations, m.Key)
			delete(with.Pod.Labels, m.Key)
			if m.State == served.MarkWorks {
				require.NotEqual(t, without, with)
				return
			}
			require.Equal(t, without, with)
		})
	}
}
