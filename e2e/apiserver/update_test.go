package apiserver

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestAfterAnUpgradeAVMIIsMovedOrItsPodIsEvicted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	stop := s.control()
	moved, evicted := s.start("moved"), s.start("evicted", bridged)
	stop()
	s.control(func(c *controller.Config) {
		c.Launcher.Image = "podvisor/virt-launcher:v2"
		c.Cluster.Updates = config.Updates{Migrate: true, Evict: true, BatchSize: 1, BatchInterval: time.Minute}
	})
	eventually(t, func() error {
		l, err := world.vmis.VirtualMachineInstanceMigrations(s.name).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(l.Items) != 1 {
			return fmt.Errorf("there are %d migrations", len(l.Items))
		}
		m := l.Items[0]
		require.Regexp(t, "^"+vmi.UpdateNamePrefix, m.Name)
		require.Equal(t, moved.Name, m.Spec.VMIName)
		require.Equal(t, vmi.MigrationSystemCritical, *m.Spec.Priority)
		require.Contains(t, m.Annotations, vmi.UpdateMigrationAnnotation)
		return nil
	})
	eventually(t, func() error {
		if p := s.pod(evicted); p.DeletionTimestamp == nil {
			return fmt.Errorf("the pod is not evicted: %v", s.events(evicted))
		}
		return nil
	})
	require.Nil(t, s.pod(moved).DeletionTimestamp)
	eventually(t, func() error {
		if e := s.events(evicted); !slices.Contains(e, "Normal SuccessfulEvict ×1") {
			return fmt.Errorf("its events are %v", e)
		}
		return nil
	})
}
