package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// besides is what an object may take in the cache besides what it takes in etcd, in bytes: as
// much as a usual one.
const besides = 16 << 10

// large are templates of which the API server takes about a hundred kilobytes each.
func large() map[string]*vmi.VirtualMachineInstanceTemplateSpec {
	many := map[string]string{}
	for i := range 5000 {
		many[fmt.Sprint("example.com/k", i)] = ""
	}
	text := strings.Repeat("x", 100_000)
	out := map[string]*vmi.VirtualMachineInstanceTemplateSpec{}
	for name, fill := range map[string]func(*vmi.VirtualMachineInstance){
		"one annotation":   func(v *vmi.VirtualMachineInstance) { v.Annotations = map[string]string{"a": text} },
		"many annotations": func(v *vmi.VirtualMachineInstance) { v.Annotations = many },
		"a node selector":  func(v *vmi.VirtualMachineInstance) { v.Spec.NodeSelector = many },
		"cloud-init":       func(v *vmi.VirtualMachineInstance) { vmitest.WithCloudInit("seed", text)(v) },
		"disks": func(v *vmi.VirtualMachineInstance) {
			for i := range 250 {
				vmitest.WithContainerDisk(fmt.Sprint("d", i), "a")(v)
			}
		},
		"tolerations": func(v *vmi.VirtualMachineInstance) {
			for i := range 2000 {
				v.Spec.Tolerations = append(v.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists})
			}
		},
	} {
		v := vmitest.New()
		fill(v)
		out[name] = &vmi.VirtualMachineInstanceTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: v.Annotations}, Spec: v.Spec}
	}
	return out
}

// A tenant's large object takes no more memory of the leader than of etcd, whatever it is
// large by. It does not run beside other tests, which use the heap too.
func TestALargeObjectTakesNoMoreOfTheCacheThanOfEtcd(t *testing.T) { //nolint:paralleltest // see above
	k := &keeper{}
	for name, template := range large() {
		vm := vmitest.NewVM(vmi.RunAlways)
		vm.Spec.Template, vm.Annotations, vm.Labels = template, template.ObjectMeta.Annotations, template.ObjectMeta.Annotations
		set := &vmi.VirtualMachineInstanceReplicaSet{ObjectMeta: vm.ObjectMeta}
		set.Spec.Template, set.Spec.Selector = template, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		runs := vmitest.New()
		runs.Annotations, runs.Spec = template.ObjectMeta.Annotations, template.Spec
		runs.Status.Phase = vmi.PhaseRunning
		takesNoMore(t, name, vm, keepVM)
		takesNoMore(t, name, set, keepSet)
		takesNoMore(t, name, runs, k.instance)
	}
}

func takesNoMore[T any, P interface {
	*T
	vmi.Object
}](t *testing.T, name string, o P, keep func(P)) {
	t.Helper()
	raw, err := json.Marshal(o)
	require.NoError(t, err)
	takes := heapOfSome(50, func(i int) any {
		o := P(new(T))
		require.NoError(t, json.Unmarshal(raw, o))
		keep(o)
		return o
	})
	require.Less(t, takes, float64(len(raw)+besides), "%T with %s", o, name)
}

func TestALargeTemplateIsThereWhenItsObjectIsReconciled(t *testing.T) {
	t.Parallel()
	for name, template := range large() {
		want := vmitest.NewVM(vmi.RunAlways)
		want.Spec.Template = template
		v := &vmi.VirtualMachineInstance{Spec: template.Spec}
		vmitest.WithClaim("data", "claim")(v)
		template.Spec = v.Spec
		kept := want.DeepCopy()
		keepVM(kept)
		require.Contains(t, kept.Annotations, packed, name)
		again := kept.DeepCopy()
		keepVM(again)
		require.Equal(t, kept, again, name)
		require.Equal(t, indexed(t, VMIndexers(), want), indexed(t, VMIndexers(), kept), name)
		got := wholeVM(kept)
		require.Equal(t, want.Spec, got.Spec, name)
		require.NotContains(t, got.Annotations, packed, name)
		require.Contains(t, kept.Annotations, packed, "the object in the cache stays as it is")

		set := &vmi.VirtualMachineInstanceReplicaSet{}
		set.Spec.Template = template
		held := set.DeepCopy()
		keepSet(held)
		require.Contains(t, held.Annotations, packed, name)
		require.Equal(t, set.Spec, wholeSet(held).Spec, name)
	}
	small := vmitest.NewVM(vmi.RunAlways)
	keepVM(small)
	require.NotContains(t, small.Annotations, packed)
	require.Same(t, small, wholeVM(small))
}
