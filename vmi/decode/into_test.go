package decode_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/decode"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// stored is a VMI as JSON with these parts.
func stored(spec, status string) string {
	return `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7",` +
		`"annotations":{"k":"v"},"finalizers":["f"],"deletionTimestamp":"2026-11-20T17:00:00Z"},"spec":` + spec + `,"status":` + status + `}`
}

// partly is what remains of the object above if it cannot be decoded, with this
// status.
func partly(s vmi.VirtualMachineInstanceStatus) *vmi.VirtualMachineInstance {
	return &vmi.VirtualMachineInstance{
		TypeMeta: metav1.TypeMeta{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "b", UID: "u", ResourceVersion: "7", Annotations: map[string]string{"k": "v"}, Finalizers: []string{"f"},
			DeletionTimestamp: &metav1.Time{Time: time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC).Local()},
		},
		Status: s,
	}
}

func TestWhatCannotBeDecodedIsNamedAndTheRestIsThere(t *testing.T) {
	t.Parallel()
	good := vmi.VirtualMachineInstanceStatus{
		Phase: vmi.PhaseRunning, NodeName: "n1", ActivePods: map[types.UID]string{"p": "n1"},
		Conditions: []vmi.Condition{{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}},
	}
	const goodStatus = `{"phase":"Running","nodeName":"n1","activePods":{"p":"n1"},"conditions":[{"type":"Ready","status":"True"}]}`
	for name, tt := range map[string]struct {
		spec, status string
		faults       string
		want         vmi.VirtualMachineInstanceStatus
	}{
		"a negative number": {`{"domain":{"cpu":{"cores":-1}}}`, goodStatus,
			"spec.domain.cpu.cores: -1: must be a whole number from 0 to 4294967295", good},
		"a number that is too large": {`{"domain":{"cpu":{"cores":4294967296}}}`, goodStatus,
			"spec.domain.cpu.cores: 4294967296: must be a whole number from 0 to 4294967295", good},
		"a text in place of a number": {`{"terminationGracePeriodSeconds":"long","domain":{}}`, goodStatus,
			`spec.terminationGracePeriodSeconds: "long": must be a whole number from -9223372036854775808 to 9223372036854775807`, good},
		"an object in place of a list": {`{"volumes":{"root":{}},"domain":{}}`, goodStatus,
			"spec.volumes: an object: must be a list", good},
		"a spec of another form": {`["a"]`, goodStatus, "spec: a list: must be an object", good},
		"an inline field": {`{"volumes":[{"name":"r","containerDisk":"image"}]}`, goodStatus,
			`spec.volumes[0].containerDisk: "image": must be an object`, good},
		"several": {`{"hostname":1,"domain":{"cpu":{"cores":true,"model":[]}}}`, goodStatus,
			`spec.domain.cpu.cores: true: must be a whole number from 0 to 4294967295; spec.domain.cpu.model: a list: must be a string; spec.hostname: 1: must be a string`, good},
		"more than are named": {`{"nodeSelector":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7},"domain":{}}`, goodStatus,
			"spec.nodeSelector[a]: 1: must be a string; spec.nodeSelector[b]: 2: must be a string; spec.nodeSelector[c]: 3: must be a string; " +
				"spec.nodeSelector[d]: 4: must be a string; spec.nodeSelector[e]: 5: must be a string; and 2 more", good},
		"no quantity": {`{"domain":{"memory":{"guest":"much"}}}`, goodStatus,
			`spec.domain.memory.guest: "much": must be a quantity, such as 2, 500m or 512Mi`, good},
		"a quantity that is costly": {`{"domain":{"memory":{"guest":"1.5e999999999"}}}`, goodStatus,
			`spec.domain.memory.guest: "1.5e999999999": must be a quantity of at most 32 characters with an exponent from -19 to 19, such as 2, 500m or 512Mi`, good},
		"a costly quantity in a map": {`{"domain":{"resources":{"requests":{"memory":"1e-2147483648"}}}}`, goodStatus,
			`spec.domain.resources.requests[memory]: "1e-2147483648": must be a quantity of at most 32 characters with an exponent from -19 to 19, such as 2, 500m or 512Mi`, good},
		"a quantity of many digits": {`{"domain":{"memory":{"guest":"` + strings.Repeat("1", 70) + `"}}}`, goodStatus,
			`spec.domain.memory.guest: "` + strings.Repeat("1", 60) + `…: must be a quantity of at most 32 characters with an exponent from -19 to 19, such as 2, 500m or 512Mi`, good},
		"a part of the status": {`{"domain":{}}`, `{"phase":5,"nodeName":"n1","activePods":{"p":"n1","q":2},"conditions":[{"type":"Ready","status":1},{"type":"Paused","status":"True"}]}`,
			"status.activePods[q]: 2: must be a string; status.conditions[0].status: 1: must be a string; status.phase: 5: must be a string",
			vmi.VirtualMachineInstanceStatus{NodeName: "n1", ActivePods: map[types.UID]string{"p": "n1"}, Conditions: []vmi.Condition{{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue}}}},
		"the whole status": {`{"domain":{}}`, `"Running"`, `status: "Running": must be an object`, vmi.VirtualMachineInstanceStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vmi.VirtualMachineInstance{}
			err := decode.Into([]byte(stored(tt.spec, tt.status)), v)
			require.ErrorIs(t, err, vmi.ErrUnreadable)
			var why *vmi.UnreadableError
			require.ErrorAs(t, err, &why)
			require.ElementsMatch(t, strings.Split(tt.faults, "; "), strings.Split(why.Faults(), "; "))
			require.Equal(t, why, vmi.Unreadable(v))
			require.Equal(t, why, vmi.Unreadable(v.DeepCopy()), "a copy is as unreadable")
			want := partly(tt.want)
			vmi.SetUnreadable(want, why)
			require.Equal(t, want, v)
		})
	}
}

