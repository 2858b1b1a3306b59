package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// poolOf is a pool with the name web that the API server accepts.
func poolOf(n int32) *vmpool.VirtualMachinePool {
	labels := map[string]string{"app": "web"}
	v := vmOf("web", vmi.RunAlways)
	v.Spec.Template.ObjectMeta.Labels = labels
	p := &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	p.Spec.Replicas = &n
	p.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	p.Spec.VirtualMachineTemplate = &vmpool.VirtualMachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v.Spec}
	return p
}

func (s space) pools() client.Objects[*vmpool.VirtualMachinePool, *vmpool.VirtualMachinePoolList] {
	return client.Of(world.vmis, vmpool.VirtualMachinePools, s.name)
}

func (s space) createPool(p *vmpool.VirtualMachinePool) *vmpool.VirtualMachinePool {
	s.t.Helper()
	p, err := s.pools().Create(s.t.Context(), p, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return p
}

func (s space) patchPool(patch string) {
	s.t.Helper()
	_, err := s.pools().Patch(s.t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

// awaitPool waits until ok is true for the pool and returns it.
func (s space) awaitPool(ok func(*vmpool.VirtualMachinePool) bool) *vmpool.VirtualMachinePool {
	s.t.Helper()
	var p *vmpool.VirtualMachinePool
	defer func() {
		if s.t.Failed() {
			out, _ := kubectl(s.t, "", "-n", s.name, "get", "vmpool,vm,vmi,pods", "-o", "wide")
			s.t.Log(out)
			s.t.Log(strings.Join(s.writes.all(), "\n"))
		}
	}()
	eventually(s.t, func() error {
		var err error
		if p, err = s.pools().Get(s.t.Context(), "web", metav1.GetOptions{}); err == nil && !ok(p) {
			err = fmt.Errorf("the status of the pool is not the expected one: %+v", p.Status)
		}
		return err
	})
	return p
}

// awaitPoolReady waits until so many VMs of the pool are ready, and there are no others.
func (s space) awaitPoolReady(n int) *vmpool.VirtualMachinePool {
	s.t.Helper()
	return s.awaitPool(func(p *vmpool.VirtualMachinePool) bool {
		return p.Status.Replicas == int32(n) && p.Status.ReadyReplicas == int32(n) && len(s.vmNames()) == n
	})
}

func (s space) vmNames() []string {
	s.t.Helper()
	l, err := s.vms().List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	var out []string
	for _, v := range l.Items {
		out = append(out, v.Name)
	}
	slices.Sort(out)
	return out
}

// awaitMemory waits until so many VMIs that run have this memory.
func (s space) awaitMemory(n int, memory string) {
	s.t.Helper()
	eventually(s.t, func() error {
		l, err := s.vmis.List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		have := 0
		for _, v := range l.Items {
			if v.Status.Phase == vmi.PhaseRunning && v.Spec.Domain.Memory.Guest.String() == memory {
				have++
			}
		}
		if have != n {
			return fmt.Errorf("%d VMIs have %s, not %d", have, memory, n)
		}
		return nil
	})
}

const memoryPatch = `{"spec":{"virtualMachineTemplate":{"spec":{"template":{"spec":{"domain":{"memory":{"guest":%q}}}}}}}}`

func TestAPoolIsScaledAndItsTemplateReachesItsVMs(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	p := poolOf(3)
	p.Spec.ScaleInStrategy = &vmpool.PoolScaleInStrategy{Proactive: &vmpool.PoolProactiveScaleIn{SelectionPolicy: &vmpool.PoolSelectionPolicy{SortPolicy: new(vmpool.SortDescending)}}}
	s.createPool(p)
	require.Equal(t, "app=web", s.awaitPoolReady(3).Status.LabelSelector)
	require.Equal(t, []string{"web-0", "web-1", "web-2"}, s.vmNames())
	out, err := kubectl(t, "", "-n", s.name, "scale", "vmpool/web", "--replicas=5")
	require.NoError(t, err, out)
	s.awaitPoolReady(5)
	out, err = kubectl(t, "", "-n", s.name, "get", "vmpools")
	require.NoError(t, err)
	require.Regexp(t, `NAME +DESIRED +CURRENT +READY +AGE\nweb +5 +5 +5 `, out)

	s.patchPool(fmt.Sprintf(memoryPatch, "96Mi"))
	s.awaitMemory(5, "96Mi")
	require.Nil(t, s.awaitPoolReady(5).Status.Condition(vmi.ConditionReplicaOutdated))
	require.Zero(t, s.writesOf("DELETE virtualmachines/"), "the VMs are the same")
	v, err := s.vms().Get(t.Context(), "web-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(v.Labels[vmi.PoolRevisionLabel], pool.RevisionPrefix))
	i, err := s.vmis.Get(t.Context(), "web-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, v.Labels[vmi.PoolRevisionLabel], i.Labels[vmi.PoolRevisionLabel])

	out, err = kubectl(t, "", "-n", s.name, "scale", "vmpool/web", "--replicas=2")
	require.NoError(t, err, out)
	s.awaitPoolReady(2)
	require.Equal(t, []string{"web-0", "web-1"}, s.vmNames())

	s.patchPool(`{"spec":{"paused":true,"replicas":4}}`)
	s.awaitPool(func(p *vmpool.VirtualMachinePool) bool { return p.Status.Condition(vmi.ConditionReplicaPaused) != nil })
	n := len(s.writes.all())
	require.Never(t, func() bool { return len(s.writes.all()) != n }, time.Second, 100*time.Millisecond, "a paused pool costs no write")
	s.patchPool(`{"spec":{"paused":false}}`)
	s.awaitPoolReady(4)

	_, err = s.vms().Patch(t.Context(), "web-0", types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null,"labels":{"app":"debug"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.awaitPool(func(p *vmpool.VirtualMachinePool) bool { return len(s.vmNames()) == 5 && p.Status.ReadyReplicas == 4 })
	v, err = s.vms().Get(t.Context(), "web-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, metav1.GetControllerOfNoCopy(v), "it goes on alone")
	// The status may still be that of before the new VM, which is not ready yet.
	eventually(t, func() error {
		before := s.writes.all()
		time.Sleep(2 * time.Second)
		if now := s.writes.all(); len(now) != len(before) {
			return fmt.Errorf("a steady pool costs writes: %v", now[len(before):])
		}
		return nil
	})
}

func TestAVMOfAPoolCostsOneWriteMoreThanOneAlone(t *testing.T) {
	t.Parallel()
	const n = 10
	s := newSpace(t)
	s.controlVMs()
	s.play()
	for i := range n {
		s.createVM(vmOf(fmt.Sprintf("alone-%d", i), vmi.RunAlways))
	}
	eventually(t, func() error {
		l, err := s.vms().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, v := range l.Items {
			if !v.Status.Ready {
				return fmt.Errorf("%s is not ready", v.Name)
			}
		}
		return nil
	})
	s.awaitGates()
	alone := s.writes.from(0)
	began := time.Now()
	s.createPool(poolOf(n))
	s.awaitPoolReadyBeside(n)
	s.awaitGates()
	pooled := s.writes.from(len(alone))
	took := time.Since(began)

	without, own := alike(texts(s.quickOnes(alone)))
	with, ownInPool := alike(texts(s.quickOnes(pooled)))
	t.Logf("%d VMs alone: %v, and of a status: %v; in a pool: %v, and of a status: %v", n, without, own, with, ownInPool)
	without["POST virtualmachines 201"] += n
	without["POST controllerrevisions 201"]++ // that of the pool
	require.Equal(t, without, with)
	require.LessOrEqual(t, ownInPool["web"], 2+int(took.Seconds()), "one in a second")
	delete(ownInPool, "web")
	for _, all := range []map[string]int{own, ownInPool} {
		require.Len(t, all, n)
		for name, writes := range all {
			require.Equal(t, 2, writes, "one for the VM and one for the VMI: %s", name)
		}
	}
}

// alike are how many writes there are of each kind, whatever the name of the object, and how many
// of the statuses of VMs, VMIs and pools of each name.
func alike(writes []string) (kinds, statuses map[string]int) {
	kinds, statuses = map[string]int{}, map[string]int{}
	for _, w := range writes {
		verb, rest, _ := strings.Cut(w, " ")
		switch parts := strings.Split(rest, "/"); {
		case len(parts) == 3:
			statuses[parts[1]]++
		case len(parts) == 2 && parts[0] != "pods":
			kinds[verb+" "+parts[0]]++
		default:
			kinds[w]++
		}
	}
	return kinds, statuses
}

// awaitPoolReadyBeside waits until so many VMs of the pool are ready, whatever else there is.
func (s space) awaitPoolReadyBeside(n int) {
	s.t.Helper()
	s.awaitPool(func(p *vmpool.VirtualMachinePool) bool { return p.Status.ReadyReplicas == int32(n) })
}

func TestARollOutStopsAndGoesOnWithABetterTemplate(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	node := s.play()
	s.createPool(poolOf(3))
	s.awaitPoolReady(3)
	node.fail.Store(true)
	s.patchPool(fmt.Sprintf(memoryPatch, "96Mi"))
	p := s.awaitPool(func(p *vmpool.VirtualMachinePool) bool { return p.Status.Condition(vmi.ConditionRolloutStopped) != nil })
	c := p.Status.Condition(vmi.ConditionRolloutStopped)
	require.Equal(t, pool.FailedStart, c.Reason)
	require.Regexp(t, `VirtualMachine web-\d failed to start`, c.Message)
	require.Contains(t, c.Message, "no such disk")
	require.Never(t, func() bool {
		p, err := s.pools().Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && p.Status.ReadyReplicas < 2
	}, 3*time.Second, 100*time.Millisecond, "the others run on")
	node.fail.Store(false)
	s.patchPool(fmt.Sprintf(memoryPatch, "112Mi"))
	s.awaitMemory(3, "112Mi")
	require.Nil(t, s.awaitPoolReady(3).Status.Condition(vmi.ConditionRolloutStopped))
}

func TestAVMOfAPoolThatDoesNotStartIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	node := s.play()
	node.fail.Store(true)
	p := poolOf(1)
	p.Spec.Autohealing = &vmpool.PoolAutohealing{StartUpFailureThreshold: new(int32(1)), MinFailingToStartDuration: &metav1.Duration{Duration: time.Second}}
	s.createPool(p)
	is := s.awaitPool(func(p *vmpool.VirtualMachinePool) bool { return len(p.Status.Replaced) == 1 })
	first := is.Status.Replaced[0]
	require.Equal(t, "web-0", first.Name)
	require.Equal(t, int32(1), first.Count)
	node.fail.Store(false)
	s.awaitPool(func(p *vmpool.VirtualMachinePool) bool {
		return p.Status.ReadyReplicas == 1 && len(p.Status.Replaced) == 0
	})
	v, err := s.vms().Get(t.Context(), "web-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEqual(t, first.UID, v.UID)
}

func TestAPoolComesToItsNumberAfterItsControllerDiedBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	for writes := range int64(3) {
		t.Run(fmt.Sprintf("after %d writes", writes+1), func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.play()
			s.createPool(poolOf(3))
			lives := s.controlBriefly(writes + 1)
			s.awaitPoolReady(3)
			require.Equal(t, []string{"web-0", "web-1", "web-2"}, s.vmNames())
			// A controller that dies does not see the answers to what it asked for at the same time.
			require.LessOrEqual(t, s.writesOf("POST virtualmachines 201"), 3, "no VM is made twice")
			s.patchPool(fmt.Sprintf(memoryPatch, "96Mi"))
			s.awaitMemory(3, "96Mi")
			s.patchPool(`{"spec":{"replicas":1}}`)
			s.awaitPoolReady(1)
			t.Logf("%d lives", lives.Load())
		})
	}
}

func TestAPoolWithFaultsIsRefusedWithAllOfThem(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.serve()
	s := w.space
	p := poolOf(1)
	p.Spec.Selector.MatchLabels = map[string]string{"app": "db"}
	p.Spec.VirtualMachineTemplate.Spec.Template.Spec.Domain.Memory = nil
	eventually(t, func() error {
		_, err := s.pools().Create(t.Context(), p, dryRun)
		for _, want := range []string{"spec.selector", "spec.virtualMachineTemplate.spec.template.spec.domain.memory"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				return errors.Join(fmt.Errorf("%s is not in the answer", want), err)
			}
		}
		return nil
	})
	p = poolOf(1)
	p.Spec.VirtualMachineTemplate.Spec.Instancetype = &vmi.InstancetypeMatcher{InferFromVolume: "root"}
	_, err := s.pools().Create(t.Context(), p, dryRun)
	require.ErrorContains(t, err, "no name is taken from a volume of a pool's VMs")
	p = poolOf(1)
	p.Spec.ScaleInStrategy = &vmpool.PoolScaleInStrategy{Proactive: &vmpool.PoolProactiveScaleIn{StatePreservation: new(vmpool.PreserveOnline)}}
	_, err = s.pools().Create(t.Context(), p, dryRun)
	require.ErrorContains(t, err, `Unsupported value: "Online": supported values: "Disabled", "Offline"`)
	for _, l := range []map[string]string{{vmi.NodeNameLabel: "n"}} {
		p = poolOf(1)
		p.Spec.VirtualMachineTemplate.Spec.Template.ObjectMeta.Labels = l
		_, err = s.pools().Create(t.Context(), p, dryRun)
		require.ErrorContains(t, err, "spec.virtualMachineTemplate.spec.template.metadata.labels: kubevirt.io/nodeName may be written by Podvisor only")
	}
}

func TestAttackTheTokenOfTheControllerMakesAndDeletesOnlyVMsOfPools(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	p := poolOf(1)
	p.Spec.Paused = true
	p = s.createPool(p)
	cfg := withToken(t, world.config, home, "virt-controller")
	c, _ := clientsOf(t, cfg)
	vms := c.VirtualMachines(s.name)
	asked, err := pool.VM(p, 0)
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		change func(*vmi.VirtualMachine)
		want   string
	}{
		"one of nothing":        {func(v *vmi.VirtualMachine) { v.OwnerReferences = nil }, "virt-controller may create and change VirtualMachines only that one VirtualMachinePool controls"},
		"one of another pool":   {func(v *vmi.VirtualMachine) { v.OwnerReferences[0].UID = "other" }, "is another one"},
		"one of a missing pool": {func(v *vmi.VirtualMachine) { v.OwnerReferences[0].Name = "other" }, "does not exist"},
		"one of another name":   {func(v *vmi.VirtualMachine) { v.Name = "db-0" }, "another name"},
		"one with a Secret of others": {func(v *vmi.VirtualMachine) {
			v.Spec.Template.Spec.Volumes = append(v.Spec.Template.Spec.Volumes, vmi.Volume{Name: "s", VolumeSource: vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "s"}}})
		}, "spec.template.spec.volumes"},
		"one with an annotation": {func(v *vmi.VirtualMachine) {
			v.Spec.Template.ObjectMeta.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "x"}
		}, "spec.template.metadata.annotations"},
	} {
		v := asked.DeepCopy()
		tt.change(v)
		_, err := vms.Create(t.Context(), v, metav1.CreateOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
		require.ErrorContains(t, err, tt.want, name)
	}
	made, err := vms.Create(t.Context(), asked, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = vms.Patch(t.Context(), made.Name, types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/template/spec/domain/devices","value":{}}]`), metav1.PatchOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = vms.Patch(t.Context(), made.Name, types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	alone := s.createVM(vmOf("alone", vmi.RunHalted))
	err = vms.Delete(t.Context(), alone.Name, metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "only VirtualMachines that a VirtualMachinePool controls")
	_, err = vms.Patch(t.Context(), alone.Name, types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"hostname":"x"}}}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.NoError(t, vms.Delete(t.Context(), made.Name, metav1.DeleteOptions{}))
}

func TestAUserWithTheRoleEditScalesAPool(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.createPool(poolOf(1))
	for role, may := range map[string]bool{"edit": true, "view": false} {
		out, err := kubectl(t, "", "-n", s.name, "create", "rolebinding", role, "--clusterrole=kubevirt.io:"+role, "--user="+role)
		require.NoError(t, err, out)
		eventually(t, func() error {
			out, err := kubectl(t, "", "-n", s.name, "--as", role, "get", "vmpool/web", "--subresource=scale")
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		out, err = kubectl(t, "", "-n", s.name, "--as", role, "scale", "vmpool/web", "--replicas=2")
		require.Equal(t, may, err == nil, out)
		out, err = kubectl(t, "", "-n", s.name, "--as", role, "annotate", "vmpool/web", "a=b", "--overwrite")
		require.Equal(t, may, err == nil, out)
	}
}
