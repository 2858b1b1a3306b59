package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/applyconfiguration"
)

// usual is the configuration of the cluster while no test has another one, or nil for none.
// A program with the race detector maps more memory than the inspection of a disk image has
// by default.
func usual() *vmi.KubeVirt {
	if !race {
		return nil
	}
	k := &vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"}}
	k.Spec.Configuration.DeveloperConfiguration = &vmi.DeveloperConfiguration{
		DiskVerification: &vmi.DiskVerification{MemoryLimit: new(resource.MustParse("1Gi"))},
	}
	return k
}

// setUsual gives the cluster its usual configuration, which it may have already.
func setUsual(ctx context.Context) error {
	k := usual()
	if k == nil {
		return nil
	}
	verification := applyconfiguration.DiskVerification().WithMemoryLimit(*k.Spec.Configuration.DeveloperConfiguration.DiskVerification.MemoryLimit)
	a := applyconfiguration.KubeVirt(k.Name, "kubevirt").WithSpec(applyconfiguration.KubeVirtSpec().WithConfiguration(applyconfiguration.KubeVirtConfiguration().
		WithDeveloperConfiguration(applyconfiguration.DeveloperConfiguration().WithDiskVerification(verification))))
	_, err := world.vmis.KubeVirts("kubevirt").Apply(ctx, a, metav1.ApplyOptions{FieldManager: "e2e", Force: true})
	return err
}

// configure gives the cluster the configuration that change makes of the usual one, as
// specify does.
func configure(t *testing.T, change func(*vmi.KubeVirtConfiguration)) (undo func()) {
	t.Helper()
	return specify(t, func(s *vmi.KubeVirtSpec) { change(&s.Configuration) })
}

// specify makes the KubeVirt of the cluster what change makes of the usual one, and returns
// what gives it the usual one again. The end of the test does that, too. One test at a time
// may do it.
func specify(t *testing.T, change func(*vmi.KubeVirtSpec)) (undo func()) {
	t.Helper()
	all, k := world.vmis.KubeVirts("kubevirt"), usual()
	if k == nil {
		k = &vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"}}
	} else {
		require.NoError(t, all.Delete(t.Context(), k.Name, metav1.DeleteOptions{}))
	}
	if k.Spec.Configuration.DeveloperConfiguration == nil {
		k.Spec.Configuration.DeveloperConfiguration = &vmi.DeveloperConfiguration{}
	}
	change(&k.Spec)
	made, err := all.Create(t.Context(), k, metav1.CreateOptions{})
	require.NoError(t, err)
	undo = func() {
		ctx := context.Background()
		if err := all.Delete(ctx, k.Name, *metav1.NewPreconditionDeleteOptions(string(made.UID))); err == nil {
			require.NoError(t, setUsual(ctx))
		}
	}
	t.Cleanup(undo)
	return undo
}
