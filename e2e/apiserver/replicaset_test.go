package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// setOf is a set with the name web that the API server accepts.
func setOf(n int32) *vmi.VirtualMachineInstanceReplicaSet {
	s := vmitest.NewReplicaSet(n, vmitest.WithName("web"), vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithMasquerade("default"), vmitest.WithGracePeriod(0))
	s.UID, s.Namespace, s.Generation = "", "", 0
	s.Spec.Template.ObjectMeta.Labels = map[string]string{"app": "web"}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return s
}

func (s space) sets() client.Objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList] {
	return world.vmis.VirtualMachineInstanceReplicaSets(s.name)
}

func (s space) createSet(o *vmi.VirtualMachineInstanceReplicaSet) *vmi.VirtualMachineInstanceReplicaSet {
	s.t.Helper()
	o, err := s.sets().Create(s.t.Context(), o, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return o
}

func (s space) patchSet(patch string) {
	s.t.Helper()
	_, err := s.sets().Patch(s.t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

func (s space) scaleTo(n int) {
	s.t.Helper()
	out, err := kubectl(s.t, "", "-n", s.name, "scale", "vmirs/web", fmt.Sprintf("--replicas=%d", n))
	require.NoError(s.t, err, out)
}

// awaitSet waits until ok is true for the set and returns it.
func (s space) awaitSet(ok func(*vmi.VirtualMachineInstanceReplicaSet) bool) *vmi.VirtualMachineInstanceReplicaSet {
	s.t.Helper()
	var o *vmi.VirtualMachineInstanceReplicaSet
	eventually(s.t, func() error {
		var err error
		if o, err = s.sets().Get(s.t.Context(), "web", metav1.GetOptions{}); err == nil && !ok(o) {
			err = fmt.Errorf("the status of the set is not the expected one: %+v", o.Status)
		}
		return err
	})
	return o
}

// awaitReady waits until so many VMIs of the set are ready, it has no others, and its
// status says so.
func (s space) awaitReady(n int) *vmi.VirtualMachineInstanceReplicaSet {
	s.t.Helper()
	eventually(s.t, func() error {
		if all := s.all(); len(all) != n {
			return fmt.Errorf("%d VMIs, not %d", len(all), n)
		}
		return nil
	})
	defer func() {
		if s.t.Failed() {
			out, _ := kubectl(s.t, "", "-n", s.name, "get", "vmi,vmirs,pods", "-o", "wide")
			s.t.Log(out)
		}
	}()
	return s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool {
		return o.Status.Replicas == int32(n) && o.Status.ReadyReplicas == int32(n)
	})
}

// awaitFailure waits until the set has the condition ReplicaFailure with the reason.
func (s space) awaitFailure(reason string) vmi.Condition {
	s.t.Helper()
	o := s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool {
		c := o.Status.Condition(vmi.ConditionReplicaFailure)
		return c != nil && c.Reason == reason
	})
	return *o.Status.Condition(vmi.ConditionReplicaFailure)
}

// all are the VMIs of the namespace that a set controls.
func (s space) all() []vmi.VirtualMachineInstance {
	s.t.Helper()
	l, err := s.vmis.List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	return slices.DeleteFunc(l.Items, func(v vmi.VirtualMachineInstance) bool {
		return metav1.GetControllerOfNoCopy(&v) == nil
	})
}

func names(all []vmi.VirtualMachineInstance) []string {
	var out []string
	for _, v := range all {
		out = append(out, v.Name)
	}
	slices.Sort(out)
	return out
}

// writesOf are how many of the writes begin so.
func (s space) writesOf(prefix string) int {
	n := 0
	for _, w := range s.writes.all() {
		if strings.HasPrefix(w, prefix) {
			n++
		}
	}
	return n
}

func TestASetIsScaledAndReplacesWhatEnds(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	s.createSet(setOf(3))
	require.Equal(t, "app=web", s.awaitReady(3).Status.LabelSelector)
	require.LessOrEqual(t, s.writesOf("PATCH virtualmachineinstancereplicasets/web/status"), 4)

	s.scaleTo(6)
	s.awaitReady(6)
	out, err := kubectl(t, "", "-n", s.name, "get", "vmirs")
	require.NoError(t, err)
	require.Regexp(t, `NAME +DESIRED +CURRENT +READY +AGE\nweb +6 +6 +6 `, out)

	before := s.all()
	s.delete(before[0].Name)
	eventually(t, func() error {
		for _, v := range s.all() {
			if v.UID == before[0].UID {
				return errors.New("it is still there")
			}
		}
		return nil
	})
	s.awaitReady(6)

	var off vmi.VirtualMachineInstance
	eventually(t, func() error { // the count may be that of before
		for _, v := range s.all() {
			if v.Status.Phase == vmi.PhaseRunning && v.DeletionTimestamp == nil {
				off = v
				return nil
			}
		}
		return errors.New("none runs")
	})
	require.NoError(t, s.report(&off, "n1", phase(vmi.PhaseSucceeded)))
	s.awaitGone(off.Name)
	s.awaitReady(6)

	s.patchSet(`{"spec":{"paused":true}}`)
	s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool {
		return o.Status.Condition(vmi.ConditionReplicaPaused) != nil
	})
	s.scaleTo(2)
	gone := s.all()[0].Name
	s.delete(gone)
	s.awaitGone(gone)
	s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool { return o.Status.Replicas == 5 })
	s.patchSet(`{"spec":{"paused":null}}`)
	s.awaitReady(2)
	s.scaleTo(0)
	s.awaitReady(0)
	n := len(s.writes.all())
	require.Never(t, func() bool { return len(s.writes.all()) != n }, 2*time.Second, 100*time.Millisecond, "a steady set costs no write")
}

