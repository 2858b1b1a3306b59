package validate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// FuzzNothingPanics gives every function whatever can be decoded.
func FuzzNothingPanics(f *testing.F) {
	f.Add([]byte(`{"spec":{"domain":{}}}`))
	f.Add([]byte(`{"spec":{"template":{"spec":{}}},"status":{"volumeRequests":[` + claimRequest + `,{"removeVolumeOptions":{"name":"b"}},{}]}}`))
	for _, tables := range [][]rule{processorRules, securityRules, firmwareRules, storageRules, networkRules, deviceRules, podRules} {
		for _, tt := range tables {
			if spec, err := yaml.YAMLToJSON([]byte(tt.spec)); err == nil {
				f.Add([]byte(`{"spec":` + string(spec) + `}`))
				f.Add([]byte(`{"spec":{"selector":{"matchLabels":{"a":"b"}},"vmiName":"a","template":{"spec":` + string(spec) + `}}}`))
			}
		}
	}
	by, lim := validate.User{Kind: validate.Handler, Node: "a"}, validate.Limits{}
	f.Fuzz(func(_ *testing.T, data []byte) {
		var v vmi.VirtualMachineInstance
		if len(quantity.FaultsIn(&v, data))+len(quantity.FaultsIn(&vmi.VirtualMachine{}, data)) > 0 {
			return
		}
		if json.Unmarshal(data, &v) == nil {
			d := defaults.Instance(&v, defaults.Profile{})
			validate.Instance(&v, by, lim)
			validate.Instance(d, by, lim)
		}
		var m vmi.VirtualMachine
		if json.Unmarshal(data, &m) == nil {
			d := defaults.VirtualMachine(&m, defaults.Profile{})
			validate.VirtualMachine(&m, by, lim)
			validate.VirtualMachineUpdate(&m, d, by, lim)
			validate.VolumeRequests(&m, &v, lim)
		}
		var r vmi.VirtualMachineInstanceReplicaSet
		if json.Unmarshal(data, &r) == nil {
			validate.ReplicaSetUpdate(&r, defaults.ReplicaSet(&r, defaults.Profile{}), by, lim)
		}
		var g vmi.VirtualMachineInstanceMigration
		if json.Unmarshal(data, &g) == nil {
			validate.Migration(&g, by)
			validate.MigrationOf(&g, &v, g)
			validate.MigrationUpdate(&g, &vmi.VirtualMachineInstanceMigration{})
		}
	})
}

// pieces are what users write, right and wrong. Each VMI of the test below is made
// of some of them, and its faults may name only the fields that they set.
var pieces = []string{
	`{"architecture":"arm64"}`, `{"architecture":"s390x"}`, `{"architecture":"amd64"}`,
	`{"evictionStrategy":"x"}`, `{"hostname":"A"}`, `{"dnsPolicy":"None"}`, `{"startStrategy":"Paused"}`,
	`{"livenessProbe":{"tcpSocket":{"port":1}}}`, `{"readinessProbe":{}}`, `{"terminationGracePeriodSeconds":-1}`,
	`{"domain":{"memory":{"guest":"64Mi"}}}`, `{"domain":{"memory":{"guest":"1"}}}`, `{"domain":{"memory":{"guest":"4Gi"}}}`, `{"domain":{"memory":{"maxGuest":"3Gi"}}}`,
	`{"domain":{"resources":{"limits":{"memory":"1k"}}}}`, `{"domain":{"resources":{"limits":{"memory":"1Gi"}}}}`, `{"domain":{"resources":{"requests":{"memory":"-1"}}}}`,
	`{"domain":{"resources":{"limits":{"cpu":"-1"}}}}`, `{"domain":{"resources":{"limits":{"cpu":"800m"}}}}`, `{"domain":{"resources":{"requests":{"cpu":"300"}}}}`, `{"domain":{"resources":{"limits":{"cpu":"2"}}}}`,
	`{"domain":{"cpu":{"cores":4}}}`, `{"domain":{"cpu":{"sockets":200}}}`, `{"domain":{"cpu":{"dedicatedCpuPlacement":true}}}`, `{"domain":{"cpu":{"isolateEmulatorThread":true}}}`,
	`{"domain":{"cpu":{"threads":3}}}`, `{"domain":{"cpu":{"maxSockets":2}}}`, `{"domain":{"cpu":{"numa":{"guestMappingPassthrough":{}}}}}`, `{"domain":{"cpu":{"features":[{"name":"vmx"}]}}}`,
	`{"domain":{"firmware":{"bootloader":{"efi":{}}}}}`, `{"domain":{"firmware":{"bootloader":{"bios":{}}}}}`, `{"domain":{"features":{"smm":{}}}}`,
	`{"domain":{"features":{"hyperv":{"synictimer":{},"evmcs":{},"spinlocks":{}}}}}`, `{"domain":{"features":{"hyperv":{"tlbflush":{},"vpindex":{"enabled":false}}}}}`,
	`{"domain":{"devices":{"watchdog":{"name":"a","i6300esb":{}}}}}`, `{"domain":{"devices":{"autoattachPodInterface":false}}}`, `{"domain":{"devices":{"inputs":[{"name":"a"}]}}}`, `{"domain":{"devices":{"video":{"type":"vga"}}}}`,
	`{"domain":{"devices":{"disks":[{"name":"a","cdrom":{}},{"name":"b","lun":{"reservation":true}}]}}}`, `{"domain":{"devices":{"disks":[{"name":"a","disk":{"readonly":true}}]}}}`,
	`{"domain":{"devices":{"disks":[{"name":"a","dedicatedIOThread":true},{"name":"b","blockSize":{"custom":{"logical":4096,"physical":4096}}}]}}}`,
	`{"domain":{"devices":{"disks":[{"name":"a","disk":{"pciAddress":"0000:00:01.0"}},{"name":"a","bootOrder":0}]}}}`, `{"domain":{"devices":{"filesystems":[{"name":"b","virtiofs":{}}]}}}`,
	`{"volumes":[{"name":"a","containerDisk":{"image":"x"}},{"name":"b","persistentVolumeClaim":{"claimName":"c"}}]}`, `{"volumes":[{"name":"A","emptyDisk":{"capacity":"0"}},{"name":"A"}]}`,
	`{"domain":{"devices":{"watchdog":{"name":"a"}}}}`, `{"domain":{"devices":{"watchdog":{"name":"a","diag288":{}}}}}`, `{"tolerations":[{"key":"a"},{"key":"b","operator":"x"}]}`,
	`{"domain":{"devices":{"interfaces":[{"name":"a"},{"name":"b","bootOrder":0}]}}}`, `{"domain":{"memory":{"hugepages":{"pageSize":"3Mi"}}}}`,
	`{"networks":[{"name":"a","pod":{}}]}`, `{"networks":[{"name":"a","multus":{"networkName":"x","default":true}},{"name":"b","pod":{}}]}`,
	`{"domain":{"devices":{"interfaces":[{"name":"a"},{"name":"b","masquerade":{}}]}}}`, `{"domain":{"devices":{"interfaces":[{"name":"a","state":"absent","ports":[{"port":0}]}]}}}`,
}

