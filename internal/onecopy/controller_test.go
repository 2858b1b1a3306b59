package onecopy

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/vmi"
)

// controller is virt-controller. What it decides is migration.Decide and instance.Decide.
type controller struct {
	*world
	seen       objects
	calls      migration.Calls
	handedOver time.Time
	inFlight   []*call
}

// call is one to a handler.
type call struct {
	name    string
	which   *migration.Asked
	do      func() error
	arrived bool
	err     error
	of      *controller
}

// restart makes another process take the place of this one. Its calls may arrive still.
func (c *controller) restart() {
	w, late := c.world, c.inFlight
	*c = controller{world: w, seen: w.api.read()}
	w.late = append(w.late, late...)
}

// target is the pod of the migration, by the cache or else the API server.
func (c *controller) target() *corev1.Pod {
	if p := c.seen.pods[targetPod]; p != nil {
		return p
	}
	if arrives, answered := c.reach(nil); arrives == nil && answered == nil && c.api.pods[targetPod] != nil {
		c.seen.pods[targetPod] = c.api.pods[targetPod]
	}
	return c.seen.pods[targetPod]
}

// moves does what is to be done for the migration.
func (c *controller) moves() {
	m := c.seen.move
	if m == nil {
		return
	}
	v := c.seen.vmi
	o := migration.Observed{Migration: m, VMI: v, Config: config, Calls: c.calls, Now: c.now}
	if v != nil {
		o.Target = c.target()
		o.Pods = c.seen.list()
		if s := v.Status.MigrationState; s != nil && c.handedOver.IsZero() {
			c.handedOver = c.now
		}
		o.HandedOver = c.handedOver
		if s := v.Status.MigrationState; o.Target != nil && o.Target.Spec.NodeName != "" || o.Target == nil && s != nil {
			o.TargetFenced = isFenced(c.seen.nodes["n2"])
		}
		if migration.Eligible(o) {
			if c.api.vmi == nil || c.api.vmi.ResourceVersion != v.ResourceVersion {
				return
			}
			o.Turn = true
		}
	}
	c.act(m, migration.Decide(o))
}

// lives does what is to be done for the VMI.
func (c *controller) lives() {
	v := c.seen.vmi
	if v == nil {
		return
	}
	o := instance.Observed{VMI: v, Pods: instance.PodsByRole(v, c.seen.list()), Config: config, Now: c.now}
	if name := o.Pods.NodeName(v); name != "" {
		o.Node = instance.Node{Name: name, Object: c.seen.nodes[name]}
	}
	c.act(v, instance.Decide(o))
}

