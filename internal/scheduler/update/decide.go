package update

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/scheduler/move"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// Observed is everything that a decision depends on.
type Observed struct {
	// Instances are the VMIs with an outdated launcher.
	Instances []Instance
	// Updates is what may be done with them.
	Updates config.Updates
	// Places are those of the migrations that have not ended, and Limits how many may be
	// under way.
	Places []migration.Place
	Limits migration.Limits
	// LastBatch is when pods were evicted last. Zero: that is not known.
	LastBatch time.Time
	// Now is the present time.
	Now time.Time
}

// Instance is a VMI with an outdated launcher.
type Instance struct {
	// VMI is the VMI as it is stored.
	VMI *vmi.VirtualMachineInstance
	// Active is the pod that it runs in. Nil: it is not known.
	Active *corev1.Pod
	// Pods are all that were made for it.
	Pods []*corev1.Pod
	// Migrations are those of the VMI.
	Migrations []*vmi.VirtualMachineInstanceMigration
	// Tried is when the eviction of its pod was asked for last. Zero: it was not.
	Tried time.Time
}

// Plan is what is to be done, in this order.
type Plan struct {
	Steps []Step
	// Recheck is the time after which to decide again even if nothing changes. 0: never.
	Recheck time.Duration
}

// Step is what is to be done for one VMI.
type Step struct {
	VMI    *vmi.VirtualMachineInstance
	Action scheduler.Action
}

// why is said in the events of what is done.
const why = "the launcher of the VMI is outdated"

// Decide says which VMIs are migrated and whose pods are evicted now:
//
//	VMI                                  methods               what is done
//	does not run, is deleted, leaves its  any                   nothing
//	node, or moves
//	LiveMigratable True                  LiveMigrate           it is migrated, where there is a place, and no
//	                                                           quota of its namespace refuses another one
//	LiveMigratable True                  Evict only            its pod is evicted, in batches
//	not True                             Evict                 the same
//	not True                             LiveMigrate only      nothing
//
// VMIs of which nothing was tried come first, then those whose last try is the longest ago.
func Decide(o Observed) Plan {
	var moved, ended []Instance
	full := full(o.Instances)
	for _, i := range o.Instances {
		switch {
		case i.VMI.Status.EvacuationNodeName != "" || !move.Free(i.VMI, i.Pods, i.Migrations):
		case o.Updates.Migrate && move.Movable(i.VMI):
			if !full[i.VMI.Namespace] {
				moved = append(moved, i)
			}
		case o.Updates.Evict && i.Active != nil && i.Active.DeletionTimestamp == nil:
			ended = append(ended, i)
		}
	}
	p := evict(o, ended)
	p.Steps = append(migrate(o, moved), p.Steps...)
	return p
}

// full are the namespaces whose quotas refuse a pod that a VMI is to move to.
func full(all []Instance) map[string]bool {
	out := map[string]bool{}
	for _, i := range all {
		for _, m := range i.Migrations {
			c := m.Status.Condition(vmi.ConditionRejectedByResourceQuota)
			if !m.Status.Phase.Final() && c != nil && c.Status == corev1.ConditionTrue {
				out[i.VMI.Namespace] = true
			}
		}
	}
	return out
}

// migrate makes migrations for the places that are left.
func migrate(o Observed, all []Instance) []Step {
	places := slices.Clone(o.Places)
	of := map[types.UID]Instance{}
	for _, i := range all {
		of[i.VMI.UID] = i
		tried := i.VMI.CreationTimestamp.Time
		if last := move.Newest(i.Migrations); last != nil {
			tried = last.CreationTimestamp.Time
		}
		// What waits already comes first, whatever its priority.
		places = append(places, migration.Place{UID: i.VMI.UID, Node: i.VMI.Status.NodeName, Priority: -1, Created: tried})
	}
	var steps []Step
	for _, uid := range migration.MayBegin(places, o.Limits) {
		i, ok := of[uid]
		if !ok {
			continue
		}
		m := move.Own(i.VMI, i.Migrations, move.Cause{
			Prefix: vmi.UpdateNamePrefix, Annotation: vmi.UpdateMigrationAnnotation, Priority: vmi.MigrationSystemCritical,
		})
		steps = append(steps, Step{i.VMI, scheduler.CreateMigration{Migration: m, Why: why}})
	}
	return steps
}

// evict evicts a batch of pods. Those of earlier ones that have not ended count.
func evict(o Observed, all []Instance) Plan {
	if len(all) == 0 {
		return Plan{}
	}
	if left := o.LastBatch.Add(o.Updates.BatchInterval).Sub(o.Now); left > 0 {
		return Plan{Recheck: left}
	}
	size := o.Updates.BatchSize
	for _, i := range o.Instances {
		if i.Active != nil && i.Active.DeletionTimestamp != nil {
			size--
		}
	}
	slices.SortFunc(all, func(a, b Instance) int {
		return cmp.Or(a.Tried.Compare(b.Tried), a.VMI.CreationTimestamp.Compare(b.VMI.CreationTimestamp.Time), cmp.Compare(a.VMI.UID, b.VMI.UID))
	})
	p := Plan{Recheck: o.Updates.BatchInterval}
	for _, i := range all[:min(max(size, 0), len(all))] {
		p.Steps = append(p.Steps, Step{i.VMI, scheduler.EvictPod{Name: i.Active.Name, UID: i.Active.UID, Why: why}})
	}
	return p
}
