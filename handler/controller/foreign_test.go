package controller

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	objects "github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// definitions are the definitions of kinds, which may be KubeVirt's own.
type definitions struct {
	t *testing.T
	*fake.FakeMetadataClient
}

func definition(labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "virtualmachineinstances.kubevirt.io", Labels: labels},
	}
}

func (d definitions) label(labels map[string]string) {
	d.t.Helper()
	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	require.NoError(d.t, d.Tracker().Update(gvr, definition(labels), ""))
}

// settings are those of a cluster in which KubeVirt itself is installed.
func settings(t *testing.T) (*live.Watcher, definitions) {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(s))
	d := definitions{t, fake.NewSimpleMetadataClient(s, definition(map[string]string{"operator.kubevirt.io": ""}))}
	c, err := client.New(objects.New().Config())
	require.NoError(t, err)
	w, err := live.New(live.Config{KubeVirts: c.KubeVirts(""), Metadata: d})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return w, d
}

func TestWhereKubeVirtIsInstalledNothingIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watcher, d := settings(t)
	w.config.Settings = watcher
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	c, _ := w.handle()
	w.eventually("synced", func() bool { return c.synced.Load() })
	require.ErrorContains(t, c.Ready(), "KubeVirt is installed")
	for range 3 {
		_, err := c.reconcile(t.Context(), key)
		require.NoError(t, err)
	}
	require.Zero(t, w.patches())
	require.Nil(t, c.session(key, podUID))

	d.label(nil)
	w.phase(vmi.PhaseRunning)
	w.eventually("ready", func() bool { return c.Ready() == nil })

	d.label(map[string]string{"app.kubernetes.io/managed-by": "virt-operator"})
	w.eventually("not ready", func() bool { return c.Ready() != nil })
	before, puts := w.patches(), len(w.puts())
	w.change(func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.Now()) })
	w.eventually("deletion observed", func() bool { return c.instances.Lister().Key(key).DeletionTimestamp != nil })
	_, err := c.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, before, w.patches())
	require.Len(t, w.puts(), puts, "the guest runs on")

	d.label(nil)
	w.phase(vmi.PhaseSucceeded)
}