func TestTheYoungestAndThoseThatAreNotReadyGoFirst(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	s.createSet(setOf(2))
	s.awaitReady(2)
	old := names(s.all())
	time.Sleep(1100 * time.Millisecond) // creation times are whole seconds
	s.scaleTo(4)
	s.awaitReady(4)
	s.scaleTo(2)
	s.awaitReady(2)
	require.Equal(t, old, names(s.all()))

	weak := s.all()[0]
	require.NoError(t, s.report(&weak, "n1", func(st *vmi.VirtualMachineInstanceStatus) {
		st.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning}, metav1.Now())
	}))
	s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool { return o.Status.ReadyReplicas == 1 })
	s.scaleTo(1)
	s.awaitReady(1)
	require.NotEqual(t, weak.Name, s.all()[0].Name)
}

func TestASetAdoptsAndReleasesBySelector(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	labelled := func(name string, owner ...metav1.OwnerReference) *vmi.VirtualMachineInstance {
		v := guest(name)
		v.Labels, v.OwnerReferences = map[string]string{"app": "web"}, owner
		return s.create(v)
	}
	owner := func(kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "kubevirt.io/v1", Kind: kind, Name: "other", UID: types.UID("u-" + kind), Controller: new(true)}
	}
	orphan := labelled("orphan")
	ofPool, ofSet := labelled("of-pool", owner("VirtualMachinePool")), labelled("of-set", owner("VirtualMachineInstanceReplicaSet"))
	o := s.createSet(setOf(2))
	s.controlVMs()
	s.play()
	eventually(t, func() error {
		v, err := s.vmis.Get(t.Context(), "orphan", metav1.GetOptions{})
		if err == nil && !metav1.IsControlledBy(v, o) {
			err = errors.New("it is not adopted")
		}
		return err
	})
	s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool { return o.Status.ReadyReplicas == 2 })
	for _, v := range []*vmi.VirtualMachineInstance{ofPool, ofSet} {
		now, err := s.vmis.Get(t.Context(), v.Name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, v.OwnerReferences, now.OwnerReferences)
	}
	require.Len(t, s.all(), 4)

	_, err := s.vmis.Patch(t.Context(), "orphan", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"debug"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		v, err := s.vmis.Get(t.Context(), "orphan", metav1.GetOptions{})
		if err == nil && len(v.OwnerReferences) > 0 {
			err = errors.New("it is not released")
		}
		return err
	})
	s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool { return o.Status.ReadyReplicas == 2 })
	eventually(t, func() error {
		if all := s.all(); len(all) != 4 { // two of the set, and two of others
			return fmt.Errorf("%q", names(all))
		}
		return nil
	})
	v, err := s.vmis.Get(t.Context(), "orphan", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, orphan.UID, v.UID)
	require.Nil(t, v.DeletionTimestamp, "what is released goes on running")
}

