package pool_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// What a pool does is checked in cluster, by what is there and not by what the pool sees.
func TestAPoolDoesNoHarmByCachesOfDifferentAge(t *testing.T) {
	t.Parallel()
	for seed := range testenv.Seeds(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, seed)
			for range 150 {
				c.step()
			}
			c.rest()
		})
	}
}

// step is a moment of the cluster.
func (c *cluster) step() {
	c.deliver()
	c.user()
	if c.IntN(2) == 0 {
		c.decide()
	}
	c.others(2, 3)
	// What was made is remembered for 15 seconds: caches are not older.
	if c.IntN(6) == 0 {
		c.catchUp()
		c.now = c.now.Add(15 * time.Second)
	}
	c.now = c.now.Add(time.Duration(c.IntN(2)) * time.Second)
}

// others are turns of the loop of VMs, and steps of VMIs: one in so many.
func (c *cluster) others(vms, instances int) {
	for _, name := range slices.Sorted(maps.Keys(c.vms.live)) {
		if c.IntN(vms) == 0 {
			c.decideVM(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.instances.live)) {
		if c.IntN(instances) == 0 {
			c.play(name)
		}
	}
}

// user is what users do, now and then.
func (c *cluster) user() {
	switch c.IntN(60) {
	case 0:
		n := int32(c.IntN(7))
		c.note("scale to %d", n)
		c.editPool(func(s *vmpool.VirtualMachinePoolSpec) { s.Replicas = &n })
	case 1, 2:
		memory := fmt.Sprint(64+c.IntN(4), "Mi")
		c.broken[memory] = c.IntN(2) == 0
		c.note("template %s broken %v", memory, c.broken[memory])
		c.editPool(func(s *vmpool.VirtualMachinePoolSpec) {
			t := s.VirtualMachineTemplate
			t.Spec.Template.Spec.Domain.Memory.Guest = new(resource.MustParse(memory))
		})
	case 3:
		c.editPool(func(s *vmpool.VirtualMachinePoolSpec) { s.Paused = c.IntN(3) == 0 })
	case 4:
		n := intstr.FromInt32(int32(c.IntN(4)))
		c.note("maxUnavailable %s", n.String())
		// What is not ready now is not so because of fewer.
		clear(c.taken)
		c.editPool(func(s *vmpool.VirtualMachinePoolSpec) { s.MaxUnavailable = &n })
	case 5:
		c.note("what was broken is mended")
		clear(c.broken)
	case 6, 7, 8, 9:
		all := c.members()
		if len(all) > 0 {
			c.use(all[c.IntN(len(all))])
		}
	}
}

// use is what a user does with a VM.
func (c *cluster) use(v *vmi.VirtualMachine) {
	delete(c.taken, v.Name)
	switch c.IntN(5) {
	case 0:
		c.note("a user takes %s out", v.Name)
		c.editVM(v.Name, func(v *vmi.VirtualMachine) { v.OwnerReferences = nil })
	case 1:
		c.note("a user deletes %s", v.Name)
		erase(c, &c.vms, v)
	case 2:
		c.note("a user stops %s", v.Name)
		c.editVM(v.Name, func(v *vmi.VirtualMachine) { v.Spec.RunStrategy = new(vmi.RunHalted) })
	default:
		c.run(v)
	}
}

// run makes the VM one that its user wants to run.
func (c *cluster) run(v *vmi.VirtualMachine) {
	to := c.pools.live["web"].Spec.VirtualMachineTemplate.Spec.Strategy()
	c.editVM(v.Name, func(v *vmi.VirtualMachine) {
		v.Spec.RunStrategy = &to
		i := c.instances.live[v.Name]
		if to == vmi.RunAlways || to == vmi.RunOnce || len(v.Status.StateChangeRequests) > 0 || i != nil && !i.Status.Phase.Final() {
			return
		}
		v.Status.StateChangeRequests = []vmi.StateChangeRequest{{Action: vmi.StartRequest}}
		if i != nil {
			v.Status.StateChangeRequests = append([]vmi.StateChangeRequest{{Action: vmi.StopRequest, UID: &i.UID}}, v.Status.StateChangeRequests...)
		}
	})
}

// rest is a time in which nothing happens but what the controller does. Then the pool is what
// was asked for.
func (c *cluster) rest() {
	c.crashes, c.mishaps = 0, 0
	clear(c.broken)
	c.editPool(func(s *vmpool.VirtualMachinePoolSpec) { s.Paused = false })
	c.note("rest")
	for n := range 400 {
		if n%100 == 50 {
			for _, v := range c.members() {
				if i := c.instances.live[v.Name]; i == nil || i.Status.Phase.Final() {
					c.run(v)
				}
			}
		}
		c.catchUp()
		c.decide()
		c.others(1, 1)
		c.now = c.now.Add(5 * time.Second)
	}
	c.atRest()
}

func (c *cluster) atRest() {
	p := c.pools.live["web"]
	r, err := pool.Revision(p)
	require.NoError(c.t, err)
	all := c.members()
	if len(all) != p.Spec.Wanted() {
		c.fail("%d VMs are there, and %d are wanted", len(all), p.Spec.Wanted())
	}
	if p.Spec.VirtualMachineTemplate.Spec.Strategy() == vmi.RunOnce {
		return // one that ends does not start again
	}
	for _, v := range all {
		i := c.instances.live[v.Name]
		if i == nil || !isReady(i) || i.Labels[vmi.PoolRevisionLabel] != r.Name || v.Labels[vmi.PoolRevisionLabel] != r.Name {
			c.fail("VM %s does not run with the template", v.Name)
		}
		if c.revisions.live[r.Name] == nil {
			c.fail("the revision of VM %s is not there", v.Name)
		}
	}
	s := p.Status
	if int(s.ReadyReplicas) != len(all) || len(s.Replaced) > 0 || len(s.Conditions) > 0 {
		c.fail("status %+v", s)
	}
	for _, r := range c.revisions.live {
		if metav1.IsControlledBy(r, p) && len(all) > 0 && !slices.ContainsFunc(all, func(v *vmi.VirtualMachine) bool { return v.Labels[vmi.PoolRevisionLabel] == r.Name }) {
			c.fail("revision %s is used by nothing", r.Name)
		}
	}
}

// given is a pool of n VMs that run with another template than the pool has now, one of which may
// be restarted at a time.
func given(t *testing.T, n int32, s vmi.RunStrategy) *world {
	w := newWorld(t, n)
	w.settle()
	w.pool.Spec.MaxUnavailable = new(intstr.FromInt32(1))
	w.template("65Mi")
	w.pool.Spec.VirtualMachineTemplate.Spec.RunStrategy = &s
	for _, v := range w.vms {
		v.Spec.RunStrategy = &s
	}
	return w
}

func restarts(p scheduler.Plan) (names []string) {
	for _, a := range p.Actions {
		if r, ok := a.(scheduler.RestartVM); ok {
			names = append(names, r.VM.Name)
		}
	}
	return names
}

func TestAVMThatIsStartedByHandIsNotReadyUntilItRuns(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *vmi.VirtualMachine){
		"it is to start": func(w *world, v *vmi.VirtualMachine) {
			delete(w.vmis, v.Name)
			v.Status.StateChangeRequests = []vmi.StateChangeRequest{{Action: vmi.StartRequest}}
		},
		"it was started a moment ago": func(w *world, v *vmi.VirtualMachine) {
			delete(w.vmis, v.Name)
			v.Status.PrintableStatus = vmi.StatusStarting
		},
		"it failed to start": func(w *world, v *vmi.VirtualMachine) {
			i := w.vmis[v.Name]
			i.Labels = v.Labels
			i.Status = vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseFailed}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := given(t, 3, vmi.RunManual)
			w.act(pool.Decide(w.observe()), -1)
			p := pool.Decide(w.observe())
			require.Len(t, restarts(p), 1)
			v := w.find(restarts(p)[0])
			w.act(p, -1)
			v.Status.StateChangeRequests, v.Status.Ready = nil, false
			change(w, v)
			require.Empty(t, restarts(pool.Decide(w.observe())))
			w.act(pool.Decide(w.observe()), -1)
			require.Empty(t, restarts(pool.Decide(w.observe())), "no other is next")
		})
	}
}