func TestNoFaultNamesAFieldThatOnlyDefaultsSet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	profiles := []defaults.Profile{{}, {Architecture: defaults.ARM64}, {Architecture: defaults.S390X}, {Binding: defaults.Masquerade}, {HotplugRatio: 7}}
	for range 20000 {
		spec := map[string]any{}
		for range random.IntN(6) {
			var piece map[string]any
			require.NoError(t, json.Unmarshal([]byte(pieces[random.IntN(len(pieces))]), &piece))
			merge(spec, piece)
		}
		text, err := json.Marshal(spec)
		require.NoError(t, err)
		var s vmi.VirtualMachineInstanceSpec
		require.NoError(t, json.Unmarshal(text, &s))
		p := profiles[random.IntN(len(profiles))]
		done := defaults.Spec(&s, p)
		require.Equal(t, done, defaults.Spec(done, p), "defaults of %s change when they are applied again", text)
		for _, e := range validate.Spec(field.NewPath("spec"), done, validate.Limits{Architecture: p.Architecture}) {
			require.True(t, touched(spec, e), "%s\nof %s", e, text)
		}
	}
}

// merge puts b into a. Lists are replaced.
func merge(a, b map[string]any) {
	for k, v := range b {
		if m, ok := v.(map[string]any); ok {
			if into, ok := a[k].(map[string]any); ok {
				merge(into, m)
				continue
			}
		}
		a[k] = v
	}
}

// request is where KubeVirt reports memory that does not fill huge pages.
const request = "spec.domain.resources.requests.memory"

// touched says whether the user wrote the field of the fault, or what is missing
// in it.
func touched(spec map[string]any, e *field.Error) bool {
	path, ok := e.Field, false
	// The message begins with the path of a field whose name is not its path.
	if first, _, found := strings.Cut(e.Detail, ": "); found && strings.HasPrefix(first, "spec") {
		path = first
	}
	if path == request && !written(spec, path) {
		path = "spec.domain.memory"
	}
	if e.Type == field.ErrorTypeRequired {
		// What is required belongs to something that was written.
		path = path[:strings.LastIndexByte(path, '.')]
	}
	ok = written(spec, path)
	return ok
}

func written(spec map[string]any, path string) bool {
	var at any = map[string]any{"spec": spec}
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		switch v := at.(type) {
		case map[string]any:
			var ok bool
			if at, ok = v[step]; !ok {
				return false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return false
			}
			at = v[i]
		default:
			return false
		}
	}
	return true
}

func TestExamplesAreRight(t *testing.T) {
	found, err := filepath.Glob("../../examples/vmi-*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, found)
	slices.Sort(found)
	for _, file := range found {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var v vmi.VirtualMachineInstance
		require.NoError(t, yaml.Unmarshal(data, &v), file)
		require.Empty(t, validate.Instance(defaults.Instance(&v, defaults.Profile{}), validate.User{}, validate.Limits{}), fmt.Sprint(file))
	}
}
