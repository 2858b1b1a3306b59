package quantity_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// sane are the notations of quantities that people and programs write.
var sane = []string{
	"0", "1", "-1", "+1", "2", "0.5", ".5", "1.", "500m", "250u", "100n", "1k", "1M", "1G", "1T", "1P", "1E",
	"1Ki", "512Mi", "1.5Gi", "2Ti", "3Pi", "1Ei", "0.25Ei", "128974848", "129e6", "129E+3", "1e-3", "1e18", "1e09", "-1Gi", "1152921504606846976",
	"1.3333333333333333Gi", "123456789.123456789",
}

// excessive are texts of little more than a line that a decoder, or what computes
// with the result, spends seconds or gigabytes on.
var excessive = []string{
	"1e999999999", "-1e999999999", "1e-999999999", "1E+2147483647", "1e-2147483648", "12345678901234567890e999999999", "1e4294967299", "1e100", "0e-999999999",
	"1.5e20", "2e-20", strings.Repeat("9", 1_000_000), strings.Repeat("9", 33), "0." + strings.Repeat("0", 100_000) + "1", strings.Repeat("9", 1_000_000) + "Ei",
	" 1e999999999 ", "1e0999999999",
}

// malformed are no quantities, which every decoder says at once.
var malformed = []string{"", "x", "0x10", "NaN", "Inf", "1e", "1e1.5", "--1", "1 Gi", "1gi", "1e+", "null"}

func memory(text string) []byte {
	value, _ := json.Marshal(text)
	return fmt.Appendf(nil, `{"spec":{"domain":{"memory":{"guest":%s}}}}`, value)
}

func TestWhatPeopleWriteIsWithinTheBounds(t *testing.T) {
	t.Parallel()
	for _, text := range sane {
		require.Empty(t, quantity.FaultsIn(&vmi.VirtualMachineInstance{}, memory(text)), text)
		q, err := quantity.Parse(text)
		require.NoError(t, err, text)
		require.Zero(t, q.Cmp(resource.MustParse(text)), text)
		require.Empty(t, quantity.Faults(nil, &vmi.Memory{Guest: &q}), text)
	}
}

func TestTextThatIsExpensiveIsAFault(t *testing.T) {
	t.Parallel()
	for _, text := range excessive {
		require.Less(t, testenv.ProcessorTime(t, func() {
			l := quantity.FaultsIn(&vmi.VirtualMachineInstance{}, memory(text))
			require.Len(t, l, 1, text)
			require.Equal(t, "spec.domain.memory.guest", l[0].Field)
			require.Contains(t, l[0].ErrorBody(), "must be a quantity of at most 32 characters with an exponent from -19 to 19")
			require.Less(t, len(l[0].Error()), 300)
			_, err := quantity.Parse(text)
			require.ErrorIs(t, err, resource.ErrFormatWrong)
		}), time.Second)
	}
}

func TestTextThatIsNoQuantityIsLeftToTheDecoder(t *testing.T) {
	t.Parallel()
	for _, text := range malformed {
		require.Empty(t, quantity.FaultsIn(&vmi.VirtualMachineInstance{}, memory(text)), text)
		require.Error(t, json.Unmarshal(memory(text), &vmi.VirtualMachineInstance{}), text)
		_, err := quantity.Parse(text)
		require.Error(t, err, text)
	}
}