func TestTheVMIsOfASetThatIsDeletedWithCascadeOrphanGoOn(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	s.createSet(setOf(3))
	s.awaitReady(3)
	before := names(s.all())
	// What the garbage collector does, while the controller watches.
	require.NoError(t, s.sets().Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}))
	for _, name := range before {
		_, err := s.vmis.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	s.patchSet(`{"metadata":{"finalizers":null}}`)
	_, err := s.sets().Get(t.Context(), "web", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	o := s.createSet(setOf(3)) // and it is made again
	s.awaitReady(3)
	require.Equal(t, before, names(s.all()))
	for _, v := range s.all() {
		require.True(t, metav1.IsControlledBy(&v, o))
		require.Equal(t, vmi.PhaseRunning, v.Status.Phase)
	}
}

func TestASetComesToItsNumberAfterItsControllerDiedBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	for writes := range int64(3) {
		t.Run(fmt.Sprintf("after %d writes", writes+1), func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			n := s.play()
			s.createSet(setOf(5))
			lives := s.controlBriefly(writes + 1)
			s.awaitReady(5)
			require.Len(t, n.instances(), 5, "none was made twice")
			before := names(s.all())
			s.scaleTo(2)
			s.awaitReady(2)
			require.Subset(t, before, names(s.all()), "none was deleted in place of another")
			s.scaleTo(4)
			s.awaitReady(4)
			require.Len(t, n.instances(), 7)
			t.Logf("%d lives", lives.Load())
		})
	}
}

func TestTwoControllersMakeNoMoreThanTheNumberOfASet(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	first := s.controlVMs()
	s.controlVMs()
	s.play()
	s.createSet(setOf(20))
	s.awaitReady(20)
	require.Equal(t, 20, s.writesOf("POST virtualmachineinstances 201"))
	s.scaleTo(40)
	first()
	s.awaitReady(40)
	require.Equal(t, 40, s.writesOf("POST virtualmachineinstances 201"))
}

func TestANameThatAUserTookIsPassedOver(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	o := s.createSet(setOf(3))
	plan := replicaset.Decide(replicaset.Observed{Set: o, Now: time.Now()})
	taken := plan.Actions[0].(scheduler.CreateInstance).Instance.Name
	// The user makes it when the controller does not see it any more: its requests wait.
	var once sync.Once
	s.control(s.asTheController(func(next http.RoundTripper) http.RoundTripper {
		return ahead{counter{next, s.writes}, func() { once.Do(func() { s.create(guest(taken)) }) }}
	}))
	s.play()
	s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool { return o.Status.ReadyReplicas == 3 })
	require.Equal(t, 1, s.writesOf("POST virtualmachineinstances 409"))
}

// ahead does something ahead of each request that makes a VMI.
type ahead struct {
	next http.RoundTripper
	do   func()
}

func (a ahead) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/virtualmachineinstances") {
		a.do()
	}
	return a.next.RoundTrip(r)
}

func TestASetThatWouldNotFindItsVMIsMakesNone(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	o := setOf(2)
	o.Spec.Selector.MatchLabels["app"] = "other"
	s.createSet(o)
	require.Contains(t, s.awaitFailure(replicaset.InvalidTemplate).Message, "spec.selector")
	require.Equal(t, []string{"PATCH virtualmachineinstancereplicasets/web/status 200"}, s.writes.all())
}

func TestASetBeyondAQuotaCostsLittleAndGoesOnWhenItIsLifted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	const count = "count/virtualmachineinstances.kubevirt.io"
	q, err := world.kube.CoreV1().ResourceQuotas(s.name).Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "vmis"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	limit := func(n string) {
		q.Spec.Hard = corev1.ResourceList{count: resource.MustParse(n)}
		q, err = world.kube.CoreV1().ResourceQuotas(s.name).Update(t.Context(), q, metav1.UpdateOptions{})
		require.NoError(t, err)
		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{count: resource.MustParse("0")}}
		q, err = world.kube.CoreV1().ResourceQuotas(s.name).UpdateStatus(t.Context(), q, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	limit("0")
	eventually(t, func() error {
		if _, err := s.vmis.Create(t.Context(), guest("probe"), dryRun); !apierrors.IsForbidden(err) {
			return fmt.Errorf("VMIs are accepted: %w", err)
		}
		return nil
	})
	s.controlVMs()
	s.play()
	s.createSet(setOf(50))
	require.Contains(t, s.awaitFailure("FailedCreate").Message, "exceeded quota")
	before, began := len(s.writes.all()), time.Now()
	time.Sleep(10 * time.Second)
	s.writesMore(before)
	after := s.writes.all()[before:]
	t.Logf("a set of 50 whose VMIs are refused: %d requests in 10 s: %q", len(after), after)
	require.LessOrEqual(t, len(after), 2+int(time.Since(began)/(2*time.Second)), "one try in two seconds")
	s.patchSet(`{"spec":{"paused":true}}`)
	s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool {
		return o.Status.Condition(vmi.ConditionReplicaPaused) != nil
	})
	s.patchSet(`{"spec":{"paused":false}}`)
	q, err = world.kube.CoreV1().ResourceQuotas(s.name).Get(t.Context(), "vmis", metav1.GetOptions{})
	require.NoError(t, err)
	limit("1000")
	began = time.Now()
	eventually(t, func() error {
		if n := len(s.all()); n < 50 {
			return fmt.Errorf("%d VMIs", n)
		}
		return nil
	})
	t.Logf("all are created %s after the quota was lifted", time.Since(began).Round(time.Millisecond))
	require.Nil(t, s.awaitReady(50).Status.Condition(vmi.ConditionReplicaFailure))
}

