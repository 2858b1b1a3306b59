package controller

import (
	"slices"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/evacuation"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// evacuate is the plan for the VMI, with the migration that is made of it at last if it has to
// leave its node.
func (c *Controller) evacuate(v *vmi.VirtualMachineInstance, o instance.Observed, p scheduler.Plan) scheduler.Plan {
	cluster := o.Config.Cluster
	of := evacuation.Observed{
		VMI: v, Pods: slices.Concat(o.Pods.Targets, o.Pods.Stray), Migrations: c.migrationsOf(v),
		Drain: *cluster.Migration(nil).NodeDrainTaintKey, Profile: cluster.Defaults,
	}
	if o.Pods.Active != nil {
		of.Pods = append(of.Pods, o.Pods.Active)
	}
	if o.Node.Object != nil {
		of.Taints = o.Node.Object.Spec.Taints
	}
	p.Actions = slices.Concat(p.Actions, evacuation.Decide(of).Actions)
	return p
}

// evacuatedBy is the VMI of a migration that has ended, which may have to be moved by another
// one.
func evacuatedBy(m *vmi.VirtualMachineInstanceMigration) []string {
	if !m.Status.Phase.Final() {
		return nil
	}
	return reconcile.KeysIn(m.Namespace, m.Spec.VMIName)
}
