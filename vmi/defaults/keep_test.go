package defaults_test

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// sparse is a VMI that leaves out what it can, as it is written again: without a UID.
func sparse(change ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := vmitest.New(append([]vmitest.Option{vmitest.WithContainerDisk("root", "example/fedora:40")}, change...)...)
	v.UID = ""
	v.Spec.Domain.Devices.AutoattachPodInterface = nil
	v.Spec.Domain.Memory.Guest = new(resource.MustParse("2Gi"))
	return v
}

func TestWhatIsWrittenAgainGetsTheDefaultsThatItHad(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*defaults.Profile){
		"Architecture":     func(p *defaults.Profile) { p.Architecture = defaults.ARM64 },
		"MachineTypes":     func(p *defaults.Profile) { p.MachineTypes = map[string]string{defaults.AMD64: "pc-q35-9.0"} },
		"CPUModel":         func(p *defaults.Profile) { p.CPUModel = vmi.CPUModelPassthrough },
		"CPURequest":       func(p *defaults.Profile) { p.CPURequest = new(resource.MustParse("3")) },
		"EvictionStrategy": func(p *defaults.Profile) { p.EvictionStrategy = vmi.EvictionLiveMigrate },
		"ImagePullPolicy":  func(p *defaults.Profile) { p.ImagePullPolicy = corev1.PullNever },
		"Binding":          func(p *defaults.Profile) { p.Binding = defaults.Masquerade },
		"NoLiveUpdate":     func(p *defaults.Profile) { p.NoLiveUpdate = true },
		"HotplugRatio":     func(p *defaults.Profile) { p.HotplugRatio = 2 },
		"MaxSockets":       func(p *defaults.Profile) { p.MaxSockets = 7 },
		"MaxGuest":         func(p *defaults.Profile) { p.MaxGuest = new(resource.MustParse("6Gi")) },
		"UUID":             func(p *defaults.Profile) { p.UUID = "5d307ca9-b3ef-428c-8861-06e72d69f223" },
		"Serial":           func(p *defaults.Profile) { p.Serial = "1" },
		"Now":              func(p *defaults.Profile) { p.Now = metav1.NewTime(time.Unix(1, 0)) },
	}
	for f := range reflect.TypeFor[defaults.Profile]().Fields() {
		require.Contains(t, changes, f.Name, "this field may decide a default too")
	}
	plain := func(*defaults.Profile) {}
	for name, change := range changes {
		for way, profiles := range map[string][2]func(*defaults.Profile){"set later": {plain, change}, "taken back": {change, plain}} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				var before, after defaults.Profile
				profiles[0](&before)
				profiles[1](&after)
				created := sparse()
				created.UID = "11111111-1111-4111-8111-111111111111"
				stored := defaults.Instance(created, before)
				again := sparse()
				input := again.DeepCopy()
				got := defaults.Instance(defaults.Keep(stored, again), after)
				require.Equal(t, input, again, "the input is not changed")
				// What was not decided then is decided now for both.
				require.Equal(t, defaults.Instance(stored, after).Spec, got.Spec)
			})
		}
	}
}

func TestWhatAUserChangesIsNotKept(t *testing.T) {
	t.Parallel()
	full := func(v *vmi.VirtualMachineInstance) {
		v.Spec.NodeSelector = map[string]string{"zone": "a"}
		v.Spec.Domain.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		vmitest.WithMasquerade("lan")(v)
	}
	stored := defaults.Instance(sparse(full), defaults.Profile{})
	for name, change := range map[string]vmitest.Option{
		"another value":        func(v *vmi.VirtualMachineInstance) { v.Spec.NodeSelector["zone"] = "b" },
		"a value that is gone": func(v *vmi.VirtualMachineInstance) { v.Spec.NodeSelector = nil },
		"a volume more":        vmitest.WithEmptyDisk("data", "1Gi"),
		"networks that are gone": func(v *vmi.VirtualMachineInstance) {
			v.Spec.Networks, v.Spec.Domain.Devices.Interfaces = nil, nil
		},
		"another default": func(v *vmi.VirtualMachineInstance) { v.Spec.EvictionStrategy = new(vmi.EvictionExternal) },
		"another image":   func(v *vmi.VirtualMachineInstance) { v.Spec.Volumes[0].ContainerDisk.Image = "example/other:1" },
		"another CPU request": func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := defaults.Instance(defaults.Keep(stored, sparse(full, change)), defaults.Profile{})
			require.NotEqual(t, stored.Spec, got.Spec)
		})
	}
	require.Equal(t, stored.Spec, defaults.Instance(defaults.Keep(stored, sparse(full)), defaults.Profile{}).Spec)
}

// TestRandomVMIsThatAreWrittenAgainAreUnchanged fills every field with anything,
// and changes the configuration between the two writes.
func TestRandomVMIsThatAreWrittenAgainAreUnchanged(t *testing.T) {
	t.Parallel()
	profiles := []defaults.Profile{
		{}, {NoLiveUpdate: true}, {HotplugRatio: 2}, {MaxSockets: 7}, {CPUModel: vmi.CPUModelPassthrough}, {Binding: defaults.Masquerade},
		{Architecture: defaults.ARM64}, {EvictionStrategy: vmi.EvictionExternal}, {ImagePullPolicy: corev1.PullNever}, {CPURequest: new(resource.MustParse("3"))},
		{MachineTypes: map[string]string{defaults.AMD64: "pc-q35-9.0", defaults.ARM64: "virt-9.0"}}, {MaxGuest: new(resource.MustParse("1Ti"))},
	}
	for seed := range int64(600) {
		written := &vmi.VirtualMachineInstance{}
		randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 2).MaxDepth(30).Funcs(
			func(at *metav1.Time, c randfill.Continue) { *at = metav1.NewTime(time.Unix(c.Int63n(1<<32), 0)) },
			func(s *string, c randfill.Continue) { *s = []string{"", "", "a", "amd64", "arm64"}[c.Intn(5)] },
			func(n *uint32, c randfill.Continue) { *n = uint32(c.Intn(3)) },
			func(q *resource.Quantity, c randfill.Continue) {
				*q = *resource.NewQuantity(c.Int63n(8), resource.DecimalSI)
			},
		).Fill(&written.Spec)
		for i := range written.Spec.Volumes {
			written.Spec.Volumes[i].Name += strconv.Itoa(i) // no two have one name
		}
		created := written.DeepCopy()
		created.UID = "11111111-1111-4111-8111-111111111111"
		before, after := profiles[seed%int64(len(profiles))], profiles[(seed/int64(len(profiles)))%int64(len(profiles))]
		stored := defaults.Instance(created, before)
		got := defaults.Instance(defaults.Keep(stored, written), after)
		require.Equal(t, defaults.Instance(stored, after).Spec, got.Spec, "seed %d: %+v, then %+v", seed, before, after)
	}
}
