package pool_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/expiring"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// cluster is an API server with one pool, and a controller whose caches follow it late, each
// by itself. The loops of pools and of VMs decide by them, and by own writes, as those of
// scheduler/controller do.
type cluster struct {
	*rand.Rand
	t       *testing.T
	seed    uint64
	now     time.Time
	version int
	uids    int

	pools     kept[*vmpool.VirtualMachinePool]
	vms       kept[*vmi.VirtualMachine]
	instances kept[*vmi.VirtualMachineInstance]
	revisions kept[*appsv1.ControllerRevision]
	// ofPools and ofVMs are what the two loops know besides. They are one if one process has
	// both.
	ofPools, ofVMs *known
	// crashes is how many of a hundred plans the controller ends in, and mishaps of guests.
	crashes, mishaps int
	broken           map[string]bool

	// taken are the VMs that the pool restarted while they were ready, and that have not been
	// since.
	taken map[string]*vmi.VirtualMachineInstance
	// proven are the revisions with which a VM was ready.
	proven map[string]bool
	log    []string
}

// kept are the objects of a kind, and what a cache has of them.
type kept[T vmi.Object] struct {
	live, cached map[string]T
	late         []func(map[string]T)
}

func (k *kept[T]) change(name string, to func(map[string]T)) {
	if k.live == nil {
		k.live, k.cached = map[string]T{}, map[string]T{}
	}
	to(k.live)
	k.late = append(k.late, to)
}

// catchUp brings at most so many changes to the cache.
func (k *kept[T]) catchUp(most int) {
	n := min(most, len(k.late))
	for _, to := range k.late[:n] {
		to(k.cached)
	}
	k.late = k.late[n:]
}

// known is what a process knows by its own writes.
type known struct {
	pools         reconcile.Own[*vmpool.VirtualMachinePool]
	vms           reconcile.Own[*vmi.VirtualMachine]
	instances     reconcile.Own[*vmi.VirtualMachineInstance]
	madeVMs       reconcile.Made[*vmi.VirtualMachine]
	madeInstances reconcile.Made[*vmi.VirtualMachineInstance]
	deleted       expiring.Map[types.UID, time.Time]
	written       time.Time
}

func newCluster(t *testing.T, seed uint64) *cluster {
	c := &cluster{
		Rand: rand.New(rand.NewPCG(seed, 1)), t: t, seed: seed, now: time.Unix(1_700_000_000, 0),
		broken: map[string]bool{}, taken: map[string]*vmi.VirtualMachineInstance{}, proven: map[string]bool{},
	}
	p := newWorld(t, int32(1+c.IntN(6))).pool
	p.Spec.VirtualMachineTemplate.Spec.RunStrategy = new([]vmi.RunStrategy{vmi.RunAlways, vmi.RunAlways, vmi.RunRerunOnFailure, vmi.RunManual, vmi.RunOnce}[c.IntN(5)])
	p.Spec.Autohealing = &vmpool.PoolAutohealing{StartUpFailureThreshold: new(int32(1 + c.IntN(3))), MinFailingToStartDuration: &metav1.Duration{Duration: time.Duration(c.IntN(40)) * time.Second}}
	if c.IntN(2) == 0 {
		p.Spec.Autohealing = nil
	}
	store(c, &c.pools, p)
	c.crashes, c.mishaps = []int{0, 5, 20}[c.IntN(3)], []int{0, 0, 3}[c.IntN(3)]
	c.start()
	return c
}

// start is the start of a controller: it lists all objects, and knows nothing else.
func (c *cluster) start() {
	c.catchUp()
	c.ofPools = &known{}
	if c.ofVMs = c.ofPools; c.seed%2 == 0 {
		c.ofVMs = &known{}
	}
}

// catchUp brings all changes to the caches.
func (c *cluster) catchUp() {
	for _, all := range []func(int){c.pools.catchUp, c.vms.catchUp, c.instances.catchUp, c.revisions.catchUp} {
		all(math.MaxInt)
	}
}

// deliver brings some changes to the caches.
func (c *cluster) deliver() {
	for _, catchUp := range []func(int){c.pools.catchUp, c.vms.catchUp, c.instances.catchUp, c.revisions.catchUp} {
		if c.IntN(3) > 0 {
			catchUp(c.IntN(6))
		}
	}
}

func (c *cluster) fail(format string, args ...any) {
	c.t.Helper()
	for _, l := range c.log[max(0, len(c.log)-80):] {
		c.t.Log(l)
	}
	c.t.Fatalf("seed %d: %s", c.seed, fmt.Sprintf(format, args...))
}