func TestEachPlaceOfAQuantityIsFound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o    any
		data string
		want []string
	}{
		"a number": {&vmi.VirtualMachineInstance{}, `{"spec":{"domain":{"memory":{"guest":1e999999999}}}}`, []string{"spec.domain.memory.guest"}},
		"maps and lists": {
			&vmi.VirtualMachineInstance{},
			`{"spec":{"domain":{"resources":{"requests":{"cpu":"1","memory":"1e999999999"},"limits":{"a/b":1e-99}}},"volumes":[{"name":"a"},{"name":"b","emptyDisk":{"capacity":"1e-999999999"}}]}}`,
			[]string{"spec.domain.resources.requests.memory", "spec.domain.resources.limits.a/b", "spec.volumes[1].emptyDisk.capacity"},
		},
		"a template and a claim": {
			&vmi.VirtualMachine{},
			`{"spec":{"dataVolumeTemplates":[{"spec":{"pvc":{"resources":{"requests":{"storage":"1e77"}}}}}],"template":{"spec":{"domain":{"memory":{"maxGuest":"1e77"}}}}}}`,
			[]string{"spec.dataVolumeTemplates[0].spec.pvc.resources.requests.storage", "spec.template.spec.domain.memory.maxGuest"},
		},
		"the configuration": {&vmi.KubeVirt{}, `{"spec":{"configuration":{"cpuRequest":"1e77"}}}`, []string{"spec.configuration.cpuRequest"}},
		// The decoder takes both.
		"a field that is there twice, in other letters": {
			&vmi.VirtualMachineInstance{}, `{"spec":{"domain":{"memory":{"Guest":"1e77","guest":"1"}}}}`, []string{"spec.domain.memory.Guest"},
		},
		"text that is no quantity of the type": {&vmi.VirtualMachineInstance{}, `{"metadata":{"annotations":{"a":"1e999999999"}},"spec":{"x":"1e999999999","hostname":"1e99"},"a":[[[1e99]]]}`, nil},
		"no JSON":                              {&vmi.VirtualMachineInstance{}, `{"spec":{"domain":{"memory":{"guest":"1e999999999"`, []string{"spec.domain.memory.guest"}},
		"deep nesting of what has no type":     {&vmi.VirtualMachineInstance{}, `{"a":1e999999999,"b":` + strings.Repeat("[", 1_000_000), nil},
		"deep nesting where a type is":         {&vmi.VirtualMachineInstance{}, `{"a":1e999999999,"spec":` + strings.Repeat("[", 1_000_000), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range quantity.FaultsIn(tt.o, []byte(tt.data)) {
				got = append(got, e.Field)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAValueThatKubernetesCannotComputeWithIsAFault(t *testing.T) {
	t.Parallel()
	v := &vmi.VirtualMachineInstance{}
	v.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("1e30"))}
	v.Spec.Domain.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("-2Ei")}
	v.Spec.Domain.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1e999999999"), "memory": *resource.NewQuantity(quantity.Most, resource.BinarySI)}
	var got []string
	for _, e := range quantity.Faults(field.NewPath("spec"), &v.Spec) {
		bound, _, _ := strings.Cut(e.Detail, ":")
		got = append(got, fmt.Sprint(e.Field, " ", e.BadValue, " ", bound))
	}
	require.Equal(t, []string{
		"spec.domain.memory.guest 1e30 must be at most 1Ei", "spec.domain.resources.requests.cpu 1e999999999 must be at most 1Ei",
		"spec.domain.resources.limits.memory -2Ei must be at least -1Ei",
	}, got)
}

func TestAMillionFaultsAreFifty(t *testing.T) {
	t.Parallel()
	data := `{"spec":{"volumes":[` + strings.Repeat(`{"emptyDisk":{"capacity":"1e99"}},`, 1_000_000) + `{}]}}`
	require.Len(t, quantity.FaultsIn(&vmi.VirtualMachineInstance{}, []byte(data)), quantity.MaxFaults)
	v := &vmi.VirtualMachineInstance{}
	for range 1000 {
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{VolumeSource: vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("2Ei")}}})
	}
	require.Len(t, quantity.Faults(nil, v), quantity.MaxFaults)
}

func TestAnObjectWithoutAFaultCostsNoMemory(t *testing.T) {
	data := []byte(`{"metadata":{"uid":"3b1c","resourceVersion":"12345678901234567890123456"},"spec":{"domain":{"memory":{"guest":"1Gi"},"cpu":{"cores":12}}}}`)
	v := &vmi.VirtualMachineInstance{}
	require.Zero(t, testing.AllocsPerRun(100, func() { quantity.FaultsIn(v, data) }))
}

// FuzzAcceptedTextIsCheap decodes what FaultsIn accepts, and does with it all that
// is done with quantities.
func FuzzAcceptedTextIsCheap(f *testing.F) {
	for _, list := range [][]string{sane, excessive, malformed} {
		for _, text := range list {
			f.Add(text[:min(len(text), 100)])
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		data := memory(text)
		if len(quantity.FaultsIn(&vmi.VirtualMachineInstance{}, data)) > 0 {
			_, err := quantity.Parse(text)
			require.Error(t, err)
			return
		}
		d, allocated := cost(t, func() { compute(data) })
		require.Less(t, d, 100*time.Millisecond, text)
		require.Less(t, allocated, uint64(1<<20+64*len(text)), text)
		if q, err := quantity.Parse(text); err == nil {
			require.Empty(t, quantity.Faults(nil, &vmi.Memory{Guest: &q}), text)
		}
	})
}

// compute does with the memory of a VMI all that is done with quantities.
func compute(data []byte) {
	var v, w vmi.VirtualMachineInstance
	if json.Unmarshal(data, &v) != nil || v.Spec.Domain.Memory == nil || v.Spec.Domain.Memory.Guest == nil {
		return
	}
	q := v.Spec.Domain.Memory.Guest
	c := q.DeepCopy()
	_, _, _ = c.Cmp(resource.MustParse("1n")), c.Value(), c.MilliValue()
	_ = c.Equal(resource.MustParse("8Ei"))
	c.Add(resource.MustParse("1n"))
	c.Sub(*q)
	c.Mul(1 << 40)
	_ = c.String()
	_ = quantity.Faults(nil, &v)
	if again, err := json.Marshal(&v); err == nil {
		_ = json.Unmarshal(again, &w)
	}
}

// cost is the least time and memory of three runs.
func cost(t *testing.T, f func()) (d time.Duration, allocated uint64) {
	for i := range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		took := testenv.ProcessorTime(t, f)
		runtime.ReadMemStats(&after)
		if a := after.TotalAlloc - before.TotalAlloc; i == 0 || a < allocated {
			allocated = a
		}
		if i == 0 || took < d {
			d = took
		}
	}
	return d, allocated
}
