package contract

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
)

// cluster plays with a kind of another group, whose objects are in no namespace.
func (s suite) cluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	policies := client.Of(s.c, migrationpolicy.MigrationPolicies, "")
	before, err := policies.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	w, err := policies.Watch(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	require.NoError(t, err)
	defer w.Stop()

	p := &migrationpolicy.MigrationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "cluster", Labels: map[string]string{"a": "b"}}}
	p.Spec.Selectors = &migrationpolicy.Selectors{VirtualMachineInstanceSelector: map[string]string{"c": "d"}}
	p.Spec.BandwidthPerMigration = new(resource.MustParse("2000Mi"))
	p.Spec.AllowPostCopy = new(false)
	made, err := policies.Create(ctx, p, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Empty(t, made.Namespace)
	require.Equal(t, p.Spec.Selectors, made.Spec.Selectors)
	require.Equal(t, "2000Mi", made.Spec.BandwidthPerMigration.String())
	require.Equal(t, new(false), made.Spec.AllowPostCopy, "a setting that is off is not the same as none")
	e := <-w.ResultChan()
	require.Equal(t, watch.Added, e.Type)
	require.Equal(t, made.ObjectMeta, e.Object.(*migrationpolicy.MigrationPolicy).ObjectMeta)

	made.Spec.CompletionTimeoutPerGiB = new(int64(7))
	made, err = policies.Update(ctx, made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, made.Generation)
	listed, err := policies.List(ctx, metav1.ListOptions{LabelSelector: "a=b"})
	require.NoError(t, err)
	require.Len(t, listed.Items, 1)
	require.Equal(t, made.Spec, listed.Items[0].Spec)

	i, err := informer.NewFiltered(policies, informer.Selection{})
	require.NoError(t, err)
	go i.RunWithContext(ctx)
	require.True(t, cache.WaitForCacheSync(ctx.Done(), i.HasSynced))
	require.Equal(t, made.Spec, i.Lister().Key("cluster").Spec)

	require.NoError(t, policies.Delete(ctx, "cluster", metav1.DeleteOptions{}))
	require.NoError(t, client.WaitForDeletion(ctx, policies, "cluster"))
}