func (c *cluster) note(format string, args ...any) {
	c.log = append(c.log, fmt.Sprintf("%4d ", c.now.Unix()-1_700_000_000)+fmt.Sprintf(format, args...))
}

// store stores the object as it is now, and returns it so.
func store[T vmi.Object](c *cluster, k *kept[T], o T) T {
	o = o.DeepCopyObject().(T)
	c.version++
	if o.GetUID() == "" {
		c.uids++
		o.SetUID(types.UID(fmt.Sprintf("uid-%03d", (c.uids*37)%1000)))
		o.SetCreationTimestamp(metav1.NewTime(c.now))
	}
	o.SetResourceVersion(strconv.Itoa(c.version))
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		k.change(o.GetName(), func(all map[string]T) { delete(all, o.GetName()) })
		return o
	}
	k.change(o.GetName(), func(all map[string]T) { all[o.GetName()] = o })
	return o
}

// erase deletes the object.
func erase[T vmi.Object](c *cluster, k *kept[T], o T) {
	if o.GetDeletionTimestamp() == nil {
		o = o.DeepCopyObject().(T)
		o.SetDeletionTimestamp(&metav1.Time{Time: c.now})
		store(c, k, o)
	}
}

// current is the object as it is stored, if it is still the same. It is false if it is not: a
// write is a conflict.
func current[T vmi.Object](k *kept[T], o T) (T, bool) {
	live, ok := k.live[o.GetName()]
	if !ok || live.GetUID() != o.GetUID() || live.GetResourceVersion() != o.GetResourceVersion() {
		return live, false
	}
	return live.DeepCopyObject().(T), true
}

func latest[T vmi.Object](own *reconcile.Own[T], k *kept[T], key string) T {
	return own.Latest("ns/"+key, k.cached[key])
}

func leaving[T vmi.Object](c *cluster, n *known, o T) T {
	if at, ok := n.deleted.Get(o.GetUID(), c.now); ok && o.GetDeletionTimestamp() == nil {
		o = o.DeepCopyObject().(T)
		o.SetDeletionTimestamp(&metav1.Time{Time: at})
	}
	return o
}

// instance is the VMI of the name as a loop sees it.
func (c *cluster) instance(n *known, name string) *vmi.VirtualMachineInstance {
	if i := latest(&n.instances, &c.instances, name); i != nil {
		return leaving(c, n, i)
	}
	return n.madeInstances.Of("ns/"+name, c.now)
}

// observe is what the loop of pools sees.
func (c *cluster) observe() pool.Observed {
	n := c.ofPools
	for _, v := range c.vms.cached {
		n.madeVMs.Seen("ns/"+v.Name, v.UID)
	}
	for _, i := range c.instances.cached {
		n.madeInstances.Seen("ns/"+i.Name, i.UID)
		c.ofVMs.madeInstances.Seen("ns/"+i.Name, i.UID)
	}
	o := pool.Observed{
		Pool: latest(&n.pools, &c.pools, "web").DeepCopy(), Instances: map[string]*vmi.VirtualMachineInstance{}, Taken: map[string]bool{},
		StatusWritten: n.written, Now: c.now,
	}
	for _, name := range slices.Sorted(maps.Keys(c.vms.cached)) {
		o.Taken[name] = true
		if v := latest(&n.vms, &c.vms, name); v != nil && metav1.IsControlledBy(v, o.Pool) {
			o.VMs = append(o.VMs, leaving(c, n, v))
		}
	}
	for _, v := range n.madeVMs.In("ns", c.now) {
		if metav1.IsControlledBy(v, o.Pool) && c.vms.cached[v.Name] == nil {
			o.VMs = append(o.VMs, leaving(c, n, v))
		}
	}
	for name := range c.instances.cached {
		o.Taken[name] = true
	}
	for _, v := range o.VMs {
		if i := c.instance(n, v.Name); i != nil {
			o.Instances[v.Name] = i
		}
	}
	for _, r := range c.revisions.cached {
		if metav1.IsControlledBy(r, o.Pool) {
			o.Revisions = append(o.Revisions, leaving(c, n, r))
		}
	}
	return o
}

// decide is one turn of the loop of pools.
func (c *cluster) decide() {
	o := c.observe()
	p := pool.Decide(o)
	if slices.ContainsFunc(p.Actions, changesVM) {
		if _, ok := current(&c.pools, o.Pool); !ok {
			return // the API server has another pool
		}
	}
	end := len(p.Actions)
	if c.IntN(100) < c.crashes {
		end = c.IntN(end + 1)
	}
	for _, a := range p.Actions[:end] {
		if !c.act(o, a) {
			return
		}
	}
	if end < len(p.Actions) {
		c.note("the controller dies")
		c.start()
	}
}

