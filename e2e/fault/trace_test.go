package fault

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	scheduled "github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// limit is how long a wait of a trace may take. The longest way back from a fault is that
// of a watch, which is opened again after up to 30 seconds, and of the lease, after 15.
const limit = 90 * time.Second

// wait is a wait of at most limit. The time in which the host lets the tests not run does
// not count.
type wait struct {
	last  time.Time
	spent time.Duration
}

func newWait() *wait { return &wait{last: time.Now()} }

// over reports whether the time is over. It is called at each look.
func (w *wait) over() bool {
	w.spent += min(time.Since(w.last), 2*time.Second)
	w.last = time.Now()
	return w.spent > limit
}

// user is who makes the objects of a trace in a namespace, without faults.
type user struct {
	namespace string
	// handled says that the handlers are processes: not each migration succeeds when one of them
	// ends.
	handled bool
	// pools says that the trace has a pool. It makes the trace half as long again, so only the whole
	// sweep has it.
	pools bool
	// failed are the migrations that have failed.
	failed []string
	// shots are what there was at the rests of the trace, by the name of the rest.
	shots map[string]shot
	// want is what there is at them without a fault. Nil: it is not known yet.
	want map[string]shot
}

// shot is what there is in a namespace, without what differs from run to run.
type shot map[string]any

// claimed are the names of the claims of a trace. Each may have one writer at a time.
const (
	shared = "shared" // of two VMIs
	own    = "own"    // of the VM
)

// moverName is the name of the VMI that is migrated.
const moverName = "mover"

// on are the options of a guest, which has a disk in each of the claims.
func on(name string, claims ...string) []vmitest.Option {
	out := []vmitest.Option{vmitest.WithName(name), vmitest.WithMasquerade("default"), vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithGracePeriod(0)}
	for _, c := range claims {
		out = append(out, vmitest.WithClaim(c, c))
	}
	return out
}

