package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
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
	// shots are what there was at the rests of the trace, by the name of the rest.
	shots map[string]shot
	// want is what there is at them without a fault. Nil: it is not known yet.
	want map[string]shot
}

// shot is what there is in a namespace, without what differs from run to run.
type shot map[string]any

var options = []vmitest.Option{vmitest.WithMasquerade("default"), vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithGracePeriod(0)}

// trace makes a VMI, a VM and a replica set, stops and deletes them, and waits after each
// step for what must follow.
func trace(ctx context.Context, u *user) error {
	v := vmitest.New(append(slices.Clone(options), vmitest.WithName("one"))...)
	m := vmitest.NewVM(vmi.RunAlways, append(slices.Clone(options), vmitest.WithName("vm"))...)
	s := vmitest.NewReplicaSet(2, append(slices.Clone(options), vmitest.WithName("set"))...)
	for _, o := range []metav1.Object{v, m, s} {
		o.SetNamespace("")
		o.SetUID("")
		o.SetGeneration(0)
	}
	instances, vms, sets := world.vmis.VirtualMachineInstances(u.namespace), world.vmis.VirtualMachines(u.namespace), world.vmis.VirtualMachineInstanceReplicaSets(u.namespace)
	_, err := instances.Create(ctx, v, metav1.CreateOptions{})
	_, errVM := vms.Create(ctx, m, metav1.CreateOptions{})
	_, errSet := sets.Create(ctx, s, metav1.CreateOptions{})
	if err := errors.Join(err, errVM, errSet); err != nil {
		return err
	}
	if err := u.rest(ctx, "running"); err != nil {
		return err
	}
	_, errVM = vms.Patch(ctx, m.Name, types.MergePatchType, []byte(`{"spec":{"runStrategy":"Halted"}}`), metav1.PatchOptions{})
	_, errSet = sets.Patch(ctx, s.Name, types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{})
	if err := errors.Join(errVM, errSet); err != nil {
		return err
	}
	if err := u.rest(ctx, "stopped"); err != nil {
		return err
	}
	err = errors.Join(
		instances.Delete(ctx, v.Name, metav1.DeleteOptions{}),
		vms.Delete(ctx, m.Name, metav1.DeleteOptions{}),
		sets.Delete(ctx, s.Name, metav1.DeleteOptions{}))
	if err != nil {
		return err
	}
	return u.rest(ctx, "deleted")
}

// rest waits until what there is, is what there is at this rest without faults, and keeps
// it. Without anything to compare with, it waits until nothing changes.
func (u *user) rest(ctx context.Context, name string) error {
	want := u.want[name]
	var last shot
	since := time.Now()
	for w := newWait(); ; {
		now, err := look(ctx, u.namespace)
		if err == nil {
			u.shots[name] = now
		}
		switch {
		case err != nil: // on a busy host the API server does not answer in time
		case want == nil && !equal(now, last):
			last, since = now, time.Now()
		case want == nil && time.Since(since) > 3*time.Second, want != nil && equal(now, want):
			return nil
		}
		if w.over() {
			return errors.Join(err, fmt.Errorf("when all is %s, there is another end than without a fault:\n%s", name, difference(map[string]any(want), map[string]any(u.shots[name]))))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
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
	pods, err := world.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: vmi.AppLabel + "=" + vmi.LauncherApp})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		all = append(all, &pods.Items[i])
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
		var of vmi.VirtualMachine
		if err := json.Unmarshal(r.Data.Raw, &of); err != nil {
			return nil, err
		}
		r.Data.Raw, r.Data.Object = nil, defaults.VirtualMachine(&of, profile)
		all = append(all, r)
	}
	for _, o := range all {
		name := strings.TrimPrefix(fmt.Sprintf("%T", o), "*")
		name = name[strings.LastIndex(name, ".")+1:] + " " + o.(metav1.Object).GetName()
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
	"serial", "uuid", "macAddress", "mac", "revision", "kubevirt.io/created-by", "activePods", "podvisor.io/template-hash",
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
// made as often as without a fault.
func oracle(lives []life) error {
	var errs []error
	made := map[string]int{}
	for _, l := range lives {
		what := fmt.Sprintf("VMI %s with phases %q", l.name, l.phases)
		made[l.owner+" "+l.name]++
		if len(l.pods) > 1 {
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
	for what, n := range made {
		if n > 1 {
			errs = append(errs, fmt.Errorf("VMI %s was made %d times", what, n))
		}
	}
	if len(made) != wanted {
		errs = append(errs, fmt.Errorf("%d VMIs were made, not %d: %v", len(made), wanted, made))
	}
	return errors.Join(errs...)
}

// wanted is how many VMIs a trace makes.
const wanted = 4

var (
	uids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	launcher = regexp.MustCompile(`virt-launcher-([a-z0-9X-]+)-[a-z0-9]{5}`)
	member   = regexp.MustCompile(`\bset-[a-z0-9]{6}\b`)
)

// steady is a text without the namespace, UIDs and random ends of names in it.
func steady(s, namespace string) string {
	s = strings.ReplaceAll(s, namespace, "NAMESPACE")
	return launcher.ReplaceAllString(member.ReplaceAllString(uids.ReplaceAllString(s, "UID"), "set-X"), "virt-launcher-$1-X")
}
