package bounds_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/vmi/bounds"
	"github.com/podvisor/podvisor/vmi"
)

// vmiWith is a VMI with this spec as JSON.
func vmiWith(spec string) string {
	return `{"apiVersion":"kubevirt.io/v1", "kind":"VirtualMachineInstance","metadata":{"name":"a"},"spec":` + spec + `}`
}

// times is the text n times, with commas.
func times(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }

func TestTheFirstBoundThatIsExceededIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ object, fault string }{
		"a usual object":         {vmiWith(`{"domain":{"devices":{"disks":[{"name":"a","disk":{"bus":"virtio"}}, {"name":"b"}]}},"running":true,"n":-1.5e3,"x":null}`), ""},
		"an empty list and more": {vmiWith(`{"domain":{"devices":{"disks":[]},"features":{}},"volumes":[ ]}`), ""},
		"as many as allowed":     {vmiWith(`{"domain":{"devices":{"disks":[` + times(256, "{}") + `]}}}`), ""},
		"one disk more":          {vmiWith(`{"domain":{"devices":{"disks":[` + times(257, "{}") + `]}}}`), "spec.domain.devices.disks: Too many: must have at most 256 items"},
		"a list in a list": {vmiWith(`{"domain":{"devices":{"interfaces":[{},{"name":"b","ports":[` + times(1025, `{"port":1}`) + `]}]}}}`),
			"spec.domain.devices.interfaces[1].ports: Too many: must have at most 1024 items"},
		"a list of another API's type": {vmiWith(`{"tolerations":[` + times(1025, "{}") + `]}`), "spec.tolerations: Too many: must have at most 1024 items"},
		"a map":                        {vmiWith(`{"nodeSelector":{` + times(256, `"a":"b"`) + `}}`), ""},
		"one entry more":               {vmiWith(`{"nodeSelector":{` + times(257, `"a":"b"`) + `}}`), "spec.nodeSelector: Too many: must have at most 256 entries"},
		"a map in a list":              {vmiWith(`{"topologySpreadConstraints":[{"labelSelector":{"matchLabels":{` + times(257, `"a":"b"`) + `}}}]}`), "spec.topologySpreadConstraints[0].labelSelector.matchLabels: Too many: must have at most 256 entries"},
		"values in all":                {vmiWith(`{"other":{` + times(bounds.MaxValues, `"a":"b"`) + `}}`), "object: Too many: must have at most 20000 values in all"},
		"depth":                        {vmiWith(strings.Repeat("[", 100) + strings.Repeat("]", 100)), "[0]: Too many: must have at most 64 levels"},
		"a string":                     {vmiWith(`{"hostname":"` + strings.Repeat("a", bounds.MaxString+1) + `"}`), "spec.hostname: Too long: must have at most 262144 bytes"},
		"a name":                       {vmiWith(`{"nodeSelector":{"` + strings.Repeat("a", bounds.MaxString+1) + `":""}}`), "spec.nodeSelector: Too long: a name must have at most 262144 bytes"},
		"strings in all":               {vmiWith(`{"args":[` + times(8, `"`+strings.Repeat("a", 200<<10)+`"`) + `]}`), "object: Too long: has 1638530 bytes and must have at most 1572864"},
		"an escaped quote":             {vmiWith(`{"hostname":"\"]}","domain":{"devices":{"disks":[` + times(257, "1") + `]}}}`), "spec.domain.devices.disks: Too many"},
		"no JSON":                      {`{"spec":`, ""}, "a cut string": {`{"spec":"\`, ""}, "nothing": {"", ""}, "no name": {`{1:2}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault := bounds.Fault(vmi.VirtualMachineInstances.Kind, []byte(tt.object))
			if tt.fault == "" {
				require.Nil(t, fault)
				return
			}
			require.NotNil(t, fault)
			require.Contains(t, fault.Error(), tt.fault)
		})
	}
}

func TestAttackAMillionElementsAreRefusedWithoutMemory(t *testing.T) {
	bomb := []byte(vmiWith(`{"domain":{"devices":{"disks":[` + times(2_800_000, "{}") + `]}}}`))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	fault := bounds.Fault(vmi.VirtualMachineInstances.Kind, bomb)
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, fault, "spec.domain.devices.disks: Too many")
	t.Logf("%d bytes were refused in %v with %d bytes of memory", len(bomb), took, after.TotalAlloc-before.TotalAlloc)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// longest is the length of the longest list, and all values of what JSON decodes to.
func longest(v any) (list, values int) {
	values = 1
	switch v := v.(type) {
	case []any:
		list = len(v)
		for _, e := range v {
			l, n := longest(e)
			list, values = max(list, l), values+n
		}
	case map[string]any:
		for _, e := range v {
			l, n := longest(e)
			list, values = max(list, l), values+n
		}
	}
	return list, values
}

func FuzzWhatPassesIsWithinTheBounds(f *testing.F) {
	f.Add(vmiWith(`{"domain":{"devices":{"disks":[{"name":"a"}]}}}`))
	f.Add(vmiWith(`{"tolerations":[` + times(1025, "{}") + `]}`))
	f.Add(`{"a\"":[1, true,null,{"b":-1e5} ] , "c":"\\"}`)
	f.Fuzz(func(t *testing.T, data string) {
		fault := bounds.Fault(vmi.VirtualMachineInstances.Kind, []byte(data))
		var v any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			return
		}
		list, values := longest(v)
		if fault == nil {
			require.LessOrEqual(t, values, bounds.MaxValues)
		} else {
			require.True(t, list > 4 || values > bounds.MaxValues || len(data) > 64, "%v", fault)
		}
	})
}

func ExampleFault() {
	object := `{"spec":{"domain":{"devices":{"disks":[` + times(1_000_000, "{}") + `]}}}}`
	fmt.Println(bounds.Fault("VirtualMachineInstance", []byte(object)))
	// Output: spec.domain.devices.disks: Too many: must have at most 256 items
}