// trace makes a VMI, a VM and a replica set; it stops the VM, starts it again and restarts it
// by its verb, while a second VMI waits for the claim of the first; and it deletes them all.
// Another VMI is migrated there and back; where the handlers are played, it goes back for an
// eviction, and a pool is made, gets another template and is scaled in beside all that. After each
// step it waits for what must follow.
func trace(ctx context.Context, u *user) error {
	one, next := vmitest.New(on("one", shared)...), vmitest.New(on("next", shared)...)
	m := vmitest.NewVM(vmi.RunAlways, on("vm", own)...)
	s := vmitest.NewReplicaSet(2, on("set")...)
	mover := vmitest.New(on(moverName)...)
	mover.Spec.EvictionStrategy = new(vmi.EvictionLiveMigrate)
	for _, o := range []metav1.Object{one, next, m, s, mover} {
		o.SetNamespace("")
		o.SetUID("")
		o.SetGeneration(0)
	}
	instances, vms, sets := world.vmis.VirtualMachineInstances(u.namespace), world.vmis.VirtualMachines(u.namespace), world.vmis.VirtualMachineInstanceReplicaSets(u.namespace)
	if err := errors.Join(u.claim(ctx, shared), u.claim(ctx, own)); err != nil {
		return err
	}
	create := func(v *vmi.VirtualMachineInstance) error {
		_, err := instances.Create(ctx, v, metav1.CreateOptions{})
		return err
	}
	run := func(s vmi.RunStrategy) error {
		_, err := vms.Patch(ctx, m.Name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"runStrategy":%q}}`, s), metav1.PatchOptions{})
		return err
	}
	for _, step := range []struct {
		rest string
		do   func() error
	}{
		{"running", func() error {
			_, errVM := vms.Create(ctx, m, metav1.CreateOptions{})
			_, errSet := sets.Create(ctx, s, metav1.CreateOptions{})
			return errors.Join(create(one), errVM, errSet, create(mover), u.createPool(ctx))
		}},
		{"stopped", func() error {
			_, errSet := sets.Patch(ctx, s.Name, types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{})
			return errors.Join(create(next), run(vmi.RunHalted), errSet, u.migrate(ctx, "there", mover.Name), u.patchPool(ctx, template, true))
		}},
		{"started again", func() error {
			err := errors.Join(run(vmi.RunAlways), instances.Delete(ctx, one.Name, metav1.DeleteOptions{}), u.patchPool(ctx, scaleIn, false))
			if u.handled {
				return errors.Join(err, u.migrate(ctx, "back", mover.Name))
			}
			return errors.Join(err, u.evict(ctx, mover.Name))
		}},
		{"restarted", func() error { return u.restart(ctx, m.Name) }},
		{"deleted", func() error {
			return errors.Join(
				instances.Delete(ctx, next.Name, metav1.DeleteOptions{}),
				vms.Delete(ctx, m.Name, metav1.DeleteOptions{}),
				sets.Delete(ctx, s.Name, metav1.DeleteOptions{}),
				instances.Delete(ctx, mover.Name, metav1.DeleteOptions{}),
				u.deletePool(ctx))
		}},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("before all is %s: %w", step.rest, err)
		}
		if err := u.rest(ctx, step.rest); err != nil {
			return err
		}
	}
	return nil
}

// wantedVMIs are how many VMIs a trace makes, by name or by owner, pooledVMIs those of the pool,
// and wantedWriters how many launchers have each claim, one after the other.
var (
	wantedVMIs    = map[string]int{"one": 1, "next": 1, moverName: 1, "VirtualMachine/vm": 3, "VirtualMachineInstanceReplicaSet/set": 2}
	pooledVMIs    = map[string]int{"VirtualMachine/" + poolName + "-0": 2, "VirtualMachine/" + poolName + "-1": 2}
	wantedPods    = map[string]int{moverName: 3}
	wantedWriters = map[string]int{shared: 2, own: 3}
)

// claim makes a claim that one node has at a time. It is not bound, as one whose volume is made
// when its pod is scheduled.
func (u *user) claim(ctx context.Context, name string) error {
	_, err := world.kube.CoreV1().PersistentVolumeClaims(u.namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	return err
}

// restart restarts a VM by its verb, and returns when it has another VMI. What was not
// answered may have been done: only what was not is asked for again.
func (u *user) restart(ctx context.Context, name string) error {
	before, err := world.vmis.VirtualMachineInstances(u.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	asked := false
	for w := newWait(); ; {
		v, err := world.vmis.VirtualMachineInstances(u.namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && v.UID != before.UID:
			return nil
		case err == nil && !asked:
			asked, err = u.askRestart(ctx, name)
		}
		if w.over() {
			return fmt.Errorf("VM %s was not restarted: asked: %t: %w", name, asked, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// askRestart calls the verb, unless the VM says that it is called.
func (u *user) askRestart(ctx context.Context, name string) (bool, error) {
	m, err := world.vmis.VirtualMachines(u.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || len(m.Status.StateChangeRequests) > 0 {
		return err == nil, err
	}
	c, err := world.reviews.verbs(u.namespace)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit/3)
	defer cancel()
	err = c.VirtualMachines(u.namespace).Restart(ctx, name, vmi.RestartOptions{})
	return err == nil, err
}

// quiet is how long nothing changes at a rest.
const quiet = 4 * time.Second

// rest waits until what there is, is what there is at this rest without faults, and keeps
// it. Without anything to compare with, it waits until nothing changes for quiet.
func (u *user) rest(ctx context.Context, name string) error {
	want := u.want[name]
	var last shot
	var calm time.Duration
	looked := time.Now()
	for w := newWait(); ; {
		seen := world.nodes.events(u.namespace)
		now, err := look(ctx, u.namespace)
		calm += min(time.Since(looked), time.Second) // the host may have let nothing run
		looked = time.Now()
		if err == nil {
			u.shots[name] = now
		}
		switch {
		case err != nil: // on a busy host the API server does not answer in time
		case want == nil && !equal(now, last):
			last, calm = now, 0
		case want == nil && calm > quiet, want != nil && equal(now, want):
			return nil
		}
		if w.over() {
			return errors.Join(err, fmt.Errorf("when all is %s, there is another end than without a fault:\n%s", name, difference(map[string]any(want), map[string]any(u.shots[name]))))
		}
		// Most looks would find what the one before found, and cost more than all else.
		for i := 0; i < 25 && (i == 0 || world.nodes.events(u.namespace) == seen); i++ {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

func equal(a, b shot) bool { return text(a) == text(b) }

func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has come as JSON
	}
	return string(out)
}

// difference names what is another, one line for each.
func difference(want, got any) string {
	var b strings.Builder
	differ(&b, "", want, got)
	return b.String()
}

func differ(b *strings.Builder, path string, want, got any) {
	if text(want) == text(got) {
		return
	}
	w, ok := want.(map[string]any)
	g, both := got.(map[string]any)
	if ok && both {
		all := maps.Clone(w)
		maps.Copy(all, g)
		for _, k := range slices.Sorted(maps.Keys(all)) {
			differ(b, path+" "+k, w[k], g[k])
		}
		return
	}
	if l, r := list(want), list(got); l != nil && len(l) == len(r) {
		for i := range l {
			differ(b, fmt.Sprintf("%s[%d]", path, i), l[i], r[i])
		}
		return
	}
	fmt.Fprintf(b, " %s: want %s, got %s\n", path, text(want), text(got))
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// profile is by which objects are completed before they are compared: those that were
// written while the webhook was down are stored as they were.
var profile = defaults.Profile{Architecture: "amd64"}

// look is all that is in a namespace and belongs to VMIs.
func look(ctx context.Context, namespace string) (shot, error) {
	out := shot{}
	var all []any
	instances, err := world.vmis.VirtualMachineInstances(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for i := range instances.Items {
		v := defaults.Instance(&instances.Items[i], profile)
		delete(v.Annotations, vmi.PCITopologyAnnotation)
		all = append(all, v)
	}
	vms, err := world.vmis.VirtualMachines(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for i := range vms.Items {
		all = append(all, defaults.VirtualMachine(&vms.Items[i], profile))
	}
	sets, err := world.vmis.VirtualMachineInstanceReplicaSets(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		all = append(all, defaults.ReplicaSet(&sets.Items[i], profile))
	}
	pools, err := client.Of(world.vmis, vmpool.VirtualMachinePools, namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for i := range pools.Items {
		all = append(all, &pools.Items[i])
	}
	pods, err := world.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: vmi.AppLabel + "=" + vmi.LauncherApp})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Status.Phase == corev1.PodSucceeded {
			p.Status.Conditions = nil // its gate may be closed before its end or not
		}
		all = append(all, p)
	}
	claims, err := world.kube.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for i := range claims.Items {
		all = append(all, &claims.Items[i])
	}
	revisions, err := world.kube.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for i := range revisions.Items {
		r := &revisions.Items[i]
		if ref := metav1.GetControllerOfNoCopy(r); ref != nil && ref.Kind == vmpool.VirtualMachinePools.Kind {
			all = append(all, r)
			continue
		}
		var of vmi.VirtualMachine
		if err := json.Unmarshal(r.Data.Raw, &of); err != nil {
			return nil, err
		}
		r.Data.Raw, r.Data.Object = nil, defaults.VirtualMachine(&of, profile)
		all = append(all, r)
	}
	migrations, err := world.vmis.VirtualMachineInstanceMigrations(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for i := range migrations.Items {
		all = append(all, &migrations.Items[i])
	}
	for _, o := range all {
		name := strings.TrimPrefix(fmt.Sprintf("%T", o), "*")
		name = name[strings.LastIndex(name, ".")+1:] + " " + o.(metav1.Object).GetName()
		if by := o.(metav1.Object).GetAnnotations()[vmi.MigrationJobAnnotation]; by != "" {
			name += " of " + by // the pods of a VMI that moves have names with random ends
		}
		if ref := metav1.GetControllerOfNoCopy(o.(metav1.Object)); ref != nil && strings.HasPrefix(name, "ControllerRevision ") {
			name += " of " + ref.Name
		}
		name = steady(name, namespace)
		for out[name] != nil {
			name += "'" // of VMIs of a set, which are alike
		}
		out[name] = normal(o, namespace)
	}
	return out, nil
}

// normal is the object without what differs from run to run.
func normal(o any, namespace string) any {
	var v map[string]any
	if err := json.Unmarshal([]byte(steady(text(o), namespace)), &v); err != nil {
		panic(err) // it has come from there
	}
	return without(v)
}

// differs are fields of objects that differ from run to run.
var differs = []string{
	"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields", "namespace", "generation", "observedGeneration",
	"lastTransitionTime", "lastProbeTime", "lastUpdateTime", "phaseTransitionTimestamps", "startedAt", "finishedAt", "startTime",
	"startTimestamp", "endTimestamp", "targetNodeDomainReadyTimestamp",
	"serial", "uuid", "macAddress", "mac", "revision", "kubevirt.io/created-by", "activePods", "podvisor.io/template-hash",
	vmi.StartRevisionAnnotation, // a VM that was stored while the webhook was down gets another revision when it is completed
}

func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range differs {
			delete(v, k)
		}
		for k := range v {
			v[k] = without(v[k])
		}
		if c, ok := v["conditions"].([]any); ok { // in whatever order they were set
			slices.SortFunc(c, func(a, b any) int { return strings.Compare(text(a), text(b)) })
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	}
	return v
}

// oracle says what of a history is wrong: each VMI has legal phases, and everything was
// made as often as a trace without a fault makes it, besides a pod for each migration that failed.
func oracle(lives []life, failed int, wanted map[string]int) error {
	var errs []error
	made := map[string]int{}
	for _, l := range lives {
		what := fmt.Sprintf("VMI %s with phases %q", l.name, l.phases)
		made[cmp.Or(l.owner, l.name)]++
		most := max(wantedPods[l.name], 1)
		if l.name == moverName {
			most += failed
		}
		if len(l.pods) > most {
			errs = append(errs, fmt.Errorf("%s had %d pods", what, len(l.pods)))
		}
		if err := Phases(l.phases); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
		if !l.gone {
			errs = append(errs, fmt.Errorf("%s is still there", what))
		}
		if slices.Contains(l.phases, vmi.PhaseFailed) {
			errs = append(errs, fmt.Errorf("%s failed", what))
		}
	}
	if !maps.Equal(made, wanted) {
		errs = append(errs, fmt.Errorf("the VMIs that were made are %v, not %v", made, wanted))
	}
	return errors.Join(errs...)
}

var (
	uids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	revision = regexp.MustCompile(`\brevision-start-vm-UID-[0-9]+`)
	launcher = regexp.MustCompile(`virt-launcher-([a-z0-9X-]+)-[a-z0-9]{5}`)
	member   = regexp.MustCompile(`\bset-[a-z0-9]{6}\b`)
	loopback = regexp.MustCompile(`\b127\.[0-9]+\.[0-9]+\.[0-9]+\b`)
	pooling  = regexp.MustCompile(`\b` + scheduled.RevisionPrefix + `UID-[a-z0-9]{10}\b`)
	evacuate = regexp.MustCompile(`\b` + vmi.EvacuationNamePrefix + `[a-z0-9]{10}\b`)
)

// steady is a text without the namespace, UIDs, generations, addresses of this host and random ends
// of names in it.
func steady(s, namespace string) string {
	s = evacuate.ReplaceAllString(strings.ReplaceAll(s, namespace, "NAMESPACE"), vmi.EvacuationNamePrefix+"X")
	s = loopback.ReplaceAllString(s, "127.X")
	s = member.ReplaceAllString(uids.ReplaceAllString(s, "UID"), "set-X")
	s = pooling.ReplaceAllString(s, scheduled.RevisionPrefix+"X")
	return launcher.ReplaceAllString(revision.ReplaceAllString(s, "revision-start-vm-UID-N"), "virt-launcher-$1-X")
}
