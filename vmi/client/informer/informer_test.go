package informer_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAnInformerAsksForItsSelectionOnly(t *testing.T) {
	for _, tt := range []struct {
		name      string
		selection informer.Selection
		want      string
	}{
		{"of a node", informer.Selection{NodeName: "n1", Labels: "a=b"}, "status.nodeName=n1&a=b"},
		{"what moves to a node", informer.Selection{TargetNode: "n1"}, "status.migrationState.targetNode=n1&"},
		{"all", informer.Selection{}, "&"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := make(chan string, 10)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path + "?" + r.URL.Query().Get("fieldSelector") + "&" + r.URL.Query().Get("labelSelector")
				w.WriteHeader(http.StatusForbidden)
			}))
			defer s.Close()
			c, err := client.New(&rest.Config{Host: s.URL})
			require.NoError(t, err)
			i, err := informer.NewFiltered(c.VirtualMachineInstances("default"), tt.selection)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go i.RunWithContext(ctx)
			require.Equal(t, "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances?"+tt.want, <-asked)
			require.Nil(t, i.Lister().Key("default/testvmi"))
			all, err := i.Lister().List(labels.Everything())
			require.NoError(t, err)
			require.Empty(t, all)
		})
	}
}

func TestASelectionThatCannotBeIsAnErrorThatNamesItsField(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "http://nowhere.invalid"})
	require.NoError(t, err)
	_, err = informer.NewFiltered(c.VirtualMachineInstances(""), informer.Selection{Labels: "a in"})
	require.ErrorContains(t, err, "Selection.Labels: ")
	_, err = informer.NewFiltered(c.VirtualMachines(""), informer.Selection{NodeName: "n1"})
	require.EqualError(t, err, "select by Selection.NodeName: the kind VirtualMachine is not selected by the field status.nodeName")
	_, err = informer.NewFiltered(c.KubeVirts(""), informer.Selection{TargetNode: "n1"})
	require.EqualError(t, err, "select by Selection.TargetNode: the kind KubeVirt is not selected by the field status.migrationState.targetNode")
	_, err = informer.For(informer.NewFactory(c, ""), vmi.VirtualMachines, informer.Selection{NodeName: "n1"})
	require.ErrorContains(t, err, "Kind=VirtualMachine")
	require.ErrorContains(t, err, "Selection.NodeName")
}

func TestTheInformersOfAFactoryAreShared(t *testing.T) {
	web := vmitest.New(vmitest.WithName("web"), vmitest.WithLabel("app", "web"))
	c, err := client.New(fake.New(web, vmitest.New(vmitest.WithName("db")), vmitest.NewVM(vmi.RunHalted)).Config())
	require.NoError(t, err)
	f := informer.NewFactory(c, "default")
	all, err := informer.For(f, vmi.VirtualMachineInstances, informer.Selection{})
	require.NoError(t, err)
	again, err := informer.For(f, vmi.VirtualMachineInstances, informer.Selection{})
	require.NoError(t, err)
	require.Equal(t, all, again)
	some, err := informer.For(f, vmi.VirtualMachineInstances, informer.Selection{Labels: "app=web"})
	require.NoError(t, err)
	require.NotEqual(t, all, some)
	ctx, cancel := context.WithCancel(t.Context())
	f.Start(ctx)
	require.True(t, f.WaitForCacheSync(ctx))
	require.Len(t, found(t, all), 2)
	require.Len(t, found(t, some), 1)

	// One that is made later runs from the next Start on.
	vms, err := informer.For(f, vmi.VirtualMachines, informer.Selection{})
	require.NoError(t, err)
	require.True(t, f.WaitForCacheSync(ctx), "of those that run")
	f.Start(ctx)
	require.True(t, f.WaitForCacheSync(ctx))
	require.Len(t, found(t, vms), 1)

	cancel()
	f.Shutdown()
	require.True(t, all.IsStopped())
	require.True(t, vms.IsStopped())
}

// found are the objects in the informer's cache.
func found[T vmi.Object](t *testing.T, i informer.Informer[T]) []T {
	t.Helper()
	all, err := i.Lister().List(labels.Everything())
	require.NoError(t, err)
	return all
}

func TestAListerHasTheErrorsOfTheAPI(t *testing.T) {
	c, err := client.New(fake.New(vmitest.New()).Config())
	require.NoError(t, err)
	i, err := informer.NewFiltered(c.VirtualMachineInstances(""), informer.Selection{})
	require.NoError(t, err)
	go i.RunWithContext(t.Context())
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), i.HasSynced))
	l := i.Lister().Namespace("default")
	v, err := l.Get("testvmi")
	require.NoError(t, err)
	require.Equal(t, v, i.Lister().Key("default/testvmi"))
	_, err = l.Get("other")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.EqualError(t, err, `virtualmachineinstances.kubevirt.io "other" not found`)
	elsewhere, err := i.Lister().Namespace("elsewhere").List(labels.Everything())
	require.NoError(t, err)
	require.Empty(t, elsewhere)
}
