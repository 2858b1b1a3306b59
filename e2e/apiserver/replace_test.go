package apiserver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

func TestKubectlReplaceWithTheSameManifestIsNoChange(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]func(string) string{"lists": sparse, "no lists": bare} {
		for way, webhooks := range map[string]bool{"with webhooks": true, "without webhooks": false} {
			if name == "no lists" && !webhooks {
				continue // the schema requires what the webhook completes
			}
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				w := newWebhooks(t, nil)
				if webhooks {
					w.serve()
				}
				said, err := kubectl(t, manifest(w.name), "create", "-f", "-")
				require.NoError(t, err, said)
				first, err := w.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, webhooks, first.Spec.Domain.CPU != nil, "it was completed")
				said, err = kubectl(t, manifest(w.name), "replace", "-f", "-")
				require.NoError(t, err, said)
				again, err := w.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, first.Spec, again.Spec)
				require.Equal(t, []string{vmi.Finalizer}, again.Finalizers)
				require.Equal(t, first.UID, again.UID)

				changed := strings.Replace(manifest(w.name), "memory: {guest: 1024Mi}", "memory: {guest: 2Gi}", 1)
				changed = strings.Replace(changed, "limits: {cpu: 2,", "limits: {cpu: 3,", 1)
				said, err = kubectl(t, changed, "replace", "-f", "-")
				require.Error(t, err)
				require.Contains(t, said, "cannot be changed")
				if webhooks {
					require.Regexp(t, `spec\.domain\.(memory\.guest|resources\.limits\.cpu): Forbidden`, said)
				}
			})
		}
	}
}

func TestAnUpdateOfAnObjectThatIsBuiltAnewIsNoChange(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.serve()
	first := w.create(guest("vm"))
	built := guest("vm")
	built.Labels = map[string]string{"release": "2"}
	built.ResourceVersion = first.ResourceVersion
	again, err := w.vmis.Update(t.Context(), built, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, first.Spec, again.Spec)
	require.Equal(t, "2", again.Labels["release"])
	require.Equal(t, []string{vmi.Finalizer}, again.Finalizers)

	built.ResourceVersion = again.ResourceVersion
	built.Spec.Subdomain = "other"
	_, err = w.vmis.Update(t.Context(), built, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "spec.subdomain: Forbidden: the spec of a VirtualMachineInstance cannot be changed; delete it and create another")
}
