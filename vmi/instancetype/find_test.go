package instancetype_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// world has a small instance type of the cluster and one of the namespace, and revisions of
// several objects.
func world() instancetype.Lookup {
	l := instancetype.Nothing()
	l.Object = func(d vmi.Definition, namespace, name string) (vmi.Object, error) {
		switch d.Kind + " " + namespace + "/" + name {
		case "VirtualMachineClusterInstancetype /small":
			return &instancetype.VirtualMachineClusterInstancetype{}, nil
		case "VirtualMachineInstancetype ns/small":
			return &instancetype.VirtualMachineInstancetype{}, nil
		case "VirtualMachineClusterInstancetype /broken":
			return nil, errors.New("no answer")
		}
		return nil, nil
	}
	l.Revision = func(namespace, name string) (*appsv1.ControllerRevision, error) {
		text := map[string]string{
			"ns/held":  `{"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineInstancetype", "metadata": {"name": "small"}, "spec": {"cpu": {"guest": 3}}}`,
			"ns/other": `{"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachinePreference"}`,
			"ns/old":   `{"apiVersion": "instancetype.kubevirt.io/v1alpha1", "kind": "VirtualMachineInstancetype"}`,
			"ns/text":  `no JSON`,
		}[namespace+"/"+name]
		if text == "" {
			return nil, nil
		}
		return &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{instancetype.ObjectNameLabel: "small"}}, Data: runtime.RawExtension{Raw: []byte(text)},
		}, nil
	}
	return l
}

func TestWhatAVMNamesIsFound(t *testing.T) {
	t.Parallel()
	used := func(name, kind, revision string) *vmi.InstancetypeStatusRef {
		return &vmi.InstancetypeStatusRef{Name: name, Kind: kind, ControllerRevisionRef: &vmi.ControllerRevisionRef{Name: revision}}
	}
	for name, tt := range map[string]struct {
		names  vmi.InstancetypeMatcher
		status *vmi.InstancetypeStatusRef
		// want is the type of what is found, or the beginning of why nothing is.
		want     any
		revision string
	}{
		"of the cluster without a kind":        {vmi.InstancetypeMatcher{Name: "small"}, nil, &instancetype.VirtualMachineClusterInstancetype{}, ""},
		"by its kind":                          {vmi.InstancetypeMatcher{Name: "small", Kind: "VirtualMachineInstancetype"}, nil, &instancetype.VirtualMachineInstancetype{}, ""},
		"by its resource":                      {vmi.InstancetypeMatcher{Name: "small", Kind: "virtualmachineinstancetypes"}, nil, &instancetype.VirtualMachineInstancetype{}, ""},
		"another kind":                         {vmi.InstancetypeMatcher{Name: "small", Kind: "VirtualMachinePreference"}, nil, "spec.instancetype.kind: there is no kind", ""},
		"another name":                         {vmi.InstancetypeMatcher{Name: "large"}, nil, "VirtualMachineClusterInstancetype large", ""},
		"the revision in the status":           {vmi.InstancetypeMatcher{Name: "small"}, used("small", "", "held"), &instancetype.VirtualMachineInstancetype{}, "held"},
		"which of another name does not count": {vmi.InstancetypeMatcher{Name: "large"}, used("small", "", "held"), "VirtualMachineClusterInstancetype large", ""},
		"nor of another kind": {vmi.InstancetypeMatcher{Name: "small", Kind: "VirtualMachineInstancetype"}, used("small", "VirtualMachineClusterInstancetype", "held"),
			&instancetype.VirtualMachineInstancetype{}, ""},
		"the same kind in another form": {vmi.InstancetypeMatcher{Name: "small", Kind: "virtualmachineinstancetype"}, used("small", "VirtualMachineInstancetype", "held"), &instancetype.VirtualMachineInstancetype{}, "held"},
		"a revision that is gone":       {vmi.InstancetypeMatcher{Name: "small"}, used("small", "", "gone"), "ControllerRevision gone", ""},
		"the user's revision":           {vmi.InstancetypeMatcher{Name: "any", RevisionName: "held"}, used("small", "", "gone"), &instancetype.VirtualMachineInstancetype{}, "held"},
		"of something else":             {vmi.InstancetypeMatcher{Name: "any", RevisionName: "other"}, nil, "ControllerRevision other holds a VirtualMachinePreference", "other"},
		"of an earlier version":         {vmi.InstancetypeMatcher{Name: "any", RevisionName: "old"}, nil, "ControllerRevision old holds", "old"},
		"of no object":                  {vmi.InstancetypeMatcher{Name: "any", RevisionName: "text"}, nil, "decode ControllerRevision text", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vmi.VirtualMachine{Spec: vmi.VirtualMachineSpec{Instancetype: &tt.names}, Status: vmi.VirtualMachineStatus{InstancetypeRef: tt.status}}
			found, err := world().Find("ns", instancetype.References(v))
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, tt.revision, found[0].Revision)
			if why, ok := tt.want.(string); ok {
				require.Nil(t, found[0].Object)
				require.Contains(t, found[0].Missing, why)
				return
			}
			require.IsType(t, tt.want, found[0].Object)
			require.Empty(t, found[0].Missing)
			size, preference := instancetype.SpecsOf(found)
			require.NotNil(t, size)
			require.Nil(t, preference)
		})
	}
	v := &vmi.VirtualMachine{Spec: vmi.VirtualMachineSpec{Instancetype: &vmi.InstancetypeMatcher{Name: "broken"}}}
	_, err := world().Find("ns", instancetype.References(v))
	require.EqualError(t, err, "no answer")
}

func TestTheAnnotationOfAVMISaysWhatItsVMNames(t *testing.T) {
	t.Parallel()
	v := &vmi.VirtualMachine{}
	v.Spec.Instancetype, v.Spec.Preference = &vmi.InstancetypeMatcher{Kind: "virtualmachineinstancetype"}, &vmi.PreferenceMatcher{}
	refs := instancetype.References(v)
	require.Equal(t, "kubevirt.io/instancetype-name", refs[0].Annotation())
	require.Equal(t, "kubevirt.io/cluster-preference-name", refs[1].Annotation())
}
