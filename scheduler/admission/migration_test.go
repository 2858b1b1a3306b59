package admission_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// migration is one of the VMI.
func migration(name, instance string, phase vmi.MigrationPhase) *vmi.VirtualMachineInstanceMigration {
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	m.Spec.VMIName, m.Status.Phase = instance, phase
	return defaults.Migration(m)
}

// created asks whether the migration may be created.
func created(t *testing.T, m *vmi.VirtualMachineInstanceMigration, fails bool, stored ...vmi.Object) *admissionv1.AdmissionResponse {
	t.Helper()
	cfg := fake.New(stored...).Config()
	if fails {
		cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
			return roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("the API server is busy") })
		})
	}
	c, err := client.New(cfg)
	require.NoError(t, err)
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "7", Namespace: m.Namespace, Name: m.Name, Operation: admissionv1.Create,
			Kind: metav1.GroupVersionKind(vmi.VirtualMachineInstanceMigrations.GroupVersionKind), Object: runtime.RawExtension{Raw: raw},
		},
	})
	require.NoError(t, err)
	out := httptest.NewRecorder()
	admission.Migrations{Client: c}.ServeHTTP(out, httptest.NewRequest(http.MethodPost, admission.MigrationPath, bytes.NewReader(body)))
	require.Equal(t, http.StatusOK, out.Code, out.Body.String())
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &answer))
	return answer.Response
}

func TestAMigrationIsCreatedForAVMIThatCanMove(t *testing.T) {
	t.Parallel()
	v := func(change ...vmitest.Option) *vmi.VirtualMachineInstance {
		return vmitest.New(append([]vmitest.Option{vmitest.WithPhase(vmi.PhaseRunning)}, change...)...)
	}
	judged := func(s corev1.ConditionStatus) vmitest.Option {
		return func(v *vmi.VirtualMachineInstance) {
			v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: s, Reason: "DisksNotLiveMigratable", Message: "the claim is on one node"}, metav1.Now())
		}
	}
	leaving := migration("leaving", "testvmi", vmi.MigrationPhaseRunning)
	leaving.DeletionTimestamp = new(metav1.Now())
	for name, tt := range map[string]struct {
		stored []vmi.Object
		// says is what the answer begins with, or empty.
		says string
	}{
		"one that can":                   {stored: []vmi.Object{v(judged(corev1.ConditionTrue))}},
		"one of which that is not said":  {stored: []vmi.Object{v()}},
		"one that cannot":                {stored: []vmi.Object{v(judged(corev1.ConditionFalse))}, says: "Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: the claim is on one node"},
		"one that is not there":          {says: `the VMI "testvmi" does not exist`},
		"one that has ended":             {stored: []vmi.Object{v(vmitest.WithPhase(vmi.PhaseSucceeded))}, says: "Cannot migrate VMI in finalized state."},
		"one that moves":                 {stored: []vmi.Object{v(), migration("other", "testvmi", vmi.MigrationPhasePending)}, says: "in-flight migration detected."},
		"one whose migration is new":     {stored: []vmi.Object{v(), migration("other", "testvmi", vmi.MigrationPhaseUnset)}, says: "in-flight migration detected."},
		"one whose migration is aborted": {stored: []vmi.Object{v(), leaving}, says: "in-flight migration detected."},
		"one that has moved": {stored: []vmi.Object{v(), migration("a", "testvmi", vmi.MigrationPhaseSucceeded), migration("b", "testvmi", vmi.MigrationPhaseFailed),
			migration("c", "another", vmi.MigrationPhaseRunning)}},
		"one that cannot and moves": {stored: []vmi.Object{v(judged(corev1.ConditionFalse)), migration("other", "testvmi", vmi.MigrationPhasePending)}, says: "Cannot migrate VMI, Reason:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := created(t, migration("move", "testvmi", ""), false, tt.stored...)
			if tt.says == "" {
				require.True(t, r.Allowed, "%+v", r.Result)
				return
			}
			require.False(t, r.Allowed)
			require.Equal(t, tt.says, r.Result.Message[:len(tt.says)])
			require.EqualValues(t, http.StatusBadRequest, r.Result.Code)
		})
	}
	require.True(t, created(t, migration("move", "", ""), false).Allowed, "what it says of itself is judged elsewhere")
	r := created(t, migration("move", "testvmi", ""), true)
	require.False(t, r.Allowed)
	require.EqualValues(t, http.StatusServiceUnavailable, r.Result.Code)
}
