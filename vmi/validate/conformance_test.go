package validate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// conformance is where the records of KubeVirt's answers are, if they are here.
const conformance = "../../../shared/conformance"

// record is an object or a change and what KubeVirt answers.
type record struct {
	FeatureGates []string `json:"featureGates"`
	Expect       struct {
		Causes []cause `json:"causes"`
	} `json:"expect"`
	Object any `json:"object"`
	// running is a volume that the running VMI has and the record does not.
	running string
}

// cause is a fault as the records have it.
type cause struct {
	Field string           `json:"field"`
	Type  metav1.CauseType `json:"type"`
}

// change is a record's object if it is an update.
type change struct {
	Old, New any
	User     string
}

// running are records of VMIs that run with a volume that is not in the
// record.
var running = map[string]string{"VMsAdmitter/009": "testpvcdisk-extra"}

// optional are the feature gates that a default KubeVirt has on. KubeVirt
// answered each record of a refusal with only those on that the record names.
var optional = []string{"DeclarativeHotplugVolumes", "RebootPolicy", "PasstBinding", "DecentralizedLiveMigration", "GPUsWithDRA", "HostDevicesWithDRA"}

// unnamed are features that were on although the records do not name them: what
// they are refused for is checked only then. The key is the beginning of a name.
var unnamed = map[string]string{
	"vmi-net/019": "PortRangesSpec", "vmi-net/020": "PortRangesSpec", "vmi-net/021": "PortRangesSpec", "vmi-net/022": "PortRangesSpec",
	"vmi-net/023": "PortRangesSpec", "vmi-net/024": "PortRangesSpec", "vmi-net/025": "PortRangesSpec",
}

// allowed are faults of a record that are none here, and why.
var allowed = map[string]struct{ signature, why string }{
	"VMICreateAdmitter/033": {`"spec.architecture" FieldValueInvalid`, "a VMI that names no architecture has the cluster's"},
}

// atGuest are records whose fault KubeVirt reports at a request of memory that is not
// there, and that is reported at the guest's memory here.
var atGuest = map[string]bool{"VMsAdmitter/023": true, "vmi-spec/122": true}

// elsewhere are records that cannot be judged by what is in them.
var elsewhere = map[string]string{
	"vmi-spec/003":          "whether a GPU is one of NVIDIA Grace follows from the cluster's list of permitted devices",
	"VMsAdmitter/026":       "the names of feature gates that KubeVirt has given up mean nothing here",
	"VMICreateAdmitter/022": "the schema refuses null for a list, before any validation: an empty list is refused too",
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(conformance, pattern))
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("the conformance data are not here")
	}
	return found
}

func load(t *testing.T, file string) record {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var r record
	require.NoError(t, yaml.Unmarshal(data, &r))
	return r
}

// into reads an object strictly. A field that we do not have is an error.
func into(object, target any) error {
	data, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(data, target)
}

// limits have the named features on, and no others.
func limits(gates []string) validate.Limits {
	f, _ := validate.FeatureGates(gates...)
	f, _ = f.Without(slices.DeleteFunc(slices.Clone(optional), func(n string) bool { return slices.Contains(gates, n) })...)
	return validate.Limits{Features: f}
}

// judge returns the faults of a record's object as it is and, for kinds that
// have some, with defaults.
func judge(kind string, r record) (plain, defaulted field.ErrorList, err error) {
	lim := limits(r.FeatureGates)
	switch kind {
	case "VMICreateAdmitter", "vmi-spec", "vmi-net":
		var v vmi.VirtualMachineInstance
		if err := into(r.Object, &v); err != nil {
			return nil, nil, err
		}
		whole := defaults.Instance(&v, defaults.Profile{})
		if kind == "VMICreateAdmitter" {
			return validate.Instance(&v, validate.User{}, lim), validate.Instance(whole, validate.User{}, lim), nil
		}
		at := field.NewPath("spec")
		return validate.Spec(at, &v.Spec, lim), validate.Spec(at, &whole.Spec, lim), nil
	case "VMsAdmitter":
		var v vmi.VirtualMachine
		if err := into(r.Object, &v); err != nil {
			return nil, nil, err
		}
		requests := validate.VolumeRequests(&v, runs(&v, r.running), lim)
		plain, whole := validate.VirtualMachine(&v, validate.User{}, lim), validate.VirtualMachine(defaults.VirtualMachine(&v, defaults.Profile{}), validate.User{}, lim)
		return append(plain, requests...), append(whole, requests...), nil
	case "VMIRSAdmitter":
		var v vmi.VirtualMachineInstanceReplicaSet
		err := into(r.Object, &v)
		return validate.ReplicaSet(&v, validate.User{}, lim), nil, err
	case "MigrationCreateAdmitter":
		var v vmi.VirtualMachineInstanceMigration
		err := into(r.Object, &v)
		return validate.Migration(&v, validate.User{}), nil, err
	}
	return update(kind, r)
}

