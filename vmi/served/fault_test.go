package served

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// typed is the VMI of a tree.
func typed(t *testing.T, o map[string]any) *vmi.VirtualMachineInstance {
	t.Helper()
	b, err := json.Marshal(o)
	require.NoError(t, err)
	var v vmi.VirtualMachineInstance
	require.NoError(t, yaml.UnmarshalStrict(b, &v))
	return &v
}

// only is the object with one field and what is around it, taken from one that
// has all fields. Lists and maps have one element.
func only(from any, steps []string, value string) any {
	if len(steps) == 0 {
		switch {
		case value != "":
			return value
		case from == nil:
			return "x" // a word that was filled in empty
		}
		return from
	}
	name, list := strings.CutSuffix(steps[0], "[]")
	name, named := strings.CutSuffix(name, "{}")
	below := from.(map[string]any)[name]
	switch {
	case list:
		below = []any{only(below.([]any)[0], steps[1:], value)}
	case named:
		for k, v := range below.(map[string]any) {
			below = map[string]any{k: only(v, steps[1:], value)}
			break
		}
	default:
		below = only(below, steps[1:], value)
	}
	return map[string]any{name: below}
}

func specFields() Fields {
	return slices.DeleteFunc(Unserved(vmi.VirtualMachineInstances.Kind), func(f Field) bool { return !strings.HasPrefix(f.Path, "spec.") })
}

func TestEachFieldThatIsNotServedIsAFault(t *testing.T) {
	t.Parallel()
	filled := &vmi.VirtualMachineInstance{}
	filler(1).Fill(filled)
	all := tree(&filled.Spec)
	require.NotEmpty(t, specFields())
	for _, f := range specFields() {
		v := typed(t, only(all, f.steps(), f.Value).(map[string]any))
		at := strings.ReplaceAll(f.Path, "[]", "[0]")
		l := Faults(v, defaults.Profile{})
		require.Len(t, l, 1, f.Path)
		require.Equal(t, at, l[0].Field)
		require.Contains(t, l[0].Detail, f.Why)
		l = Faults(defaults.Instance(v, defaults.Profile{}), defaults.Profile{})
		require.True(t, slices.ContainsFunc(l, func(e *field.Error) bool { return e.Field == at }), "%s with defaults: %v", at, l)
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	v.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "a", LUN: &vmi.LunTarget{Reservation: true}}}
	v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "b", InterfaceBinding: vmi.InterfaceBinding{DeprecatedSlirp: &vmi.DeprecatedBinding{}}}}
	var got []string
	for _, e := range Faults(v, defaults.Profile{}) {
		got = append(got, e.Error())
	}
	require.Equal(t, []string{
		`spec.domain.devices.disks[0].lun.reservation: Forbidden: not served yet: no helper for persistent reservations runs on the node`,
		`spec.domain.devices.interfaces[0].slirp: Forbidden: not served: the binding is discontinued: use masquerade or passtBinding`,
	}, got)
}

func TestWhatTheDefaultsDecideIsNoFault(t *testing.T) {
	t.Parallel()
	growing := defaults.Profile{HotplugRatio: 2, MaxSockets: 7}
	for name, tt := range map[string]struct {
		profile defaults.Profile
		change  func(*vmi.VirtualMachineInstanceSpec)
		want    []string
	}{
		"defaults alone":                {},
		"those of another cluster":      {profile: growing},
		"those of another architecture": {profile: defaults.Profile{Architecture: defaults.ARM64}},
		"a default that a user writes":  {change: func(s *vmi.VirtualMachineInstanceSpec) { s.Domain.Features = &vmi.Features{} }},
		"another value": {
			change: func(s *vmi.VirtualMachineInstanceSpec) {
				s.Domain.Devices.Disks = []vmi.Disk{{Name: "a", LUN: &vmi.LunTarget{Reservation: true}}}
			},
			want: []string{"spec.domain.devices.disks[0].lun.reservation"},
		},
		"a default beside another value": {
			change: func(s *vmi.VirtualMachineInstanceSpec) {
				s.Domain.Features = &vmi.Features{Hyperv: &vmi.FeatureHyperv{TLBFlush: &vmi.FeatureTLBFlush{Direct: &vmi.FeatureState{}}}}
			},
			want: []string{"spec.domain.features.hyperv.tlbflush.direct"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vmitest.New(vmitest.WithMemory("2Gi"), vmitest.WithContainerDisk("a", "b"), vmitest.WithMasquerade("c"))
			if tt.change != nil {
				tt.change(&v.Spec)
			}
			for state, v := range map[string]*vmi.VirtualMachineInstance{"as written": v, "completed": defaults.Instance(v, tt.profile)} {
				before := v.DeepCopy()
				var got []string
				for _, e := range Faults(v, tt.profile) {
					got = append(got, e.Field)
				}
				require.Subset(t, got, tt.want, state)
				require.Equal(t, before, v, "the input is not changed")
				if tt.want == nil {
					require.Empty(t, got, state)
				}
			}
		})
	}
}

func TestAKindThatIsNotServedIsAFault(t *testing.T) {
	t.Parallel()
	l := Fields{{Why: "it is later"}}.In(map[string]any{"spec": map[string]any{}}).Faults()
	require.Len(t, l, 1)
	require.Empty(t, l[0].Field)
	require.Equal(t, "not served yet: it is later", l[0].Detail)
}
