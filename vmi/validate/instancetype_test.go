package validate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/validate"
)

func TestAnInstanceTypeIsJudged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ spec, want string }{
		"the least":                 {`{cpu: {guest: 1}, memory: {guest: 1Gi}}`, ""},
		"no processor":              {`{cpu: {guest: 0}, memory: {guest: 1Gi}}`, "spec.cpu.guest"},
		"no memory":                 {`{cpu: {guest: 1}, memory: {guest: 0}}`, "spec.memory.guest"},
		"less memory than none":     {`{cpu: {guest: 1}, memory: {guest: -1Gi}}`, "spec.memory.guest"},
		"half of the memory":        {`{cpu: {guest: 1}, memory: {guest: 1Gi, overcommitPercent: 50}}`, ""},
		"huge pages":                {`{cpu: {guest: 1}, memory: {guest: 1Gi, hugepages: {pageSize: 2Mi}}}`, ""},
		"more than the memory":      {`{cpu: {guest: 1}, memory: {guest: 1Gi, overcommitPercent: 101}}`, "spec.memory.overcommitPercent"},
		"less than nothing":         {`{cpu: {guest: 1}, memory: {guest: 1Gi, overcommitPercent: -1}}`, "spec.memory.overcommitPercent"},
		"a part of huge pages":      {`{cpu: {guest: 1}, memory: {guest: 1Gi, overcommitPercent: 50, hugepages: {}}}`, "spec.memory.overcommitPercent"},
		"an annotation of no name":  {`{cpu: {guest: 1}, memory: {guest: 1Gi}, annotations: {"a b": c}}`, "spec.annotations"},
		"memory that none can have": {`{cpu: {guest: 1}, memory: {guest: 2Ei}}`, "spec.memory.guest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s instancetype.VirtualMachineInstancetypeSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte(tt.spec), &s))
			requireOne(t, tt.want, validate.Instancetype(&s))
		})
	}
}

func TestAllThatIsWrongWithAnInstanceTypeIsSaid(t *testing.T) {
	t.Parallel()
	var s instancetype.VirtualMachineInstancetypeSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(`{cpu: {guest: 0}, memory: {guest: -1Gi, overcommitPercent: 101}}`), &s))
	var fields []string
	for _, e := range validate.Instancetype(&s) {
		fields = append(fields, e.Field)
	}
	require.Equal(t, []string{"spec.cpu.guest", "spec.memory.guest", "spec.memory.overcommitPercent"}, fields)
}

func TestHowAVMNamesWhatItUsesIsJudged(t *testing.T) {
	t.Parallel()
	const at = "spec.instancetype"
	for name, tt := range map[string]struct {
		names string
		want  []string
	}{
		"a name":                        {`{name: small}`, nil},
		"a kind":                        {`{name: small, kind: virtualmachineinstancetypes}`, nil},
		"a name of another namespace":   {`{name: team-b/small}`, []string{at + ".name"}},
		"a name that no object has":     {`{name: Small}`, []string{at + ".name"}},
		"a kind that does not exist":    {`{name: small, kind: Flavor}`, []string{at + ".kind"}},
		"a kind of the other part":      {`{kind: VirtualMachinePreference}`, []string{at, at + ".kind"}},
		"a volume":                      {`{inferFromVolume: root, inferFromVolumeFailurePolicy: Ignore}`, nil},
		"a volume, a name and a kind":   {`{inferFromVolume: root, name: small, kind: Flavor}`, []string{at + ".name", at + ".kind"}},
		"a policy that does not exist":  {`{inferFromVolume: root, inferFromVolumeFailurePolicy: Retry}`, []string{at + ".inferFromVolumeFailurePolicy"}},
		"neither a name nor a volume":   {`{}`, []string{at}},
		"a policy for what is not read": {`{name: small, inferFromVolumeFailurePolicy: Retry}`, []string{at + ".inferFromVolumeFailurePolicy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vmi.VirtualMachine{Spec: vmi.VirtualMachineSpec{Instancetype: &vmi.InstancetypeMatcher{}}}
			require.NoError(t, yaml.UnmarshalStrict([]byte(tt.names), v.Spec.Instancetype))
			fields := func(l field.ErrorList) (out []string) {
				for _, e := range l {
					out = append(out, e.Field)
				}
				return out
			}
			require.Equal(t, tt.want, fields(validate.References(v)))
			require.Equal(t, tt.want, fields(validate.ReferencesUpdate(&vmi.VirtualMachine{}, v)))
			require.Empty(t, validate.ReferencesUpdate(v, v), "what is stored can be changed elsewhere")
		})
	}
}

func TestAPreferenceIsJudged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ spec, want string }{
		"nothing":                             {`{}`, ""},
		"a topology":                          {`{cpu: {preferredCPUTopology: spread}}`, ""},
		"a topology by its older name":        {`{cpu: {preferredCPUTopology: preferSpread}}`, ""},
		"another topology":                    {`{cpu: {preferredCPUTopology: dies}}`, "spec.cpu.preferredCPUTopology"},
		"across what is not there":            {`{cpu: {preferredCPUTopology: preferSpread, spreadOptions: {across: Dies}}}`, "spec.cpu.spreadOptions.across"},
		"that is not asked for elsewhere":     {`{cpu: {preferredCPUTopology: cores, spreadOptions: {across: Dies, ratio: 0}}}`, ""},
		"two threads":                         {`{cpu: {preferredCPUTopology: spread, spreadOptions: {across: CoresThreads, ratio: 2}}}`, ""},
		"three threads":                       {`{cpu: {preferredCPUTopology: spread, spreadOptions: {across: CoresThreads, ratio: 3}}}`, "spec.cpu.spreadOptions.ratio"},
		"three threads by the older field":    {`{preferSpreadSocketToCoreRatio: 3, cpu: {preferredCPUTopology: spread, spreadOptions: {across: CoresThreads}}}`, "spec.cpu.spreadOptions.ratio"},
		"nothing to divide by":                {`{cpu: {preferredCPUTopology: spread, spreadOptions: {ratio: 0}}}`, "spec.cpu.spreadOptions.ratio"},
		"an annotation whose name is no name": {`{annotations: {"a b": c}}`, "spec.annotations"},
		"a requirement that none can meet":    {`{requirements: {memory: {guest: 2Ei}}}`, "spec.requirements.memory.guest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s instancetype.VirtualMachinePreferenceSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte(tt.spec), &s))
			requireOne(t, tt.want, validate.Preference(&s))
		})
	}
}

// requireOne requires one fault of the field, or none for an empty one.
func requireOne(t *testing.T, want string, l field.ErrorList) {
	t.Helper()
	if want == "" {
		require.Empty(t, l)
		return
	}
	require.Len(t, l, 1)
	require.Equal(t, want, l[0].Field)
}