func changesVM(a scheduler.Action) bool {
	switch a.(type) {
	case scheduler.DeleteVM, scheduler.ChangeVM, scheduler.RestartVM:
		return true
	}
	return false
}

// act does an action of the pool. It is false if the API server refuses it.
func (c *cluster) act(o pool.Observed, a scheduler.Action) bool {
	n := c.ofPools
	switch a := a.(type) {
	case scheduler.CreateRevision:
		c.makeRevision(a.Revision)
	case scheduler.DeleteRevision:
		if r := c.revisions.live[a.Name]; r != nil && r.UID == a.UID {
			erase(c, &c.revisions, r)
		}
		n.deleted.Put(a.UID, c.now, c.now, time.Minute)
	case scheduler.CreateVM:
		return c.create(o, a.VM)
	case scheduler.ChangeVM:
		return c.changed(a)
	case scheduler.RestartVM:
		return c.restart(o, a)
	case scheduler.DeleteVM:
		return c.delete(o, a.VM)
	case scheduler.WriteStatus[*vmpool.VirtualMachinePool]:
		p, ok := current(&c.pools, o.Pool)
		if !ok {
			return false
		}
		p.Status = *a.Object.Status.DeepCopy()
		p = store(c, &c.pools, p)
		n.pools.Wrote(p)
		n.written = c.now
		o.Pool.ResourceVersion = p.ResourceVersion
	}
	return true
}

func (c *cluster) makeRevision(r *appsv1.ControllerRevision) {
	if c.revisions.live[r.Name] == nil {
		store(c, &c.revisions, r)
	}
}

func (c *cluster) create(o pool.Observed, v *vmi.VirtualMachine) bool {
	n := c.ofPools
	if there := c.vms.live[v.Name]; there != nil {
		if !metav1.IsControlledBy(there, o.Pool) || there.DeletionTimestamp != nil {
			return false
		}
		n.madeVMs.Note(there, c.now)
		return true
	}
	if o.Pool.Spec.Paused {
		c.fail("VM %s is made by a paused pool", v.Name)
	}
	v.Generation = 1
	v = store(c, &c.vms, v)
	n.madeVMs.Note(v, c.now)
	c.note("create %s with %s", v.Name, short(v.Labels[vmi.PoolRevisionLabel]))
	if c.revisions.live[v.Labels[vmi.PoolRevisionLabel]] == nil {
		c.fail("VM %s is made without its revision", v.Name)
	}
	if there := c.members(); len(there) > o.Pool.Spec.Wanted() {
		c.fail("%d VMs are asked for, and %d are made", o.Pool.Spec.Wanted(), len(there))
	}
	return true
}

// members are the VMs of the pool that are not being deleted.
func (c *cluster) members() (all []*vmi.VirtualMachine) {
	for _, name := range slices.Sorted(maps.Keys(c.vms.live)) {
		if v := c.vms.live[name]; v.DeletionTimestamp == nil && metav1.IsControlledBy(v, c.pools.live["web"]) {
			all = append(all, v)
		}
	}
	return all
}

func (c *cluster) changed(a scheduler.ChangeVM) bool {
	v, ok := current(&c.vms, a.From)
	if !ok {
		return false
	}
	c.owned(v, "changed")
	v.Spec, v.Generation = a.To.Spec, v.Generation+1
	maps.Copy(v.Labels, a.To.Labels)
	if v.Annotations == nil {
		v.Annotations = map[string]string{}
	}
	maps.Copy(v.Annotations, a.To.Annotations)
	v = store(c, &c.vms, v)
	c.ofPools.vms.Wrote(v)
	c.note("change %s to %s", v.Name, short(v.Labels[vmi.PoolRevisionLabel]))
	return c.forgive(v)
}

// forgive lets failed starts of the VM count no more.
func (c *cluster) forgive(v *vmi.VirtualMachine) bool {
	if f := v.Status.StartFailure; f != nil && f.ConsecutiveFailCount > 0 {
		if c.crashes > 0 && c.IntN(4) == 0 {
			return false // another has changed it
		}
		v = v.DeepCopy()
		v.Status.StartFailure = &vmi.StartFailure{LastFailedVMIUID: f.LastFailedVMIUID}
		c.ofPools.vms.Wrote(store(c, &c.vms, v))
	}
	return true
}

