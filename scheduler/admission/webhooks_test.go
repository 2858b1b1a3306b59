package admission

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// written is a VMI with this spec, as a user writes it.
func written(spec string) string {
	return `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","metadata":{"name":"vm","namespace":"ns"},"spec":` + spec + `}`
}

// ask sends a review of the object, and of the one before if there was one.
func ask(t testing.TB, path, object, before string) *admissionv1.AdmissionResponse {
	t.Helper()
	return askOf(t, Webhooks{}, path, object, before)
}

func askOf(t testing.TB, h http.Handler, path, object, before string) *admissionv1.AdmissionResponse {
	t.Helper()
	req := &admissionv1.AdmissionRequest{
		UID: "7", Name: "vm", Namespace: "ns", Operation: admissionv1.Create,
		Kind:   metav1.GroupVersionKind{Group: vmi.GroupName, Version: "v1", Kind: vmi.VirtualMachineInstances.Kind},
		Object: runtime.RawExtension{Raw: []byte(object)},
	}
	if before != "" {
		req.Operation, req.OldObject.Raw = admissionv1.Update, []byte(before)
	}
	return post(t, h, path, &admissionv1.AdmissionReview{Request: req})
}

func post(t testing.TB, a http.Handler, path string, review *admissionv1.AdmissionReview) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(review)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Equal(t, review.Request.UID, answer.Response.UID)
	return answer.Response
}

// patched is the object after the answer's patch.
func patched(t testing.TB, object string, r *admissionv1.AdmissionResponse) string {
	t.Helper()
	require.True(t, r.Allowed, "%v", r.Result)
	if r.Patch == nil {
		return object
	}
	p, err := jsonpatch.DecodePatch(r.Patch)
	require.NoError(t, err)
	out, err := p.Apply([]byte(object))
	require.NoError(t, err)
	return string(out)
}