func isFenced(n *corev1.Node) bool {
	return n == nil || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// act does the actions until one fails.
func (c *controller) act(o vmi.Object, p scheduler.Plan) {
	for _, a := range p.Actions {
		var err error
		if o, err = c.do(o, a); err != nil {
			c.note("virt-controller: %s: %v", a, err)
			return
		}
		if _, quiet := a.(scheduler.Emit); !quiet {
			c.note("virt-controller: %s", a)
		}
	}
}

func (c *controller) edit(o vmi.Object, edit func(metav1.Object)) (vmi.Object, error) {
	switch o := o.(type) {
	case *vmi.VirtualMachineInstance:
		return c.writeVMI(nil, &c.seen, o, func(v *vmi.VirtualMachineInstance) { edit(v) })
	case *vmi.VirtualMachineInstanceMigration:
		return c.writeMove(&c.seen, o, func(m *vmi.VirtualMachineInstanceMigration) { edit(m) })
	}
	panic(fmt.Sprintf("%T", o))
}

// pods makes a write about a pod.
func (c *controller) pods(do func()) error {
	arrives, answered := c.reach(nil)
	if arrives == nil {
		do()
	}
	if arrives != nil {
		return arrives
	}
	return answered
}

func (c *controller) do(o vmi.Object, a scheduler.Action) (vmi.Object, error) {
	switch a := a.(type) {
	case scheduler.AddFinalizer:
		return c.edit(o, func(o metav1.Object) { o.SetFinalizers(append(o.GetFinalizers(), a.Finalizer)) })
	case scheduler.RemoveFinalizer:
		return c.edit(o, func(o metav1.Object) {
			o.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == a.Finalizer }))
		})
	case scheduler.SetLabel:
		return c.edit(o, func(o metav1.Object) { relabel(o, map[string]string{a.Key: a.Value}) })
	case scheduler.RemoveLabel:
		return c.edit(o, func(o metav1.Object) { relabel(o, nil, a.Key) })
	case scheduler.ChangeLabels:
		return c.edit(o, func(o metav1.Object) { relabel(o, a.Labels, a.Removed...) })
	case scheduler.WriteStatus[*vmi.VirtualMachineInstance]:
		return c.edit(o, func(o metav1.Object) {
			o.(*vmi.VirtualMachineInstance).Status = *a.Object.Status.DeepCopy()
		})
	case scheduler.WriteStatus[*vmi.VirtualMachineInstanceMigration]:
		return c.edit(o, func(o metav1.Object) {
			o.(*vmi.VirtualMachineInstanceMigration).Status = *a.Object.Status.DeepCopy()
		})
	case scheduler.WriteInstance:
		v, err := a.From, error(nil)
		if fmt.Sprint(a.From.Labels) != fmt.Sprint(a.To.Labels) {
			v, err = c.writeVMI(nil, &c.seen, v, func(v *vmi.VirtualMachineInstance) { v.Labels = a.To.Labels })
		}
		if err == nil {
			_, err = c.writeVMI(nil, &c.seen, v, func(v *vmi.VirtualMachineInstance) { v.Status = *a.To.Status.DeepCopy() })
		}
		return o, err
	case scheduler.CreatePod:
		return o, c.pods(func() {
			if c.api.pods[targetPod] == nil && !c.targetMade {
				p := a.Pod.DeepCopy()
				p.UID, p.CreationTimestamp, p.Status.Phase = targetPod, metav1.NewTime(c.now), corev1.PodPending
				c.api.pods[targetPod], c.targetMade = p, true
			}
		})
	case scheduler.DeletePod:
		return o, c.pods(func() { c.deletePod(a.UID, false) })
	case scheduler.SetPodCondition:
		return o, c.pods(func() {
			c.editPod(a.UID, func(p *corev1.Pod) {
				setCondition(p, a.Condition)
				setCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: a.Condition.Status, Reason: "ReadinessGatesNotReady", LastTransitionTime: metav1.NewTime(c.now)})
			})
		})
	case scheduler.DeleteObject:
		_, err := c.edit(o, func(o metav1.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: c.now}) })
		return o, err
	case scheduler.Emit, scheduler.EmitFor:
		return o, nil
	case scheduler.AcceptMigration:
		state := a.Instance.Status.MigrationState
		from, to := c.named(state.SourceNode), c.named(state.TargetNode)
		c.ask(&c.calls.Accept, "accept", to, func() error { return to.accept(a.Pod, from.incarn) })
		return o, nil
	case scheduler.StartMigration:
		from, to := c.named(a.Instance.Status.NodeName), c.named(a.Instance.Status.MigrationState.TargetNode)
		start, peer := protocol.MigrationStart{UID: migrationUID, Node: to.name, Pod: a.Pod, Settings: a.Settings, Over: a.Over}, to.incarn
		if a.Over {
			c.ask(&c.calls.Over, "over", from, func() error { return from.begin(start, 0) })
			return o, nil
		}
		start.Address = "127.0.0.1:" + strconv.Itoa(peer)
		c.ask(&c.calls.Start, "start", from, func() error { return from.begin(start, peer) })
		return o, nil
	case scheduler.AbortMigration:
		from := c.named(a.Instance.Status.NodeName)
		c.ask(&c.calls.Abort, "abort", from, from.abort)
		return o, nil
	}
	panic(fmt.Sprintf("unknown action %T", a))
}

func relabel(o metav1.Object, labels map[string]string, without ...string) {
	all := map[string]string{}
	for k, v := range o.GetLabels() {
		all[k] = v
	}
	for k, v := range labels {
		all[k] = v
	}
	for _, k := range without {
		delete(all, k)
	}
	o.SetLabels(all)
}

// ask begins a call to the handler of a node, unless it is being made.
func (c *controller) ask(which *migration.Asked, name string, n *node, do func() error) {
	if which.Now {
		return
	}
	which.Now = true
	if which.Since.IsZero() {
		which.Since = c.now
	}
	c.inFlight = append(c.inFlight, &call{name: name, which: which, of: c, do: func() error {
		if !n.up || n.cut {
			return errAway
		}
		return c.called(do)
	}})
}

// deliver lets a call arrive, and answer brings its answer.
func (c *call) deliver() {
	c.arrived, c.err = true, c.do()
	c.of.note("virt-controller's call %s: %v", c.name, c.err)
}

func (c *controller) answer(k *call) {
	k.which.Now, k.which.At, k.which.Refusal = false, c.now, nil
	if k.err != nil {
		reason := reasonOf(k.err)
		if reason == "" {
			reason = vmi.RefusedUnavailable
		}
		k.which.Refusal = &vmi.Finding{Reason: reason, Message: k.err.Error()}
	}
	c.inFlight = slices.DeleteFunc(c.inFlight, func(other *call) bool { return other == k })
}