// runs is the VMI that runs for a VirtualMachine, with one more volume.
func runs(v *vmi.VirtualMachine, volume string) *vmi.VirtualMachineInstance {
	if volume == "" {
		return nil
	}
	m := &vmi.VirtualMachineInstance{Spec: v.Spec.Template.DeepCopy().Spec}
	vmitest.WithDisk(volume, vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume}}})(m)
	return m
}

func update(kind string, r record) (field.ErrorList, field.ErrorList, error) {
	var c change
	data, err := yaml.Marshal(r.Object)
	if err != nil {
		return nil, nil, err
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return nil, nil, err
	}
	if kind == "MigrationUpdateAdmitter" {
		var o, n vmi.VirtualMachineInstanceMigration
		if err := into(c.Old, &o); err != nil {
			return nil, nil, err
		}
		return validate.MigrationUpdate(&o, &n), nil, into(c.New, &n)
	}
	return nil, nil, errors.New("no update of a VMI's spec is accepted, see package admission")
}

// signatures are the fields and kinds of faults, each once.
func signatures(causes []cause) []string {
	var out []string
	for _, c := range causes {
		out = append(out, fmt.Sprintf("%q %s", c.Field, c.Type))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func found(l field.ErrorList) []string {
	var out []cause
	for _, c := range validate.Causes(l) {
		// KubeVirt names no field if there is no memory, and shows a colon in its place.
		if c.Field == "spec.domain.memory.guest" && c.Type == metav1.CauseTypeFieldValueRequired {
			c.Field = ""
		}
		out = append(out, cause{c.Field, c.Type})
	}
	return signatures(out)
}

func TestWhatKubeVirtRefusesIsRefusedForTheSameFieldsAndKinds(t *testing.T) {
	refused, skipped := 0, 0
	all := files(t, "invalid/*/*.yaml")
	for _, file := range all {
		kind := filepath.Base(filepath.Dir(file))
		name := kind + "/" + filepath.Base(file)
		r := load(t, file)
		if why := elsewhere[kind+"/"+filepath.Base(file)[:3]]; why != "" {
			t.Logf("skipped  %s: %s", name, why)
			skipped++
			continue
		}
		if f := unnamed[kind+"/"+filepath.Base(file)[:3]]; f != "" {
			r.FeatureGates = append(r.FeatureGates, f)
		}
		r.running = running[kind+"/"+filepath.Base(file)[:3]]
		plain, defaulted, err := judge(kind, r)
		if err != nil {
			// A field that is not typed is refused by the schema.
			t.Logf("skipped  %s: %s", name, strings.ReplaceAll(err.Error(), "\n", " "))
			skipped++
			continue
		}
		t.Run(name, func(t *testing.T) {
			want := signatures(r.Expect.Causes)
			if a, ok := allowed[kind+"/"+filepath.Base(file)[:3]]; ok {
				t.Log(a.why)
				want = slices.DeleteFunc(want, func(s string) bool { return s == a.signature })
			}
			if atGuest[kind+"/"+filepath.Base(file)[:3]] {
				for i := range want {
					want[i] = strings.Replace(want[i], ".resources.requests.memory", ".memory.guest", 1)
				}
				slices.Sort(want)
				want = slices.Compact(want)
			}
			require.Equal(t, want, found(plain), "%v", plain)
			if defaulted != nil {
				require.Equal(t, want, found(defaulted), "with defaults: %v", defaulted)
			}
		})
		refused++
	}
	t.Logf("refused for the same fields and kinds: %d of %d, skipped: %d", refused, len(all), skipped)
}

// reserving is a feature that KubeVirt had on when it accepted this spec, although
// the record does not say so: it refuses another record with the feature off.
var reserving = map[string]string{"0a3d8a4b8f": "PersistentReservation"}

// refusedHere are records that contradict themselves, with the field that is refused: the
// guest of one would start with more memory than it may have.
var refusedHere = map[string]string{"66c6f756f0": "spec.domain.memory.guest"}

func TestWhatKubeVirtAcceptsIsAccepted(t *testing.T) {
	accepted, skipped := 0, 0
	all := files(t, "accepted/*.yaml")
	for _, file := range all {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		r := load(t, file)
		if f := reserving[name]; f != "" {
			r.FeatureGates = append(r.FeatureGates, f)
		}
		// What a default KubeVirt has on is on.
		r.FeatureGates = append(r.FeatureGates, optional...)
		plain, defaulted, err := judge("vmi-spec", r)
		if err != nil {
			t.Logf("skipped  %s: %s", name, strings.ReplaceAll(err.Error(), "\n", " "))
			skipped++
			continue
		}
		t.Run(name, func(t *testing.T) {
			if path := refusedHere[name]; path != "" {
				require.Len(t, defaulted, 1)
				require.Equal(t, path, defaulted[0].Field)
				return
			}
			require.Empty(t, plain)
			require.Empty(t, defaulted, "with defaults")
		})
		accepted++
	}
	t.Logf("accepted: %d of %d, skipped: %d", accepted, len(all), skipped)
}