func TestACreatedVMIIsCompleted(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{
		"nothing at all":          `{"domain":{}}`,
		"empty lists":             `{"domain":{"devices":{"disks":[],"interfaces":[]}},"networks":[],"volumes":[]}`,
		"a disk without a target": `{"domain":{"devices":{"disks":[{"name":"a"}]}},"volumes":[{"name":"a","emptyDisk":{"capacity":"1Gi"}}]}`,
		"a volume without a disk": `{"domain":{"devices":{"disks":[{"name":"a","disk":{"bus":"virtio"}}]}},"volumes":[{"name":"a","emptyDisk":{"capacity":"1Gi"}},{"name":"b","containerDisk":{"image":"x"}}]}`,
		"nulls":                   `{"domain":{"devices":{"disks":null}},"volumes":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			object := written(spec)
			out := patched(t, object, ask(t, completionPath, object, ""))
			var was, is vmi.VirtualMachineInstance
			require.NoError(t, json.Unmarshal([]byte(object), &was))
			require.NoError(t, json.Unmarshal([]byte(out), &is))
			require.Equal(t, []string{vmi.Finalizer}, is.Finalizers)
			require.True(t, equality.Semantic.DeepEqual(defaults.Instance(&was, defaults.Profile{}).Spec, defaults.Instance(&is, defaults.Profile{}).Spec), out)
			require.Nil(t, ask(t, completionPath, out, "").Patch, "what is complete stays as it is")
		})
	}
}

func TestWhatWasWrittenStaysAsItWasWritten(t *testing.T) {
	t.Parallel()
	object := written(`{"domain":{"memory":{"guest":"1024Mi"},"resources":{"requests":{"cpu":"1000m"}},"devices":{"disks":[{"name":"a","serial":"7"}]}},` +
		`"volumes":[{"name":"a","emptyDisk":{"capacity":"1024Mi"}}],"unknown":{"number":1.50,"large":12345678901234567890}}`)
	out := patched(t, object, ask(t, completionPath, object, ""))
	for _, want := range []string{`"guest":"1024Mi"`, `"cpu":"1000m"`, `"capacity":"1024Mi"`, `"number":1.50`, `"large":12345678901234567890`, `"serial":"7"`} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "creationTimestamp")
	require.NotContains(t, out, `"status"`)
}

func TestFinalizersOfOthersStay(t *testing.T) {
	t.Parallel()
	object := strings.Replace(written(`{"domain":{}}`), `"name":"vm"`, `"name":"vm","finalizers":["example.com/mine"]`, 1)
	require.Contains(t, patched(t, object, ask(t, completionPath, object, "")), `["example.com/mine","`+vmi.Finalizer+`"]`)
}

func TestAnUpdateThatMeansTheSameIsNone(t *testing.T) {
	t.Parallel()
	const (
		sparse = `{"domain":{"memory":{"guest":"1024Mi"},"devices":{"disks":[{"name":"a"}]}},"volumes":[{"name":"a","emptyDisk":{"capacity":"1Gi"}}]}`
		reword = `{"domain":{"memory":{"guest":"1Gi"},"devices":{"disks":[{"name":"a","disk":{"bus":"sata"}}]}},"volumes":[{"name":"a","emptyDisk":{"capacity":"1Gi"}}]}`
	)
	created := patched(t, written(sparse), ask(t, DefaultsPath, written(sparse), ""))
	for name, tt := range map[string]struct {
		now, before, want string
	}{
		"a completed VMI, as it was sent": {written(sparse), created, created},
		"a completed VMI, in other words": {written(reword), created, created},
		"an incomplete VMI, completed":    {created, written(sparse), written(sparse)},
	} {
		t.Run(name, func(t *testing.T) {
			spec := func(object string) (s struct{ Spec json.RawMessage }) {
				require.NoError(t, json.Unmarshal([]byte(object), &s))
				return s
			}
			out := patched(t, tt.now, ask(t, DefaultsPath, tt.now, tt.before))
			require.JSONEq(t, string(spec(tt.want).Spec), string(spec(out).Spec))
		})
	}
}

func TestAChangedSpecIsRefusedWithItsFields(t *testing.T) {
	t.Parallel()
	const sparse = `{"domain":{"memory":{"guest":"1024Mi"},"devices":{"disks":[{"name":"a"}]}},"volumes":[{"name":"a","emptyDisk":{"capacity":"1Gi"}},{"name":"c","cloudInitNoCloud":{"userData":"secret"}}]}`
	created := patched(t, written(sparse), ask(t, DefaultsPath, written(sparse), ""))
	for name, tt := range map[string]struct {
		old, now string
		fields   []string
	}{
		"a value, but not the default that follows from it": {`"1024Mi"`, `"2Gi"`, []string{"spec.domain.memory.guest"}},
		"an element of a list":                              {`"capacity":"1Gi"`, `"capacity":"2Gi"`, []string{"spec.volumes[0].emptyDisk.capacity"}},
		"a field more":                                      {`"domain":{`, `"subdomain":"web","domain":{`, []string{"spec.subdomain"}},
		"a list that is longer":                             {`"volumes":[`, `"volumes":[{"name":"b","emptyDisk":{"capacity":"1Gi"}},`, []string{"spec.domain.devices.disks", "spec.volumes"}},
		"several":                                           {`"memory":{"guest":"1024Mi"},`, `"memory":{"guest":"1Gi"},"cpu":{"cores":2},"chassis":{"sku":"x"},`, []string{"spec.domain.chassis", "spec.domain.cpu.cores", "spec.domain.cpu.sockets", "spec.domain.cpu.threads"}},
		"a value that may be secret":                        {`"secret"`, `"other"`, []string{"spec.volumes[1].cloudInitNoCloud.userData"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, sparse, tt.old)
			r := ask(t, DefaultsPath, written(strings.Replace(sparse, tt.old, tt.now, 1)), created)
			require.False(t, r.Allowed)
			require.EqualValues(t, http.StatusUnprocessableEntity, r.Result.Code)
			require.Contains(t, r.Result.Message, "cannot be changed; delete it and create another")
			require.NotContains(t, r.Result.Message, "secret")
			var fields []string
			for _, c := range r.Result.Details.Causes {
				fields = append(fields, c.Field)
			}
			require.Equal(t, tt.fields, fields)
		})
	}
}

func TestAnUpdateKeepsTheDefaultsOfAnotherTime(t *testing.T) {
	t.Parallel()
	const sparse = `{"domain":{"memory":{"guest":"2Gi"}},"volumes":[{"name":"a","containerDisk":{"image":"example/a:1"}}]}`
	created := patched(t, written(sparse), ask(t, DefaultsPath, written(sparse), ""))
	created = strings.Replace(created, `"name":"vm"`, `"name":"vm","uid":"11111111-1111-4111-8111-111111111111"`, 1)
	later := Webhooks{Settings: func() config.Config {
		return config.Config{Defaults: defaults.Profile{CPUModel: vmi.CPUModelPassthrough, Binding: defaults.Masquerade, EvictionStrategy: vmi.EvictionExternal}}
	}}
	out := patched(t, written(sparse), askOf(t, later, DefaultsPath, written(sparse), created))
	var was, is struct{ Spec json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(created), &was))
	require.NoError(t, json.Unmarshal([]byte(out), &is))
	require.JSONEq(t, string(was.Spec), string(is.Spec))
}

func TestAllFaultsAreCauses(t *testing.T) {
	t.Parallel()
	r := ask(t, ValidationPath, written(`{"domain":{"devices":{"disks":[{"name":"nowhere"}]}}}`), "")
	require.False(t, r.Allowed)
	require.EqualValues(t, http.StatusUnprocessableEntity, r.Result.Code)
	require.Equal(t, metav1.StatusReasonInvalid, r.Result.Reason)
	require.Equal(t, vmi.VirtualMachineInstances.Kind, r.Result.Details.Kind)
	var fields []string
	for _, c := range r.Result.Details.Causes {
		fields = append(fields, string(c.Type)+" "+c.Field)
		require.Contains(t, r.Result.Message, c.Message, "the message names everything")
		require.Contains(t, r.Result.Message, c.Field)
	}
	require.Equal(t, []string{"FieldValueInvalid spec.domain.devices.disks[0].name", "FieldValueRequired spec.domain.memory.guest"}, fields)
}

// The webhook that validates is not asked after this one has refused an object.
func TestAFieldThatIsNotServedIsRefusedWithTheOtherFaults(t *testing.T) {
	t.Parallel()
	r := ask(t, DefaultsPath, written(`{"domain":{"memory":{"guest":"-1Mi"},"devices":{"interfaces":[{"name":"default","passtBinding":{}}]}},"networks":[{"name":"default","pod":{}}]}`), "")
	require.False(t, r.Allowed)
	var fields []string
	for _, c := range r.Result.Details.Causes {
		fields = append(fields, c.Field)
	}
	require.Equal(t, []string{"spec.domain.devices.interfaces[0].passtBinding", "spec.domain.memory.guest"}, fields, "not that the interface has no binding: %s", r.Result.Message)
}

func TestWhatIsRightIsAllowed(t *testing.T) {
	t.Parallel()
	good := written(`{"domain":{"memory":{"guest":"64Mi"}}}`)
	require.True(t, ask(t, ValidationPath, good, "").Allowed, "it need not be completed")
	require.True(t, ask(t, ValidationPath, good, good).Allowed)
}

func TestAnObjectThatCannotBeDecodedIsRefusedByValidationOnly(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{
		"a field of another type":      written(`{"domain":[]}`),
		"a quantity that is none":      written(`{"domain":{"memory":{"guest":"much"}}}`),
		"an object that is a list":     `[]`,
		"an object that is not there":  `null`,
		"a manifest with another spec": written(`7`),
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(t, DefaultsPath, object, "")
			require.True(t, r.Allowed, "the schema reports it")
			require.Nil(t, r.Patch)
			if object == "null" {
				return
			}
			r = ask(t, ValidationPath, object, "")
			require.False(t, r.Allowed, "no reader could decode it")
			require.EqualValues(t, http.StatusBadRequest, r.Result.Code)
			require.Contains(t, r.Result.Message, "decode VirtualMachineInstance vm: ")
		})
	}
}

// Some take minutes to decode, others to compare.
func TestAQuantityThatTakesLongIsNotComputedWith(t *testing.T) {
	t.Parallel()
	good := written(`{"domain":{"memory":{"guest":"64Mi"}}}`)
	for _, text := range []string{`"1e999999999"`, `"1e-999999999"`, `1e-999999999`, `"12345678901234567890e999999999"`, `"` + strings.Repeat("9", 200_000) + `"`} {
		for _, spec := range []string{`{"domain":{"memory":{"guest":` + text + `}}}`, `{"domain":{"resources":{"requests":{"memory":` + text + `}}}}`} {
			bad := written(spec)
			took := testenv.ProcessorTime(t, func() {
				r := ask(t, DefaultsPath, bad, "")
				require.True(t, r.Allowed, "the schema reports it")
				require.Nil(t, r.Patch)
				r = ask(t, ValidationPath, bad, "")
				require.False(t, r.Allowed)
				require.Contains(t, r.Result.Message, "must be a quantity of at most 32 characters with an exponent from -19 to 19")
				require.Less(t, len(r.Result.Message), 400)
				require.True(t, ask(t, ValidationPath, good, bad).Allowed, "it corrects the one before")
				require.True(t, ask(t, DefaultsPath, good, bad).Allowed)
			})
			require.Less(t, took, 10*time.Second)
		}
	}
}

// What no node has is the scheduler's to say, up to what Kubernetes can add up.
func TestMemoryThatCannotBeAddedUpIsRefused(t *testing.T) {
	t.Parallel()
	for guest, want := range map[string]string{
		"2Ei":   `spec.domain.memory.guest: Invalid value: "2Ei": must be at most 1Ei: no node has more`,
		"900Ei": `spec.domain.memory.guest: Invalid value: "8Ei or more": must be at most 1Ei: no node has more`,
		"1e19":  `must be at most 1Ei`,
	} {
		r := ask(t, ValidationPath, written(`{"domain":{"memory":{"guest":"`+guest+`"}},"hostname":"A"}`), "")
		require.False(t, r.Allowed)
		require.Contains(t, r.Result.Message, want)
		require.Contains(t, r.Result.Message, "spec.hostname: ", "all faults are reported")
	}
	require.True(t, ask(t, ValidationPath, written(`{"domain":{"devices":{},"memory":{"guest":"1Ei"}}}`), "").Allowed)
}

// reviewOf is a review of the creation of an object of the kind.
func reviewOf(k kinds.Kind, object string) *admissionv1.AdmissionReview {
	return &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "1", Name: "a", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind(k.GroupVersionKind), Object: runtime.RawExtension{Raw: []byte(object)},
	}}
}

func TestEveryKindOfTheTableIsReviewed(t *testing.T) {
	t.Parallel()
	for _, k := range kinds.All() {
		object := `{"metadata":{"name":"a"},"spec":7}`
		require.Equal(t, &admissionv1.AdmissionResponse{UID: "1", Allowed: true}, post(t, Webhooks{}, DefaultsPath, reviewOf(k, object)), k.Kind)
		r := post(t, Webhooks{}, ValidationPath, reviewOf(k, object))
		require.False(t, r.Allowed, k.Kind)
		require.Contains(t, r.Result.Message, "decode "+k.Kind+" a: ")
		object = `{"metadata":{"name":"a"},"spec":{}}`
		want := k.Create(k.Complete(k.New(), kinds.Cluster{}), kinds.Cluster{})
		require.Equal(t, len(want) == 0, post(t, Webhooks{}, ValidationPath, reviewOf(k, object)).Allowed, k.Kind)
	}
}

func TestOtherKindsAreAllowed(t *testing.T) {
	t.Parallel()
	review := &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "1", Kind: metav1.GroupVersionKind{Group: "example.com", Kind: "Other"}, Object: runtime.RawExtension{Raw: []byte(`{}`)}}}
	for _, path := range []string{DefaultsPath, ValidationPath} {
		require.Equal(t, &admissionv1.AdmissionResponse{UID: "1", Allowed: true}, post(t, Webhooks{}, path, review))
	}
}

func TestWhatIsNoReviewIsAnError(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path, body string
		code       int
	}{
		"another path":   {"/admission", "{}", http.StatusNotFound},
		"no JSON":        {DefaultsPath, "x", http.StatusBadRequest},
		"no request":     {ValidationPath, "{}", http.StatusBadRequest},
		"much too large": {DefaultsPath, `{"request":{"uid":"` + strings.Repeat("x", maxReview) + `"}}`, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			Webhooks{}.ServeHTTP(w, httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader(tt.body)))
			require.Equal(t, tt.code, w.Code)
		})
	}
}

func TestTheClusterDecidesWhatIsAdmitted(t *testing.T) {
	t.Parallel()
	k := &vmi.KubeVirt{}
	k.Spec.Configuration.Network = &vmi.NetworkConfiguration{PermitBridgeInterfaceOnPodNetwork: new(false)}
	k.Spec.Configuration.EvictionStrategy = new(vmi.EvictionLiveMigrate)
	c, faults := config.Resolve(k)
	require.Empty(t, faults)
	a := Webhooks{Settings: func() config.Config { return c }}

	plain := written(`{"domain":{"memory":{"guest":"64Mi"}}}`)
	done := patched(t, plain, askOf(t, a, DefaultsPath, plain, ""))
	require.Contains(t, done, `"masquerade":{}`)
	require.Contains(t, done, `"evictionStrategy":"LiveMigrate"`)
	require.True(t, askOf(t, a, ValidationPath, done, "").Allowed)

	bridged := written(`{"domain":{"memory":{"guest":"64Mi"},"devices":{"interfaces":[{"name":"n","bridge":{}}]}},"networks":[{"name":"n","pod":{}}]}`)
	answer := askOf(t, a, ValidationPath, bridged, "")
	require.False(t, answer.Allowed)
	require.Contains(t, answer.Result.Message, "use masquerade")
	require.True(t, ask(t, ValidationPath, bridged, "").Allowed)
	require.True(t, askOf(t, a, ValidationPath, bridged, bridged).Allowed, "a VMI that exists stays as it is")
}

func TestTheClusterDecidesOnMachineTypes(t *testing.T) {
	t.Parallel()
	k := &vmi.KubeVirt{}
	k.Spec.Configuration.ArchitectureConfiguration = &vmi.ArchitectureConfiguration{AMD64: &vmi.ArchitectureSettings{
		MachineType: "pc-q35-7.2", EmulatedMachines: []string{"pc-q35-7.*"},
	}}
	c, faults := config.Resolve(k)
	require.Empty(t, faults)
	a := Webhooks{Settings: func() config.Config { return c }}

	require.True(t, askOf(t, a, ValidationPath, written(`{"domain":{"memory":{"guest":"64Mi"}}}`), "").Allowed, "its default is allowed")
	q35 := written(`{"domain":{"memory":{"guest":"64Mi"},"machine":{"type":"q35"}}}`)
	answer := askOf(t, a, ValidationPath, q35, "")
	require.False(t, answer.Allowed)
	require.Contains(t, answer.Result.Message, `spec.domain.machine.type: Invalid value: "q35": must match pc-q35-7.*`)
	require.True(t, ask(t, ValidationPath, q35, "").Allowed)
	require.True(t, askOf(t, a, ValidationPath, q35, q35).Allowed, "a VMI that exists stays as it is")
}

// Whatever was sent, its completion is what the library makes of it, and is
// complete.
func FuzzComplete(f *testing.F) {
	f.Add(`{"domain":{"devices":{"disks":[{"name":"a"},{"name":"a"}]}},"volumes":[{"name":"b"}]}`)
	f.Add(`{"domain":{"devices":{"interfaces":[{"name":"n","ports":[{"port":1}]},null]}},"terminationGracePeriodSeconds":1}`)
	f.Add(`{"Domain":{"Devices":{"DISKS":[{}]}},"volumes":[{"containerDisk":{}}]}`)
	f.Fuzz(func(t *testing.T, spec string) {
		object := written(spec)
		var v vmi.VirtualMachineInstance
		if json.Unmarshal([]byte(object), &v) != nil || strings.ContainsAny(spec, "ABCDEFGHIJKLMNOPQRSTUVWXYZ\\") {
			return // encoding/json reads keys in any case; the API server does not
		}
		if _, err := tree([]byte(object)); err != nil {
			return
		}
		out := patched(t, object, ask(t, completionPath, object, ""))
		var done vmi.VirtualMachineInstance
		require.NoError(t, json.Unmarshal([]byte(out), &done))
		require.True(t, equality.Semantic.DeepEqual(defaults.Instance(&v, defaults.Profile{}).Spec, defaults.Instance(&done, defaults.Profile{}).Spec), out)
		ask(t, ValidationPath, out, "")
		again := patched(t, out, ask(t, completionPath, object, out))
		require.JSONEq(t, out, again)
	})
}

func TestAnObjectThatIsCreatedIsCompletedAndValidatedByOneReview(t *testing.T) {
	t.Parallel()
	r := ask(t, DefaultsPath, written(`{"domain":{"memory":{"guest":"64Mi"},"devices":{"disks":[{"name":"a"}]}},"volumes":[{"name":"b","emptyDisk":{"capacity":"1Gi"}}]}`), "")
	require.False(t, r.Allowed)
	var fields []string
	for _, c := range r.Result.Details.Causes {
		fields = append(fields, c.Field)
	}
	require.Equal(t, []string{"spec.domain.devices.disks[0].name"}, fields)
	r = ask(t, DefaultsPath, written(`{"domain":{"memory":{"guest":"64Mi"},"devices":{"disks":[{"name":"a"}]}},"volumes":[{"name":"a","cloudInitNoCloud":{"userData":"echo hello"}}]}`), "")
	require.True(t, r.Allowed, "%v", r.Result)
	require.NotEmpty(t, r.Patch)
	require.Len(t, r.Warnings, 1)
}
