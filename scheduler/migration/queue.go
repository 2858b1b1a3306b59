package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// Limits are how many migrations there may be at a time that have a target.
type Limits struct {
	// Cluster is the limit of the cluster, and Node that of the VMIs that leave a node. 0: 5
	// and 2. Negative: none begins.
	Cluster, Node int
}

const (
	mostInCluster = 5
	mostOfNode    = 2
)

// Place is what the queue knows of a migration that has not ended.
type Place struct {
	UID types.UID
	// Node is the node that the VMI leaves.
	Node string
	// Begun says that it has a target, or is about to. Otherwise it waits.
	Begun bool
	// Refused says that its target was refused when it had its turn last.
	Refused bool
	// Priority is that of the spec, as [Priority] has it.
	Priority int
	// Created is when it was made.
	Created time.Time
}

// PlaceOf is the place of a migration in the queue. Begun is to be set where more is known
// than its phase.
func PlaceOf(m *vmi.VirtualMachineInstanceMigration, v *vmi.VirtualMachineInstance) Place {
	p := Place{UID: m.UID, Begun: rank(m.Status.Phase) >= rank(vmi.MigrationPhaseScheduling), Priority: Priority(m), Created: m.CreationTimestamp.Time}
	c := m.Status.Condition(vmi.ConditionRejectedByResourceQuota)
	p.Refused = c != nil && c.Status == corev1.ConditionTrue
	if v != nil {
		p.Node = v.Status.NodeName
	}
	return p
}

// Priority is that of a migration: the higher it is, the earlier the migration begins.
func Priority(m *vmi.VirtualMachineInstanceMigration) int {
	if m.Spec.Priority == nil {
		return 0
	}
	switch *m.Spec.Priority {
	case vmi.MigrationSystemCritical:
		return 100
	case vmi.MigrationUserTriggered:
		return 50
	case vmi.MigrationSystemMaintenance:
		return 20
	}
	return 0
}

