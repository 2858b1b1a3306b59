package defaults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// conformance is where VMIs before and after KubeVirt's defaults are, if
// they are here.
const conformance = "../../../shared/conformance"

// differences are what our defaults do otherwise on purpose. None of the records
// has one of these, so the records are compared whole; TestDefaults has a case for
// each.
var differences = []string{
	"an image of a registry with a port and without a tag is pulled always: it has no tag, the colon is the port's",
	"a disk that is read only, has a PCI address or a thread of its own gets virtio: with the usual bus the VMI would be refused for a field that its user did not write",
	"a LUN, and a CD-ROM drive off amd64, get SCSI, for the same reason",
	"an interface without a binding gets one: KubeVirt leaves it without any",
	"a feature of Windows that builds on one which is switched off brings nothing along, so that the fault is where the user can correct it",
}

func instance(t *testing.T, file string) *vmi.VirtualMachineInstance {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var v vmi.VirtualMachineInstance
	require.NoError(t, yaml.UnmarshalStrict(data, &v))
	return &v
}

func TestDefaultsAreKubeVirts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(conformance, "vmi", "*.yaml"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("the conformance data are not here")
	}
	for _, d := range differences {
		t.Log("on purpose: " + d)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			in, want := instance(t, file), instance(t, filepath.Join(conformance, "defaulted", name))
			p := defaults.Profile{UUID: want.Spec.Domain.Firmware.UUID, Serial: want.Spec.Domain.Firmware.Serial, Now: want.Status.PhaseTransitionTimestamps[0].PhaseTransitionTimestamp}
			got, err := yaml.Marshal(defaults.Instance(in, p))
			require.NoError(t, err)
			expected, err := yaml.Marshal(want)
			require.NoError(t, err)
			require.Equal(t, string(expected), string(got))
		})
	}
	t.Logf("equal: %d of %d", len(files), len(files))
}

// TestRandomVMIsNeedDefaultsOnce fills every field with anything.
func TestRandomVMIsNeedDefaultsOnce(t *testing.T) {
	profiles := []defaults.Profile{{}, {Architecture: defaults.ARM64}, {Architecture: defaults.S390X}, {NoLiveUpdate: true, Binding: defaults.Masquerade}}
	for seed := range int64(300) {
		v := &vmi.VirtualMachineInstance{}
		randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 3).MaxDepth(30).Funcs(
			func(at *metav1.Time, c randfill.Continue) { *at = metav1.NewTime(time.Unix(c.Int63n(1<<32), 0)) },
			func(s *string, c randfill.Continue) {
				*s = []string{"", fmt.Sprintf("s%x", c.Uint32()), "amd64", "arm64"}[c.Intn(4)]
			},
		).Fill(v)
		p := profiles[seed%int64(len(profiles))]
		before := v.DeepCopy()
		once := defaults.Instance(v, p)
		require.Equal(t, before, v, "seed %d: the input is changed", seed)
		require.Equal(t, once, defaults.Instance(once, p), "seed %d", seed)
	}
}
