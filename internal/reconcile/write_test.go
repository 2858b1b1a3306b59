package reconcile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAWriterWritesAndKeepsTheAnswer(t *testing.T) {
	v := vmitest.New()
	c, err := client.New(fake.New(v).Config())
	require.NoError(t, err)
	cached, err := c.VirtualMachineInstances(v.Namespace).Get(t.Context(), v.Name, metav1.GetOptions{})
	require.NoError(t, err)
	w := NewWriter(c, vmi.VirtualMachineInstances)
	changed := cached.DeepCopy()
	changed.Status.NodeName = "n1"
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	first, err := w.Status(ended, cached, changed)
	require.NoError(t, err, "a write that has begun is completed")
	require.Equal(t, "n1", first.Status.NodeName)
	require.Same(t, first, w.Latest(Key(v), cached))
	second, err := w.Finalizers(t.Context(), first, []string{vmi.Finalizer})
	require.NoError(t, err)
	require.Equal(t, []string{vmi.Finalizer}, second.Finalizers)
	require.Same(t, second, w.Latest(Key(v), cached))

	kept, err := w.Status(t.Context(), cached, second)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "write status of default/testvmi")
	require.Same(t, cached, kept)
	same, err := w.Status(t.Context(), second, second.DeepCopy())
	require.NoError(t, err)
	require.Same(t, second, same, "nothing is written that is there already")
}