// owned requires of a VM that the pool does something with that it may.
func (c *cluster) owned(v *vmi.VirtualMachine, done string) {
	if p := c.pools.live["web"]; p.Spec.Paused {
		c.fail("VM %s is %s by a paused pool", v.Name, done)
	} else if !metav1.IsControlledBy(v, p) {
		c.fail("VM %s is %s, which was taken out of the pool", v.Name, done)
	}
}

func (c *cluster) restart(o pool.Observed, a scheduler.RestartVM) bool {
	patches, err := verb.Restart(a.VM, a.Instance, c.now)
	if err != nil {
		return true
	}
	require.Len(c.t, patches, 1)
	v, ok := current(&c.vms, a.VM)
	if !ok {
		return false
	}
	c.owned(v, "restarted")
	uid := a.Instance.UID
	v.Status.StateChangeRequests = []vmi.StateChangeRequest{{Action: vmi.StopRequest, UID: &uid}, {Action: vmi.StartRequest}}
	v.Status.StartFailure = nil
	verb.SetStopping(&v.Status, metav1.NewTime(c.now))
	v = store(c, &c.vms, v)
	c.ofPools.vms.Wrote(v)
	c.note("restart %s to %s", v.Name, short(v.Labels[vmi.PoolRevisionLabel]))
	c.restarted(v, uid)
	return true
}

// restarted requires that the restart of the VM was due.
func (c *cluster) restarted(v *vmi.VirtualMachine, uid types.UID) {
	i, revision := c.instances.live[v.Name], v.Labels[vmi.PoolRevisionLabel]
	if i == nil || i.UID != uid {
		return // it stops no VMI
	}
	if !isReady(i) {
		return
	}
	if i.Labels[vmi.PoolRevisionLabel] == revision {
		c.fail("VM %s is restarted, which runs with %s", v.Name, short(revision))
	}
	c.taken[v.Name] = i
	if n, most := len(c.taken), c.pools.live["web"].Spec.MostUnavailable(); n > most {
		c.fail("%d VMs are not ready because of the pool, and %d may be: %v", n, most, slices.Sorted(maps.Keys(c.taken)))
	}
	with := 0
	for name := range c.taken {
		if c.vms.live[name].Labels[vmi.PoolRevisionLabel] == revision {
			with++
		}
	}
	if !c.proven[revision] && with > 1 {
		c.fail("%d VMs were restarted with %s before one was ready: %v", with, short(revision), slices.Sorted(maps.Keys(c.taken)))
	}
}

func (c *cluster) delete(o pool.Observed, v *vmi.VirtualMachine) bool {
	live, ok := current(&c.vms, v)
	switch {
	case live == nil || live.UID != v.UID:
	case !ok:
		return false
	default:
		c.owned(live, "deleted")
		i := o.Instances[v.Name]
		heals := slices.ContainsFunc(c.pools.live["web"].Status.Replaced, func(r vmpool.ReplacedVM) bool { return r.UID == v.UID })
		if heals && i != nil && isReady(i) && metav1.IsControlledBy(i, v) {
			c.fail("VM %s is replaced, whose guest is ready", v.Name)
		}
		c.note("delete %s heals %v", v.Name, heals)
		erase(c, &c.vms, live)
		delete(c.taken, v.Name)
	}
	c.ofPools.deleted.Put(v.UID, c.now, c.now, time.Minute)
	return true
}

func isReady(i *vmi.VirtualMachineInstance) bool {
	c := i.Status.Condition(vmi.ConditionReady)
	return i.DeletionTimestamp == nil && i.Status.Phase == vmi.PhaseRunning && c != nil && c.Status == corev1.ConditionTrue
}

func short(revision string) string { return revision[max(0, len(revision)-3):] }

// decideVM is one turn of the loop of VMs.
func (c *cluster) decideVM(name string) {
	n := c.ofVMs
	v := latest(&n.vms, &c.vms, name)
	if v == nil {
		return
	}
	o := vm.Observed{VM: v, VMI: c.instance(n, name), Now: c.now}
	for _, r := range c.revisions.cached {
		if vmi.StartedVM(r.Name) == v.UID {
			o.Revisions = append(o.Revisions, r)
		}
	}
	for _, a := range vm.Decide(o).Actions {
		var ok bool
		if v, ok = c.actVM(v, a); !ok {
			return
		}
	}
}

