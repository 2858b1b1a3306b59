package effect

import (
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// What one object of a few kilobytes may cost, from its JSON to pod and domain. The
// largest VMI of testdata takes 5 ms and 2 MB here, where its pod is made four
// times. The time is that of the processor, and has room for the fuzzer's instrumentation:
// what is to be found takes seconds.
const (
	mostTime   = 500 * time.Millisecond
	mostMemory = 16 << 20
)

// FuzzNoObjectTakesLong makes of an object all that is made of it in the cluster.
func FuzzNoObjectTakesLong(f *testing.F) {
	for _, data := range expensive(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 16<<10 {
			return
		}
		took, allocated := cost(t, func() { everything(data) })
		require.Less(t, took, mostTime, "%s", data)
		require.Less(t, allocated, uint64(mostMemory), "%s", data)
	})
}

// expensive are the VMIs of testdata with quantities that are easy to write and
// expensive to compute with, at each place of a quantity.
func expensive(t testing.TB) [][]byte {
	var out [][]byte
	add := func(tree any) {
		data, err := json.Marshal(tree)
		require.NoError(t, err)
		out = append(out, data)
	}
	all := bases(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(all[name])
	}
	for _, text := range []string{"1e999999999", "1e-999999999", "12345678901234567890e999999999", "1e19", "99999999999999999999999999999Ei", "-1Ei", "1e-19", "0.0000000000000000000000000001m"} {
		amounts := map[string]any{"cpu": text, "memory": text, "ephemeral-storage": text, "example.com/device": text, "hugepages-2Mi": text}
		for _, domain := range []map[string]any{
			{"memory": map[string]any{"guest": text, "maxGuest": text, "hugepages": map[string]any{"pageSize": text}}},
			{"memory": map[string]any{"guest": "1Gi", "hugepages": map[string]any{"pageSize": text}}},
			{"memory": map[string]any{"guest": "1Gi", "maxGuest": text}},
			{"resources": map[string]any{"requests": amounts, "limits": amounts}},
			{"resources": map[string]any{"requests": amounts}, "cpu": map[string]any{"dedicatedCpuPlacement": true}},
			{"memory": map[string]any{"guest": text}, "resources": map[string]any{"limits": map[string]any{"memory": "1Gi", "cpu": text}}},
		} {
			spec := map[string]any{"domain": domain, "volumes": []any{map[string]any{"name": "a", "emptyDisk": map[string]any{"capacity": text}}}}
			add(map[string]any{"spec": spec})
			add(map[string]any{"spec": map[string]any{"runStrategy": "Always", "template": map[string]any{"spec": spec}, "dataVolumeTemplates": []any{
				map[string]any{"spec": map[string]any{"pvc": map[string]any{"resources": map[string]any{"requests": amounts}}}},
			}}})
		}
		add(map[string]any{"spec": map[string]any{"configuration": map[string]any{"cpuRequest": text, "liveUpdateConfiguration": map[string]any{"maxGuest": text}}}})
	}
	return out
}

// everything decodes the object as one of each kind, completes and validates it,
// and makes of a VMI all that is made of one, whether it is right or not.
func everything(data []byte) {
	for _, k := range kinds.All() {
		o := k.New()
		if len(quantity.FaultsIn(o, data)) > 0 || json.Unmarshal(data, o) != nil {
			continue
		}
		done := k.Complete(o, kinds.Cluster{})
		k.Faults(done, kinds.Cluster{})
		k.Update(o, done, kinds.Cluster{})
		k.SameSpec(o, done, kinds.Cluster{})
		if v, ok := o.(*vmi.VirtualMachineInstance); ok {
			_, _ = effectsOf(v)
			_, _ = planOf(v)
			_, disks, _ := disksOf(v, nil)
			_, _ = domainOf(v, nil, disks)
		}
	}
}

// cost is the least time and memory of three runs.
func cost(t *testing.T, f func()) (took time.Duration, allocated uint64) {
	for i := range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := testenv.ProcessorTime(t, f)
		runtime.ReadMemStats(&after)
		a := after.TotalAlloc - before.TotalAlloc
		if i == 0 || a < allocated {
			allocated = a
		}
		if i == 0 || d < took {
			took = d
		}
	}
	return took, allocated
}
