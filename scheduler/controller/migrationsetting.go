package controller

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
)

// migrationSettings are those of a migration of the VMI that begins now. The labels of the
// namespace are read where a policy selects by such.
func (c *Controller) migrationSettings(ctx context.Context, v *vmi.VirtualMachineInstance) (migration.Settings, error) {
	policies, err := c.caches.policies.Lister().List(labels.Everything())
	if err != nil {
		return migration.Settings{}, err
	}
	var of map[string]string
	if slices.ContainsFunc(policies, func(p *migrationpolicy.MigrationPolicy) bool {
		return p.Spec.Selectors != nil && len(p.Spec.Selectors.NamespaceSelector) > 0
	}) {
		n, err := c.cfg.Kube.CoreV1().Namespaces().Get(ctx, v.Namespace, metav1.GetOptions{})
		if err != nil {
			return migration.Settings{}, fmt.Errorf("read namespace %s, whose labels say which MigrationPolicy applies: %w", v.Namespace, err)
		}
		of = n.Labels
	}
	p := migrationpolicy.Of(policies, v.Labels, of)
	s := migration.Settings{Configuration: c.rendering().Cluster.Migration(p)}
	if p != nil {
		s.Policy = p.Name
	}
	return s, nil
}

// migrationLimits are the limits of the cluster.
func (c *Controller) migrationLimits() migration.Limits {
	m := c.rendering().Cluster.Migration(nil)
	return migration.Limits{Cluster: limit(m.ParallelMigrationsPerCluster), Node: limit(m.ParallelOutboundMigrationsPerNode)}
}

// limit is that of the queue, of which 0 is the default and a negative one is none.
func limit(n *uint32) int {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return -1
	}
	return int(*n)
}
