package live

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnInstallationOfKubeVirtIsRecognised(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		labels, annotations map[string]string
		foreign             bool
	}{
		"ours":                     {labels: map[string]string{"kubevirt.io": ""}},
		"installed in another way": {labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
		"made by the operator":     {labels: map[string]string{"app.kubernetes.io/managed-by": "virt-operator"}, foreign: true},
		"made by an old operator":  {annotations: map[string]string{"kubevirt.io/install-strategy-version": "v0.58"}, foreign: true},
		"installed with it":        {labels: map[string]string{"operator.kubevirt.io": ""}, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &metav1.ObjectMeta{Name: "kubevirts.kubevirt.io", Labels: tt.labels, Annotations: tt.annotations}
			require.Equal(t, tt.foreign, foreign(m) != "")
		})
	}
}