func TestMetadataThatCannotBeDecodedIsLeftOut(t *testing.T) {
	t.Parallel()
	v := &vmi.VirtualMachineInstance{}
	err := decode.Into([]byte(`{"metadata":{"name":"a","labels":{"x":1,"y":"z"},"generation":"1","creationTimestamp":"now"},"spec":{"domain":{}}}`), v)
	require.ErrorIs(t, err, vmi.ErrUnreadable)
	require.ErrorContains(t, err, "metadata.labels[x]: 1: must be a string")
	require.Equal(t, "a", v.Name)
	require.Equal(t, map[string]string{"y": "z"}, v.Labels)
	require.Zero(t, v.CreationTimestamp)

	for _, data := range []string{`{"metadata":{"name":1}}`, `{"metadata":"a","spec":1}`, `[]`, `{`, ``} {
		o := &vmi.VirtualMachineInstance{}
		require.Error(t, decode.Into([]byte(data), o), data)
		require.Equal(t, &vmi.VirtualMachineInstance{}, o, data)
	}
}

func TestWhatCanBeDecodedIs(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithContainerDisk("root", "example/web:1"))
	for _, text := range []string{"1e3", "1e-3", "12e6", "1E", "64Mi", "1e03"} {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		got := &vmi.VirtualMachineInstance{}
		require.NoError(t, decode.Into([]byte(strings.Replace(string(data), `"guest":"`, `"guest":"`+text+`","x":"`, 1)), got), text)
		require.Nil(t, vmi.Unreadable(got))
		require.Equal(t, v.Spec.Volumes, got.Spec.Volumes)
	}
}

// A name or a label may look like a number with an exponent.
func TestALabelMayLookLikeAQuantity(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithLabel("commit", "1e999999999"))
	data, err := json.Marshal(v)
	require.NoError(t, err)
	got := &vmi.VirtualMachineInstance{}
	require.NoError(t, decode.Into(data, got))
	require.Equal(t, v.Labels, got.Labels)
}

func FuzzIntoIsQuickAndNeverPanics(f *testing.F) {
	f.Add(stored(`{"domain":{"cpu":{"cores":-1},"memory":{"guest":"1e999999999"}}}`, `{"phase":1}`))
	f.Add(stored(`{"domain":{"memory":{"guest":"1.00000000000000000000001e2147483647"}}}`, `null`))
	f.Add(`{"metadata":{"name":"a","managedFields":[{"time":"x"}]},"status":[]}`)
	f.Fuzz(func(t *testing.T, data string) {
		v := &vmi.VirtualMachineInstance{}
		var err error
		took := testenv.ProcessorTime(t, func() { err = decode.Into([]byte(data), v) })
		// A text that takes long takes many seconds.
		require.Less(t, took, 2*time.Second+time.Duration(len(data))*10*time.Microsecond)
		if why := vmi.Unreadable(v); why != nil {
			require.ErrorIs(t, err, vmi.ErrUnreadable)
			require.Zero(t, v.Spec)
			require.NotEmpty(t, v.Name)
		}
		if err == nil {
			require.Nil(t, vmi.Unreadable(v))
			_, err := json.Marshal(v)
			require.NoError(t, err)
		}
	})
}

func ExampleInto() {
	v := &vmi.VirtualMachineInstance{}
	err := decode.Into([]byte(`{"metadata":{"name":"web"},"spec":{"domain":{"cpu":{"cores":-1}}},"status":{"phase":"Running"}}`), v)
	fmt.Println(err)
	fmt.Println(v.Name, v.Status.Phase, v.Spec.Domain.CPU)
	// Output:
	// the stored object cannot be decoded: spec.domain.cpu.cores: -1: must be a whole number from 0 to 4294967295
	// web Running <nil>
}

func BenchmarkInto(b *testing.B) {
	data, err := json.Marshal(vmitest.New(vmitest.WithContainerDisk("root", "example/web:1"), vmitest.WithMasquerade("default")))
	require.NoError(b, err)
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			_ = decode.Into(data, &vmi.VirtualMachineInstance{})
		}
	})
}

// The decoder reads each of two fields of one name, the tree has the last.
func TestACostlyQuantityThatIsThereTwiceIsNotDecoded(t *testing.T) {
	t.Parallel()
	for _, memory := range []string{`{"guest":"1e-999999999","guest":"1Gi"}`, `{"Guest":"1e-999999999","guest":"1Gi"}`} {
		v := &vmi.VirtualMachineInstance{}
		var err error
		took := testenv.ProcessorTime(t, func() {
			err = decode.Into([]byte(`{"metadata":{"name":"web"},"spec":{"domain":{"memory":`+memory+`}}}`), v)
		})
		require.ErrorIs(t, err, vmi.ErrUnreadable)
		require.ErrorContains(t, err, "1e-999999999")
		require.Less(t, took, 10*time.Second)
	}
}
