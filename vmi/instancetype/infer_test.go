package instancetype_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// claims has claims with labels, and those without.
func claims() instancetype.Lookup {
	l := instancetype.Nothing()
	l.Claim = func(namespace, name string) (*corev1.PersistentVolumeClaim, error) {
		labels, ok := map[string]map[string]string{
			"ns/full":    {"instancetype.kubevirt.io/default-instancetype": "small", "instancetype.kubevirt.io/default-instancetype-kind": "VirtualMachineInstancetype", "instancetype.kubevirt.io/default-preference": "linux"},
			"ns/bare":    {"a": "b"},
			"else/other": {"instancetype.kubevirt.io/default-instancetype": "large"},
		}[namespace+"/"+name]
		switch {
		case name == "broken":
			return nil, errors.New("no answer")
		case !ok:
			return nil, nil
		}
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}, nil
	}
	return l
}

// booting is a VM with a volume root, which is to name what it uses.
func booting(t *testing.T, volume, source string) *vmi.VirtualMachine {
	v := vm(t, `{domain: {devices: {}, memory: {guest: 512Mi, hugepages: {pageSize: 2Mi}}}, volumes: [{name: root, `+volume+`}]}`, "")
	v.Spec.Instancetype, v.Spec.Preference = &vmi.InstancetypeMatcher{InferFromVolume: "root"}, nil
	if source != "" {
		v.Spec.DataVolumeTemplates = []vmi.DataVolumeTemplate{*from[vmi.DataVolumeTemplate](t, `{metadata: {name: made}, spec: `+source+`}`)}
	}
	return v
}

func TestAVolumeNamesWhatItsVMIsToUse(t *testing.T) {
	t.Parallel()
	const made, why = `dataVolume: {name: made}`, "spec.instancetype.inferFromVolume"
	small := &vmi.InstancetypeMatcher{Name: "small", Kind: "VirtualMachineInstancetype"}
	for name, tt := range map[string]struct {
		volume, source string
		want           *vmi.InstancetypeMatcher
		// fault is why it names nothing. It is no reason to refuse the VM if it is soft and
		// the policy is Ignore.
		fault string
		soft  bool
	}{
		"a claim":                                {volume: `persistentVolumeClaim: {claimName: full}`, want: small},
		"a DataVolume by the claim of its name":  {volume: `dataVolume: {name: full}`, want: small},
		"a template by the claim of its source":  {volume: made, source: `{source: {pvc: {name: full, namespace: ns}}, pvc: {}}`, want: small},
		"a template by a source without a place": {volume: made, source: `{source: {pvc: {name: full, namespace: ""}}, pvc: {}}`, want: small},
		"a claim without labels":                 {volume: `persistentVolumeClaim: {claimName: bare}`, fault: "has no label instancetype.kubevirt.io/default-instancetype", soft: true},
		"a volume of another kind":               {volume: `containerDisk: {image: example/disk:1}`, fault: "neither a persistentVolumeClaim", soft: true},
		"a template that is filled otherwise":    {volume: made, source: `{source: {blank: {}}, pvc: {}}`, fault: "not filled from a claim", soft: true},
		"a claim that does not exist":            {volume: `persistentVolumeClaim: {claimName: gone}`, fault: "PersistentVolumeClaim gone does not exist"},
		"a claim of another namespace":           {volume: made, source: `{source: {pvc: {name: other, namespace: else}}, pvc: {}}`, fault: "claim of namespace else"},
		"a snapshot":                             {volume: made, source: `{source: {snapshot: {name: s, namespace: ns}}, pvc: {}}`, fault: "VolumeSnapshot"},
		"a DataSource":                           {volume: made, source: `{sourceRef: {kind: DataSource, name: s}, pvc: {}}`, fault: "DataSource"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := booting(t, tt.volume, tt.source)
			before := v.DeepCopy()
			out, faults, err := claims().Infer("ns", v)
			require.NoError(t, err)
			require.Equal(t, before, v, "the input is not changed")
			if tt.fault != "" {
				require.Len(t, faults, 1)
				require.Equal(t, why, faults[0].Field)
				require.Contains(t, faults[0].Detail, tt.fault)
				require.Equal(t, before, out)
			} else {
				require.Empty(t, faults)
				require.Equal(t, tt.want, out.Spec.Instancetype)
				require.Equal(t, before.Spec.Template, out.Spec.Template)
			}

			v.Spec.Instancetype.InferFromVolumeFailurePolicy = new(vmi.InferFromVolumeIgnore)
			out, faults, err = claims().Infer("ns", v)
			require.NoError(t, err)
			require.Equal(t, tt.fault != "" && !tt.soft, len(faults) > 0)
			switch {
			case tt.soft:
				require.Nil(t, out.Spec.Instancetype)
				require.Equal(t, before.Spec.Template, out.Spec.Template)
			case tt.fault == "":
				require.Equal(t, tt.want, out.Spec.Instancetype)
				require.Nil(t, out.Spec.Template.Spec.Domain.Memory, "the instance type says how much memory there is")
			}
		})
	}
}

func TestAVolumeNamesAPreferenceWithoutAKind(t *testing.T) {
	t.Parallel()
	v := booting(t, `persistentVolumeClaim: {claimName: full}`, "")
	v.Spec.Instancetype, v.Spec.Preference = nil, &vmi.PreferenceMatcher{InferFromVolume: "root", InferFromVolumeFailurePolicy: new(vmi.InferFromVolumeIgnore)}
	out, faults, err := claims().Infer("ns", v)
	require.NoError(t, err)
	require.Empty(t, faults)
	require.Equal(t, &vmi.PreferenceMatcher{Name: "linux"}, out.Spec.Preference)
	require.Equal(t, v.Spec.Template, out.Spec.Template, "a preference leaves the memory")

	v.Spec.Preference.InferFromVolume = "data"
	_, faults, err = claims().Infer("ns", v)
	require.NoError(t, err)
	require.ErrorContains(t, faults.ToAggregate(), "spec.preference.inferFromVolume: Invalid value: \"data\": the VM has no volume of this name")

	_, _, err = claims().Infer("ns", booting(t, `persistentVolumeClaim: {claimName: broken}`, ""))
	require.EqualError(t, err, "no answer")
}
