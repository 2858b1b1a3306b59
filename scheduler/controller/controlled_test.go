package controller

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// TestAttackOnlyWhatAnObjectControlsInItsNamespaceIsFoundAsItsOwn: users write the owners of their objects,
// with any UID.
func TestAttackOnlyWhatAnObjectControlsInItsNamespaceIsFoundAsItsOwn(t *testing.T) {
	t.Parallel()
	p := &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "web", UID: "pool-uid"}}
	v := &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "db", UID: "vm-uid"}}
	start := vmi.StartRevision(v.UID, 1)
	for name, tt := range map[string]struct {
		namespace, apiVersion string
		uncontrolled, found   bool
	}{
		"its own":                  {namespace: "team-b", found: true},
		"of another namespace":     {namespace: "team-a"},
		"of a group there is not":  {namespace: "team-b", apiVersion: "no.such.group/v1"},
		"of another kind's group":  {namespace: "team-b", apiVersion: "apps/v1"},
		"owned and not controlled": {namespace: "team-b", uncontrolled: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owned := func(of metav1.Object, kind vmi.Definition) metav1.ObjectMeta {
				ref := *metav1.NewControllerRef(of, kind.GroupVersionKind)
				if tt.apiVersion != "" {
					ref.APIVersion = tt.apiVersion
				}
				ref.Controller = new(!tt.uncontrolled)
				return metav1.ObjectMeta{Namespace: tt.namespace, OwnerReferences: []metav1.OwnerReference{ref}}
			}
			ofPool, ofVM := owned(p, vmpool.VirtualMachinePools.Definition), owned(v, vmi.VirtualMachines.Definition)
			require.Equal(t, tt.found, slices.Contains(poolOf(&vmi.VirtualMachine{ObjectMeta: ofPool}), controlledKey(p)))
			require.Equal(t, tt.found, slices.Contains(poolOf(&appsv1.ControllerRevision{ObjectMeta: ofPool}), controlledKey(p)))
			ofVM.Name, ofVM.Labels = start, map[string]string{instancetype.ObjectNameLabel: "small"}
			require.Equal(t, tt.found || tt.uncontrolled, slices.Contains(startOf(&appsv1.ControllerRevision{ObjectMeta: ofVM}), controlledKey(v)))
			require.Equal(t, tt.found, slices.Contains(sized(&appsv1.ControllerRevision{ObjectMeta: ofVM}), controlledKey(v)))
		})
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: "set", UID: "set-uid"}}
	of := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: start}}
	of.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	require.Empty(t, startOf(of), "a StatefulSet makes revisions for its user")
	of.OwnerReferences = nil
	require.Equal(t, []string{controlledKey(v)}, startOf(of), "the VM was deleted, and its revisions were orphaned")
	of.Namespace = "team-a"
	require.NotContains(t, startOf(of), controlledKey(v))
}

func TestAVMThatNamesWhatCannotBeIsDeletedAndSaysSoBefore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"team-b/small", "..", "x%2fy"} {
		for _, deleted := range []bool{false, true} {
			m := vmitest.NewVM(vmi.RunHalted)
			m.Finalizers = []string{vmi.VMFinalizer}
			m.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: name, Kind: instancetype.VirtualMachineInstancetypes.Kind}
			if deleted {
				m.DeletionTimestamp = new(metav1.Now())
			}
			c, err := client.New(fake.New(m).Config())
			require.NoError(t, err)
			m, err = c.VirtualMachines(m.Namespace).Get(t.Context(), m.Name, metav1.GetOptions{})
			require.NoError(t, err)
			r := newRig(t, vmitest.New())
			r.cfg.Client = c
			require.NoError(t, r.vmLoop().cached.GetIndexer().Add(m.DeepCopy()))
			decide, err := observeVM(t.Context(), r.Controller, m)
			require.NoError(t, err, name)
			plan := decide(m, nil)
			require.NotEmpty(t, plan.Actions, name)
			if deleted {
				require.True(t, slices.ContainsFunc(plan.Actions, is[scheduler.RemoveFinalizer]), "%s: %v", name, plan.Actions)
			}
		}
	}
}