func TestAVMThatIsAboutToStartTriesTheTemplateFirst(t *testing.T) {
	t.Parallel()
	w := given(t, 3, vmi.RunAlways)
	w.pool.Spec.MaxUnavailable = nil
	v := w.find("web-1")
	delete(w.vmis, v.Name)
	v.Status.Ready, v.Status.PrintableStatus = false, vmi.StatusStopping
	w.act(pool.Decide(w.observe()), -1)
	require.Equal(t, []string{"web-1"}, w.changed)
	require.Empty(t, restarts(pool.Decide(w.observe())))
}

func TestAVMWhoseGuestRunsDoesNotFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.pool.Spec.Autohealing = &vmpool.PoolAutohealing{MinFailingToStartDuration: &metav1.Duration{}}
	w.settle()
	w.find("web-0").Status.StartFailure = &vmi.StartFailure{ConsecutiveFailCount: 3} // until its loop has seen the VMI
	require.Empty(t, deletions(pool.Decide(w.observe())))
	delete(w.vmis, "web-0")
	require.Equal(t, []string{"web-0"}, deletions(pool.Decide(w.observe())))
}

func TestTheRevisionOfTheVMsIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.settle()
	is := w.revisions[0]
	for name, revisions := range map[string][]*appsv1.ControllerRevision{
		"it is gone":     nil,
		"it was deleted": {{ObjectMeta: metav1.ObjectMeta{Name: is.Name, DeletionTimestamp: &metav1.Time{Time: w.now}}}},
	} {
		o := w.observe()
		o.Revisions = revisions
		a := pool.Decide(o).Actions
		require.Len(t, a, 1, name)
		require.Equal(t, is.Name, a[0].(scheduler.CreateRevision).Revision.Name, name)
	}
}