// MayBegin says which of the migrations that wait have a place, in the order of their
// turns. Those with the same priority have it by their age, then by their UID. One whose
// node has no place keeps none from the others, and one that was refused comes last.
func MayBegin(all []Place, l Limits) []types.UID {
	left, of := cmp.Or(l.Cluster, mostInCluster), map[string]int{}
	var waiting []Place
	for _, p := range all {
		if p.Begun {
			left--
			of[p.Node]++
		} else {
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, func(a, b Place) int {
		return cmp.Or(last(a)-last(b), b.Priority-a.Priority, a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
	var out []types.UID
	for _, p := range waiting {
		if left <= 0 {
			break
		}
		if of[p.Node] < cmp.Or(l.Node, mostOfNode) {
			left--
			of[p.Node]++
			out = append(out, p.UID)
		}
	}
	return out
}

func last(p Place) int {
	if p.Refused {
		return 1
	}
	return 0
}

// Eligible says that the migration has no target, and that only the queue keeps it from
// one.
func Eligible(o Observed) bool {
	m := o.Migration
	return rank(m.Status.Phase) < rank(vmi.MigrationPhaseScheduling) && !final(o) && m.DeletionTimestamp == nil && !missing(o) && !mine(o) &&
		o.Target == nil && o.VMI.DeletionTimestamp == nil && firstOf(o) == m && !obstructed(o) && backOff(o) == 0
}

// obstructed says that the VMI cannot begin to move now: it does not run, has more pods
// than one, or was handed over for a migration that is not there any more.
func obstructed(o Observed) bool {
	s, from := state(o), source(o)
	return o.VMI.Status.Phase != vmi.PhaseRunning || from == nil || from.DeletionTimestamp != nil || len(unended(o)) != 1 ||
		s != nil && s.MigrationUID != "" && !s.Completed
}

// queue is for a migration without a target.
func queue(o Observed) scheduler.Plan {
	if err := vmi.Unreadable(o.VMI); err != nil {
		return fail(o, vmi.UnreadableFinding(o.VMI).Message)
	}
	if c := o.VMI.Status.Condition(vmi.ConditionLiveMigratable); c != nil && c.Status == corev1.ConditionFalse {
		return fail(o, fmt.Sprintf("Cannot migrate VMI, Reason: %s, Message: %s", c.Reason, c.Message))
	}
	if o.Turn && o.Refusal == nil && Eligible(o) && !unsettled(o) {
		return create(o)
	}
	var after []scheduler.Action
	left := backOff(o)
	if left > 0 {
		after = append(after, say(o, true, Backoff, fmt.Sprintf("the migration %s waits %s, since the last one has failed", o.Migration.Name, left.Round(time.Second))))
	}
	p := write(o, func(s *vmi.VirtualMachineInstanceMigrationStatus, now metav1.Time) {
		reach(s, vmi.MigrationPhasePending, now)
		if o.Refusal != nil && exceedsQuota(*o.Refusal) {
			s.SetCondition(vmi.Condition{Type: vmi.ConditionRejectedByResourceQuota, Status: corev1.ConditionTrue, Reason: "ExceededQuota", Message: o.Refusal.Message}, now)
		}
	}, after...)
	if o.Refusal != nil && !o.Warned {
		p.Actions = append(p.Actions, say(o, true, FailedCreate, "the pod that the VMI is to move to was not accepted: "+o.Refusal.Message))
	}
	p.Recheck = waitTime
	if left > 0 && left < waitTime {
		p.Recheck = left
	}
	if o.Turn && unsettled(o) {
		p.Recheck = retryTime
	}
	return p
}

// exceedsQuota says that a pod was refused for a ResourceQuota. The API server says so in no
// other form.
func exceedsQuota(f vmi.Finding) bool { return strings.Contains(f.Message, "exceeded quota") }

// create creates the target, in one plan with the phase: a target without the phase is found
// again by its name.
func create(o Observed) scheduler.Plan {
	c := o.Config
	c.Role = pod.Target(o.Migration)
	target, err := pod.Render(o.VMI, c)
	if err != nil {
		return fail(o, vmi.FaultText(err))
	}
	p := write(o, func(s *vmi.VirtualMachineInstanceMigrationStatus, now metav1.Time) {
		reach(s, vmi.MigrationPhaseScheduling, now)
		withoutCondition(s, vmi.ConditionRejectedByResourceQuota)
	}, scheduler.Emit{Finding: vmi.Finding{Reason: "SuccessfulCreate", Message: "Created migration target pod " + target.Name}})
	p.Actions = append([]scheduler.Action{scheduler.CreatePod{Pod: target}}, p.Actions...)
	if !o.VMI.Spec.Domain.KeepsState() {
		return p
	}
	switch claim := pod.StateClaim(o.VMI, c); {
	case o.Claim == nil:
		p.Actions = append([]scheduler.Action{scheduler.CreateClaim{Claim: claim}}, p.Actions...)
	case o.Claim.Annotations[vmi.StateMigrationAnnotation] != claim.Annotations[vmi.StateMigrationAnnotation]:
		return fail(o, fmt.Sprintf("PersistentVolumeClaim %s, which the state of the VMI would move to, was not made for this migration: delete it and migrate again", claim.Name))
	}
	return p // the claim is there if the pod was not accepted before
}

// unsettled says that the claim with the state of the VMI is not known as that yet, which it
// becomes soon after a migration, or when it was started after one whose end was not known. Or
// the claim that it would move to is being deleted.
func unsettled(o Observed) bool {
	s := o.Config.Facts.State
	return o.VMI.Spec.Domain.KeepsState() &&
		(s == nil || s.Name != launched.StateClaim(source(o)) || o.Claim != nil && o.Claim.DeletionTimestamp != nil)
}

func withoutCondition(s *vmi.VirtualMachineInstanceMigrationStatus, t vmi.ConditionType) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c vmi.Condition) bool { return c.Type == t })
}

// backOffStep is the time after the first failed migration in a row. Each further one
// doubles it, up to mostBackOff.
const (
	backOffStep = 20 * time.Second
	mostBackOff = 320 * time.Second
)

// backOff is how long a migration that Podvisor itself made has to wait after those of the VMI
// that failed since the last one that succeeded. 0: it has not.
func backOff(o Observed) time.Duration {
	a := o.Migration.Annotations
	_, evacuation := a[vmi.EvacuationMigrationAnnotation]
	_, update := a[vmi.UpdateMigrationAnnotation]
	if _, ignored := a[ignoreBackoffAnnotation]; ignored || !evacuation && !update {
		return 0
	}
	var failed int
	var at time.Time
	for _, m := range newestFirst(o.Others) {
		if m.DeletionTimestamp != nil {
			continue
		}
		if m.Status.Phase != vmi.MigrationPhaseFailed {
			break
		}
		if failed == 0 {
			at = since(m, vmi.MigrationPhaseFailed)
		}
		failed++
	}
	if failed == 0 {
		return 0
	}
	wait := mostBackOff
	if failed < 6 {
		wait = min(wait, backOffStep<<(failed-1))
	}
	return min(max(at.Add(wait).Sub(o.Now), 0), wait)
}

// newestFirst are the migrations, the last that was made first.
func newestFirst(all []*vmi.VirtualMachineInstanceMigration) []*vmi.VirtualMachineInstanceMigration {
	return slices.SortedFunc(slices.Values(all), func(a, b *vmi.VirtualMachineInstanceMigration) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.UID, a.UID))
	})
}

// since is when the phase of the migration began, or else when it was made.
func since(m *vmi.VirtualMachineInstanceMigration, p vmi.MigrationPhase) time.Time {
	for _, t := range m.Status.PhaseTransitionTimestamps {
		if t.Phase == p {
			return t.PhaseTransitionTimestamp.Time
		}
	}
	return m.CreationTimestamp.Time
}
