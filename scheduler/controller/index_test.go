package controller_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAnInformerOfAnEmbedderFindsObjectsAsTheControllersDo(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithClaim("root", "data"))
	v.Status.NodeName = "n1"
	c, err := client.New(fake.New(v, vmitest.New(vmitest.WithName("other")), vmitest.NewVM(vmi.RunHalted, vmitest.WithClaim("root", "data"))).Config())
	require.NoError(t, err)
	f := informer.NewFactory(c, metav1.NamespaceAll)
	vmis, err := informer.For(f, vmi.VirtualMachineInstances, informer.Selection{})
	require.NoError(t, err)
	vms, err := informer.For(f, vmi.VirtualMachines, informer.Selection{})
	require.NoError(t, err)
	require.NoError(t, vmis.AddIndexers(controller.InstanceIndexers()))
	require.NoError(t, vms.AddIndexers(controller.VMIndexers()))
	f.Start(t.Context())
	require.True(t, f.WaitForCacheSync(t.Context()))
	for _, tt := range []struct {
		of           cache.Indexer
		index, value string
		want         []string
	}{
		{vmis.GetIndexer(), controller.IndexClaim, "default/data", []string{"default/testvmi"}},
		{vmis.GetIndexer(), controller.IndexNode, "n1", []string{"default/testvmi"}},
		{vmis.GetIndexer(), controller.IndexNode, "n2", nil},
		{vms.GetIndexer(), controller.IndexClaim, "default/data", []string{"default/testvmi"}},
	} {
		got, err := tt.of.IndexKeys(tt.index, tt.value)
		require.NoError(t, err)
		require.ElementsMatch(t, tt.want, got, "%s %s", tt.index, tt.value)
	}
}
