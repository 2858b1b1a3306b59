package admission_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/internal/scheduler/revision"
	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

func TestAttackARevisionThatHoldsWhatNoVMNamesIsRefused(t *testing.T) {
	t.Parallel()
	m, _ := shop()
	m.Namespace = "default"
	m.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "gpu"}
	live := gpus(2, "example.com/first")
	live.UID, live.Generation, live.ResourceVersion = "type-uid", 3, "7"
	holding := func(v *vmi.VirtualMachine, o vmi.Object, change func(*appsv1.ControllerRevision)) *appsv1.ControllerRevision {
		r, err := revision.Holding(v, o)
		require.NoError(t, err)
		if change != nil {
			change(r)
		}
		return r
	}
	changed := func(change func(*instancetype.VirtualMachineClusterInstancetype)) *appsv1.ControllerRevision {
		o := live.DeepCopy()
		change(o)
		return holding(m, o, nil)
	}
	// One of a version that did not say of which version of the API the object is.
	first := gpus(2, "example.com/first")
	first.UID, first.Generation = "type-uid", 1
	former := holding(m, first, func(r *appsv1.ControllerRevision) {
		delete(r.Labels, instancetype.ObjectVersionLabel)
		r.Name = "former"
	})
	upgraded := m.DeepCopy()
	upgraded.Name, upgraded.UID = "upgraded", "upgraded-uid"
	upgraded.Status.InstancetypeRef = instancetype.References(upgraded)[0].Use("former")
	plain := m.DeepCopy()
	plain.Name, plain.UID, plain.Spec.Instancetype = "plain", "plain-uid", nil
	gone, before := m.DeepCopy(), m.DeepCopy()
	gone.Name, before.UID = "gone", "before"
	c, err := client.New(fake.New(m, plain, upgraded).Config())
	require.NoError(t, err)
	l := knowing(live, nil)(t.Context())
	l.Revision = func(_, name string) (*appsv1.ControllerRevision, error) {
		if name == former.Name {
			return former, nil
		}
		return nil, nil
	}
	owned := admission.Owned{Owners: c, Lookup: func(context.Context) instancetype.Lookup { return l }}

	const other = "names no instance type and no preference, as they are stored now, that the ControllerRevision holds"
	for name, tt := range map[string]struct {
		made *appsv1.ControllerRevision
		says string
	}{
		"of what its VM names":    {holding(m, live, nil), ""},
		"of one that was held":    {holding(upgraded, first, nil), ""},
		"of one that others held": {holding(m, first, nil), other},
		"of a larger one":         {changed(func(o *instancetype.VirtualMachineClusterInstancetype) { o.Spec.CPU.Guest = 8 }), other},
		"with networks": {changed(func(o *instancetype.VirtualMachineClusterInstancetype) {
			o.Spec.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "a/b"}
		}), other},
		"of a generation before":    {changed(func(o *instancetype.VirtualMachineClusterInstancetype) { o.Generation = 2 }), other},
		"of another name":           {holding(m, live, func(r *appsv1.ControllerRevision) { r.Name = "thief" }), other},
		"of a VM that names none":   {holding(plain, live, nil), other},
		"with other labels":         {holding(m, live, func(r *appsv1.ControllerRevision) { r.Labels[instancetype.ObjectUIDLabel] = "x" }), other},
		"of a VM that is not there": {holding(gone, live, nil), "VirtualMachine default/gone does not exist"},
		"of a VM before":            {holding(before, live, nil), "is another one than the one that is to control the ControllerRevision"},
		"of no owner":               {holding(m, live, func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil }), "that one VirtualMachine controls"},
		"with a further owner": {holding(m, live, func(r *appsv1.ControllerRevision) {
			r.OwnerReferences = append(r.OwnerReferences, metav1.OwnerReference{Kind: "ConfigMap", Name: "x"})
		}), "that one VirtualMachine controls"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(tt.made)
			require.NoError(t, err)
			answer := reviewed(t, owned, admission.OwnedPath, &admissionv1.AdmissionRequest{
				UID: "1", Operation: admissionv1.Create, Name: tt.made.Name, Namespace: "default",
				Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevision"}, Object: runtime.RawExtension{Raw: raw},
			})
			if tt.says == "" {
				require.True(t, answer.Allowed, "%v", answer.Result)
				return
			}
			require.False(t, answer.Allowed)
			require.Contains(t, answer.Result.Message, tt.says)
		})
	}
}