// actVM does an action of the loop of VMs, and returns the VM as it is then. It is false if the
// API server refuses it.
func (c *cluster) actVM(v *vmi.VirtualMachine, a scheduler.Action) (*vmi.VirtualMachine, bool) {
	n := c.ofVMs
	write := func(change func(*vmi.VirtualMachine)) (*vmi.VirtualMachine, bool) {
		now, ok := current(&c.vms, v)
		if !ok {
			return v, false
		}
		change(now)
		now = store(c, &c.vms, now)
		n.vms.Wrote(now)
		return now, true
	}
	switch a := a.(type) {
	case scheduler.WriteStatus[*vmi.VirtualMachine]:
		return write(func(now *vmi.VirtualMachine) { now.Status = *a.Object.Status.DeepCopy() })
	case scheduler.AddFinalizer:
		return write(func(now *vmi.VirtualMachine) { now.Finalizers = append(now.Finalizers, a.Finalizer) })
	case scheduler.RemoveFinalizer:
		return write(func(now *vmi.VirtualMachine) { now.Finalizers = nil })
	case scheduler.CreateRevision:
		c.makeRevision(a.Revision)
	case scheduler.DeleteRevision:
		if r := c.revisions.live[a.Name]; r != nil && r.UID == a.UID {
			erase(c, &c.revisions, r)
		}
	case scheduler.CreateInstance:
		if there := c.instances.live[v.Name]; there != nil {
			if !metav1.IsControlledBy(there, v) || there.DeletionTimestamp != nil {
				return v, false
			}
			n.madeInstances.Note(there, c.now)
			break
		}
		n.madeInstances.Note(store(c, &c.instances, a.Instance), c.now)
		c.note("start %s with %s", v.Name, short(a.Instance.Labels[vmi.PoolRevisionLabel]))
	case scheduler.DeleteInstance:
		i, ok := current(&c.instances, a.Instance)
		if i != nil && i.UID == a.Instance.UID {
			if !ok {
				return v, false
			}
			erase(c, &c.instances, i)
			c.note("stop %s", v.Name)
		}
		n.deleted.Put(a.Instance.UID, c.now, c.now, time.Minute)
	case scheduler.ChangeInstance:
		i, ok := current(&c.instances, a.Instance)
		if !ok {
			return v, i == nil || i.UID != a.Instance.UID
		}
		maps.Copy(i.Annotations, a.Annotations)
		n.instances.Wrote(store(c, &c.instances, i))
	case scheduler.Emit:
	default:
		c.t.Fatalf("action %T", a)
	}
	return v, true
}

// play is a step of the VMI: it starts, is ready, ends or is gone.
func (c *cluster) play(name string) {
	i := c.instances.live[name].DeepCopy()
	s, now := &i.Status, metav1.NewTime(c.now)
	broken := c.broken[i.Spec.Domain.Memory.Guest.String()]
	switch {
	case s.Phase.Final() && i.DeletionTimestamp != nil:
		i.Finalizers = nil
	case s.Phase.Final():
		return
	case i.DeletionTimestamp != nil:
		s.SetPhase(vmi.PhaseSucceeded, now)
	case s.Phase == vmi.PhaseUnset:
		s.SetPhase(vmi.PhaseScheduling, now)
		s.VirtualMachineRevisionName = vmi.StartRevision(i.OwnerReferences[0].UID, i.RevisionGeneration())
	case s.Phase == vmi.PhaseScheduling && broken:
		s.SetPhase(vmi.PhaseFailed, now)
		c.note("%s fails to start", name)
	case s.Phase == vmi.PhaseScheduling:
		s.SetPhase(vmi.PhaseRunning, now)
	case !isReady(i):
		s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, now)
		c.proven[i.Labels[vmi.PoolRevisionLabel]] = true
		delete(c.taken, name)
		c.note("%s is ready with %s", name, short(i.Labels[vmi.PoolRevisionLabel]))
	case c.IntN(100) < c.mishaps:
		s.SetPhase([]vmi.Phase{vmi.PhaseFailed, vmi.PhaseSucceeded}[c.IntN(2)], now)
		c.note("%s ends by itself", name)
	default:
		return
	}
	if s.Phase != vmi.PhaseRunning {
		s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse}, now)
	}
	store(c, &c.instances, i)
}

// editPool is what a user does with the pool.
func (c *cluster) editPool(change func(*vmpool.VirtualMachinePoolSpec)) {
	p := c.pools.live["web"].DeepCopy()
	change(&p.Spec)
	p.Generation++
	store(c, &c.pools, p)
}

// editVM is what a user does with a VM.
func (c *cluster) editVM(name string, change func(*vmi.VirtualMachine)) {
	v := c.vms.live[name].DeepCopy()
	was := v.Spec.Strategy()
	change(v)
	if v.Spec.Strategy() != was {
		v.Generation++
	}
	store(c, &c.vms, v)
}