func TestASetWhoseLaunchersFailCostsLittle(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	node := s.play()
	node.fail.Store(true)
	s.createSet(setOf(30))
	c := s.awaitFailure(replicaset.FailedStart)
	require.Contains(t, c.Message, "no such disk")
	eventually(t, func() error {
		for _, v := range s.all() {
			if v.Status.Phase != vmi.PhaseFailed {
				return fmt.Errorf("%s is %s", v.Name, v.Status.Phase)
			}
		}
		return nil
	})
	require.Len(t, s.all(), 30)
	s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool { return o.Status.Replicas == 0 })
	first := len(s.writes.all())
	time.Sleep(20 * time.Second)
	after := s.writes.all()[first:]
	t.Logf("30 VMIs that fail: %d requests for the first try of all, then %d in 20 s: %q", first, len(after), after)
	require.LessOrEqual(t, s.writesOf("POST virtualmachineinstances 201"), 31, "one is tried again after 10 s, and then after 40 s")
	require.LessOrEqual(t, len(after), 12)

	node.fail.Store(false)
	for _, v := range s.all() {
		// As the condition says. The set itself may replace one meanwhile.
		if err := s.vmis.Delete(t.Context(), v.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	}
	require.Nil(t, s.awaitReady(30).Status.Condition(vmi.ConditionReplicaFailure))
}

func TestAUserWithTheRoleEditScalesASet(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createSet(setOf(1))
	for role, may := range map[string]bool{"kubevirt.io:edit": true, "kubevirt.io:view": false} {
		user, _ := strings.CutPrefix(role, "kubevirt.io:")
		_, err := world.kube.RbacV1().RoleBindings(s.name).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		eventually(t, func() error {
			out, err := kubectl(t, "", "-n", s.name, "--as", user, "get", "vmirs/web", "--subresource=scale")
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
		out, err := kubectl(t, "", "-n", s.name, "--as", user, "scale", "vmirs/web", "--replicas=2")
		require.Equal(t, may, err == nil, "%s: %s", role, out)
	}
}

// What a set of a hundred costs, by component.
func TestTheWritesOfASetOfAHundred(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	counts := func(what string) map[string]int {
		n := map[string]int{}
		for _, w := range texts(s.quickOnes(s.writes.from(0))) {
			method, rest, _ := strings.Cut(w, " ")
			path, code, _ := strings.Cut(rest, " ")
			parts := strings.Split(path, "/")
			key := method + " " + parts[0]
			if parts[0] == "pods" && len(parts) == 2 && parts[1] == "status" {
				key += "/status"
			}
			if len(parts) == 3 {
				key += "/" + parts[2]
			}
			n[key+" "+code]++
		}
		s.writes.mu.Lock()
		s.writes.list = nil
		s.writes.mu.Unlock()
		t.Logf("%s: %v", what, n)
		return n
	}
	began := time.Now()
	s.createSet(setOf(100))
	for _, n := range []int32{30, 60, 90} { // each within the time of one wait
		s.awaitSet(func(o *vmi.VirtualMachineInstanceReplicaSet) bool { return o.Status.ReadyReplicas >= n })
	}
	s.awaitReady(100)
	took := time.Since(began)
	t.Logf("ready after %s", took.Round(time.Millisecond))
	s.awaitGates()
	up := counts("create to Running")
	require.Equal(t, 100, up["POST virtualmachineinstances 201"])
	require.Equal(t, 100, up["POST pods 201"])
	require.Equal(t, 100, up["PATCH virtualmachineinstances/status 200"])
	require.Equal(t, 100, up["PATCH pods/status 200"])
	require.LessOrEqual(t, up["PATCH virtualmachineinstancereplicasets/status 200"], max(30, 2+int(took.Seconds())), "one in a second")
	began = time.Now()
	s.scaleTo(0)
	s.awaitReady(0)
	took = time.Since(began)
	down := counts("scale to 0")
	require.GreaterOrEqual(t, down["DELETE virtualmachineinstances 200"], 100)
	require.LessOrEqual(t, down["PATCH virtualmachineinstancereplicasets/status 200"], max(10, 2+int(took.Seconds())), "one in a second")
}
